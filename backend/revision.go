package backend

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

// Revision is the number of a change of one shard. Within an epoch, the sequence numbers start at 1 and have no gaps. A
// greater epoch is a later history. The zero value means no revision. For clients it is an opaque string.
type Revision struct{ Epoch, Seq uint64 }

// IsZero reports whether r stands for no revision.
func (r Revision) IsZero() bool { return r == Revision{} }

// Compare returns -1, 0 or +1 if r is before, equal to or after o. Both must be revisions of one shard.
func (r Revision) Compare(o Revision) int {
	if r.Epoch != o.Epoch {
		return cmp.Compare(r.Epoch, o.Epoch)
	}
	return cmp.Compare(r.Seq, o.Seq)
}

// String returns the revision as "<epoch>-<seq>", "" for the zero value.
func (r Revision) String() string {
	if r.IsZero() {
		return ""
	}
	b := strconv.AppendUint(make([]byte, 0, 40), r.Epoch, 10)
	return string(strconv.AppendUint(append(b, '-'), r.Seq, 10))
}

// ParseRevision parses the text of [Revision.String], and refuses any other form, so that each revision has exactly
// one. A caller may treat text that cannot be parsed as a revision that no resource has.
func ParseRevision(s string) (Revision, error) {
	e, q, _ := strings.Cut(s, "-")
	epoch, err1 := strconv.ParseUint(e, 10, 64)
	seq, err2 := strconv.ParseUint(q, 10, 64)
	r := Revision{Epoch: epoch, Seq: seq}
	if err1 != nil || err2 != nil || r.IsZero() || e[0] == '0' && len(e) > 1 || q[0] == '0' && len(q) > 1 {
		return Revision{}, fmt.Errorf("revision %.40q: %w", s, ErrInvalid)
	}
	return r, nil
}

const (
	epochRandomBits = 20
	// MaxEpoch is the greatest epoch that a driver may store. Languages that read integers as doubles represent it
	// exactly.
	MaxEpoch = 1<<53 - 1
)

// NextEpoch returns an epoch for a new history. It equals the epoch of another history with a probability of one in a
// million, so two copies of a store that are continued separately get different epochs. It is max(previous, unix
// seconds << 20) + 1 + random(2^20).
func NextEpoch(previous uint64, now time.Time, rnd *rand.Rand) (uint64, error) {
	if now.Unix() > MaxEpoch>>epochRandomBits {
		return 0, fmt.Errorf("epoch at %s; the clock is wrong: %w", now.UTC().Format(time.RFC3339), ErrInvalid)
	}
	next := max(previous, uint64(max(now.Unix(), 0))<<epochRandomBits) + 1 + rnd.Uint64N(1<<epochRandomBits)
	if next > MaxEpoch {
		return 0, fmt.Errorf("epoch %d is over %d; the clock is wrong: %w", next, uint64(MaxEpoch), ErrInvalid)
	}
	return next, nil
}
