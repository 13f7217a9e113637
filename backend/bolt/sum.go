package bolt

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/sluicegw/sluice/backend"
)

// bbolt checks no sums of its pages, so each record and each log entry has one: the CRC-32C (Castagnoli) of its key and
// its form. It finds flipped bits, and records that stand under another's key.

// sumBytes is how many bytes a sum takes. It stands behind the version byte of a form.
const sumBytes = 4

// sumAt is where the sum of a form begins.
const sumAt = 1

// sums returns the table of CRC-32C, which package crc32 makes once.
func sums() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// sumOf returns the sum of a form, or the part of one that it covers, under a key.
func sumOf(key, form []byte) uint32 {
	table := sums()
	sum := crc32.Update(0, table, key)
	sum = crc32.Update(sum, table, form[:sumAt])
	return crc32.Update(sum, table, form[sumAt+sumBytes:])
}

// setSum writes the sum of a form into the room that framed has left for it.
func setSum(key, form []byte) { binary.LittleEndian.PutUint32(form[sumAt:], sumOf(key, form)) }

// checkSum returns [backend.ErrUnreadable] if a form is not what was written under the key.
func checkSum(key, form []byte) error {
	if len(form) < sumAt+sumBytes || binary.LittleEndian.Uint32(form[sumAt:]) != sumOf(key, form) {
		return fmt.Errorf("wrong sum: %w", backend.ErrUnreadable)
	}
	return nil
}
