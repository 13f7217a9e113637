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

// Kept is an answer that is kept. Its bytes never change.
type Kept struct {
	body  []byte
	basis query.Basis
	// used reports whether it has answered a request.
	used atomic.Bool

	tagOnce sync.Once
	tag     string
	zipOnce sync.Once
	zipped  []byte
}

// Body returns the answer as it is sent. Nobody may change it.
func (k *Kept) Body() []byte { return k.body }

// Tag returns the entity tag of the answer: see [Tag].
func (k *Kept) Tag() string {
	k.tagOnce.Do(func() { k.tag = Tag(k.body) })
	return k.tag
}

// zippedShare divides the size of an answer: a compressed form of more than one part is not kept. Most take an eighth.
const zippedShare = 4

// Zipped returns the answer compressed by gzip; nil if that saves too little to be kept.
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

// weight returns roughly how many bytes of memory the answer takes with its key.
func (k *Kept) weight(key Key) int {
	const other = 512 // the key and this struct, and what the cache has for them
	return len(k.body) + len(k.body)/zippedShare + len(key.Variables) + len(key.Rights) + other
}

// Tag returns the entity tag of an answer, without quotes: 128 bits of its SHA-256, so that equal answers have equal
// tags at every gateway.
func Tag(body []byte) string {
	const tagBytes = 16
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:tagBytes])
}
