package backend

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"slices"
)

// Position is a position in the log: for each shard, the revision of the last change that was seen. It is immutable.
// The zero value means "now" when a watch begins; a store never returns it.
type Position struct {
	shards []Revision
	text   string // the result of String, if it was computed in advance
}

// NewPosition returns the position after all changes up to the given revision of each shard.
func NewPosition(shards ...Revision) Position { return Position{shards: slices.Clone(shards)} }

// IsZero reports whether p is the zero value.
func (p Position) IsZero() bool { return len(p.shards) == 0 }

// Shards returns the number of shards of the position's store.
func (p Position) Shards() int { return len(p.shards) }

// Shard returns the revision of shard i; zero if there is no such shard.
func (p Position) Shard(i int) Revision {
	if i < 0 || i >= len(p.shards) {
		return Revision{}
	}
	return p.shards[i]
}

// With returns p with the revision r for shard i, which must exist.
func (p Position) With(i int, r Revision) Position {
	shards := slices.Clone(p.shards)
	shards[i] = r
	return Position{shards: shards}
}

// Covers reports whether p is at or after o on every shard.
func (p Position) Covers(o Position) bool {
	for i, r := range o.shards {
		if p.Shard(i).Compare(r) < 0 {
			return false
		}
	}
	return true
}

// Equal reports whether p and o are equal.
func (p Position) Equal(o Position) bool { return slices.Equal(p.shards, o.shards) }

const (
	positionFormat = 1
	maxShards      = 256
)

// String returns the wire form of the position: in base64url, a format byte, the number of shards, and for each shard
// its epoch and its sequence number, all as varints. It is "" for the zero value.
func (p Position) String() string {
	if p.IsZero() || p.text != "" {
		return p.text
	}
	b := append(make([]byte, 0, 2+len(p.shards)*12), positionFormat)
	b = binary.AppendUvarint(b, uint64(len(p.shards)))
	for _, r := range p.shards {
		b = binary.AppendUvarint(binary.AppendUvarint(b, r.Epoch), r.Seq)
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

// Written returns the same position with its wire form computed in advance. It is for positions whose String is called
// often.
func (p Position) Written() Position {
	p.text = p.String()
	return p
}

// ParsePosition parses the wire form of [Position.String]. It returns ErrInvalid for any other text.
func ParsePosition(s string) (Position, error) {
	bad := fmt.Errorf("position %.40q: %w", s, ErrInvalid)
	b, err := base64.RawURLEncoding.Strict().DecodeString(s)
	if err != nil || len(b) == 0 || b[0] != positionFormat {
		return Position{}, bad
	}
	b = b[1:]
	take := func() (v uint64) {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			err = bad
			return 0
		}
		b = b[n:]
		return v
	}
	n := take()
	if err != nil || n == 0 || n > maxShards {
		return Position{}, bad
	}
	p := Position{shards: make([]Revision, n)}
	for i := range p.shards {
		p.shards[i] = Revision{Epoch: take(), Seq: take()}
	}
	if err != nil || len(b) > 0 || p.String() != s {
		return Position{}, bad
	}
	return p, nil
}
