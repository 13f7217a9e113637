package redis

import (
	"crypto/sha1"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"

	"github.com/sluicegw/sluice/backend"
)

// Redis checks the sums of its snapshots, but not the commands in its append-only file. Therefore each record and each
// log entry has sums:
//
//	bodies and changes    CRC-32C (Castagnoli), four bytes, little-endian: made by the gateway, since Lua would take long
//	headers of records    of the key, all fields and the references: made by the script, and checked by it, too
//	heads of log entries  of the revision, the head, and the sum of the change: made by the script
//
// The sums made by scripts are the first digits of a SHA-1 in hexadecimal, the only checksum that Redis offers to
// scripts. They detect flipped bits, and records that are stored under the wrong key. They do not protect against a
// person who can write to Redis.
const (
	bodySumBytes = 4
	// sumDigits is the length of a sum made by a script, SUM in batch.lua.
	sumDigits = 8
)

// bodySum returns the CRC-32C of a body or a change.
func bodySum(b []byte) (sum [bodySumBytes]byte) {
	binary.LittleEndian.PutUint32(sum[:], crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))
	return sum
}

func appendBodySum(dst, b []byte) []byte {
	sum := bodySum(b)
	return append(dst, sum[:]...)
}

func isBodySum(sum string, b []byte) bool {
	want := bodySum(b)
	return string(want[:]) == sum
}

// sumRoom is the capacity for the text to be summed, which is rarely longer.
const sumRoom = 1 << 10

// sumMatches reports whether sum is the sum that a script would make of b.
func sumMatches(b []byte, sum string) bool {
	full := sha1.Sum(b)
	var digits [sumDigits]byte
	hex.Encode(digits[:], full[:sumDigits/2])
	return string(digits[:]) == sum
}

func wrongSum(of string) error {
	return fmt.Errorf("wrong sum of the %s: %w", of, backend.ErrUnreadable)
}

// check returns [backend.ErrUnreadable] if the header is damaged or was written under another key.
func (h *header) check(k backend.Key) error {
	var room [sumRoom]byte
	b := k.Append(room[:0])
	b = append(b, h.fields...)
	b = append(b, h.refs...)
	if !sumMatches(b, h.sum) {
		return wrongSum("header")
	}
	return nil
}

// checkBody returns [backend.ErrUnreadable] if body is not the one that was written with the header.
func (h *header) checkBody(body []byte) error {
	if !isBodySum(h.bodySum, body) {
		return wrongSum("body")
	}
	return nil
}

// takeChange splits a stored change into the change and its sum, and checks the sum. Without a change, both are empty.
func takeChange(stored string) (change []byte, sum string, err error) {
	if stored == "" {
		return nil, "", nil
	}
	if len(stored) <= bodySumBytes {
		return nil, "", badRecord()
	}
	sum = stored[:bodySumBytes]
	change = []byte(stored[bodySumBytes:])
	if !isBodySum(sum, change) {
		return nil, "", wrongSum("change")
	}
	return change, sum, nil
}
