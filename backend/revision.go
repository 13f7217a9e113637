package backend

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

// Revision numbers one change of one shard. Within an epoch the sequence has no gaps
// and starts at 1; a greater epoch is a later history. The zero value means no
// revision. Clients treat it as an opaque string.
type Revision struct{ Epoch, Seq uint64 }

// IsZero reports whether r stands for no revision.
func (r Revision) IsZero() bool { return r == Revision{} }

// Compare orders revisions of one shard: -1, 0 or +1.
func (r Revision) Compare(o Revision) int {
	if r.Epoch != o.Epoch {
		return cmp.Compare(r.Epoch, o.Epoch)
	}
	return cmp.Compare(r.Seq, o.Seq)
}

// String is "<epoch>-<seq>", or "" for the zero value.
func (r Revision) String() string {
	if r.IsZero() {
		return ""
	}
	b := strconv.AppendUint(make([]byte, 0, 40), r.Epoch, 10)
	return string(strconv.AppendUint(append(b, '-'), r.Seq, 10))
}

// ParseRevision reads what [Revision.String] wrote, and nothing else, so each revision
// has one form. Text that does not parse matches no resource.
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
	// MaxEpoch is the greatest epoch that a driver may store: every language that reads
	// integers as doubles keeps it exact.
	MaxEpoch = 1<<53 - 1
)

// NextEpoch returns an epoch that no other history has, with a probability of error of
// one in a million: max(previous, unix seconds << 20) + 1 + random(2^20). Two copies of
// one store that go on separately get different epochs.
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
