package bolt

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/sluicegw/sluice/backend"
)

// bbolt has no checksums for its pages. Therefore each record and each log entry has a sum, the CRC-32C (Castagnoli) of
// its key and its form. The sums detect flipped bits, and records that are stored under a wrong key. The record of the
// log's state ends with a sum of what precedes it.

// sumBytes is the length of a sum. In a form, it follows the version byte.
const sumBytes = 4

// sumAt is the offset of the sum in a form.
const sumAt = 1

// sums returns the table for CRC-32C, which package crc32 computes only once.
func sums() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// sumOf returns the sum of a form that is stored under a key. form may be only the part that the sum covers.
func sumOf(key, form []byte) uint32 {
	table := sums()
	sum := crc32.Update(0, table, key)
	sum = crc32.Update(sum, table, form[:sumAt])
	return crc32.Update(sum, table, form[sumAt+sumBytes:])
}

// setSum writes the sum of a form into the space that framed has left for it.
func setSum(key, form []byte) { binary.LittleEndian.PutUint32(form[sumAt:], sumOf(key, form)) }

// checkSum returns [backend.ErrUnreadable] if a form is damaged or was written under another key.
func checkSum(key, form []byte) error {
	if len(form) < sumAt+sumBytes || binary.LittleEndian.Uint32(form[sumAt:]) != sumOf(key, form) {
		return fmt.Errorf("wrong sum: %w", backend.ErrUnreadable)
	}
	return nil
}

// appendSum appends the sum of b to b.
func appendSum(b []byte) []byte {
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, sums()))
}

// cutSum removes the sum from the end of b. It returns [backend.ErrUnreadable] if the sum is wrong.
func cutSum(b []byte) ([]byte, error) {
	end := len(b) - sumBytes
	if end < 0 || binary.LittleEndian.Uint32(b[end:]) != crc32.Checksum(b[:end], sums()) {
		return nil, fmt.Errorf("wrong sum: %w", backend.ErrUnreadable)
	}
	return b[:end], nil
}
