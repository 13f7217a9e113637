package answer

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"sync"
	"sync/atomic"

	"github.com/sluicegw/sluice/backend/service/query"
)

// Kept is a kept answer. Its bytes never change.
type Kept struct {
	body  []byte
	basis query.Basis
	// used reports whether the answer was ever used.
	used atomic.Bool

	tagOnce sync.Once
	tag     string
	zipOnce sync.Once
	zipped  []byte
}

// Body returns the answer in the form in which it is sent. It must not be changed.
func (k *Kept) Body() []byte { return k.body }

// Tag returns the entity tag of the answer, see the function [Tag].
func (k *Kept) Tag() string {
	k.tagOnce.Do(func() { k.tag = Tag(k.body) })
	return k.tag
}

// zippedShare limits the size of compressed answers. A compressed form is kept only if it has at most 1/zippedShare of
// the answer's size. Most have an eighth.
const zippedShare = 4

// Zipped returns the answer compressed with gzip; nil if that would save too little.
func (k *Kept) Zipped() []byte {
	k.zipOnce.Do(func() {
		var out bytes.Buffer
		zip, _ := gzip.NewWriterLevel(&out, gzip.BestSpeed) // the level exists
		_, _ = zip.Write(k.body)                            // a buffer takes everything
		_ = zip.Close()
		if out.Len() <= len(k.body)/zippedShare {
			k.zipped = bytes.Clone(out.Bytes())
		}
	})
	return k.zipped
}

// weight returns the approximate number of bytes that the answer and its key take in memory.
func (k *Kept) weight(key Key) int {
	const other = 512 // the key and this struct, and what the cache has for them
	return len(k.body) + len(k.body)/zippedShare + len(key.Variables) + len(key.Rights) + other
}

// Tag returns the entity tag of an answer, without quotes. It has 128 bits of the SHA-256 of the answer. Thus equal
// answers have equal tags on all gateways.
func Tag(body []byte) string {
	const tagBytes = 16
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:tagBytes])
}
