package storekit

import (
	"slices"

	"github.com/sluicegw/sluice/backend"
)

// LogState is the state of the log of one shard. Drivers store it in the transaction that adds
// entries.
type LogState struct {
	// Epochs are the epochs of the log, ascending, each with its last sequence; the last one is
	// current.
	Epochs []backend.Revision
	// Trimmed is the revision of the newest entry that was removed; zero if none was.
	Trimmed backend.Revision
	// Internal counts the changes of internal records, which have no entries. It
	// is never reset.
	Internal uint64
}

// maxEpochs bounds the table. The oldest epochs are dropped first, and their positions
// expire.
const maxEpochs = 1024

// Head returns the revision of the last change, or of the current epoch's beginning.
func (s *LogState) Head() backend.Revision {
	if len(s.Epochs) == 0 {
		return backend.Revision{}
	}
	return s.Epochs[len(s.Epochs)-1]
}

// Next counts a change of a key and returns its revision. Internal records are counted separately,
// so that the sequence of the entries has no gaps.
func (s *LogState) Next(k backend.Key) backend.Revision {
	next := s.Head()
	if k.Internal() {
		s.Internal++
		next.Seq = s.Internal
	} else {
		next.Seq++
		s.Epochs[len(s.Epochs)-1] = next
	}
	return next
}

// Begin starts a new epoch. States that were returned before are not changed.
func (s *LogState) Begin(epoch uint64) {
	s.Epochs = append(slices.Clone(s.Epochs), backend.Revision{Epoch: epoch})
	if n := len(s.Epochs) - maxEpochs; n > 0 {
		s.Epochs = s.Epochs[n:]
	}
}

// Trim records that all entries up to rev were removed, and drops epochs in which no position can
// resume.
func (s *LogState) Trim(rev backend.Revision) {
	s.Trimmed = rev
	i := slices.IndexFunc(s.Epochs, func(e backend.Revision) bool { return e.Epoch >= rev.Epoch })
	s.Epochs = s.Epochs[max(i, 0):]
}

// Clone returns an independent copy.
func (s *LogState) Clone() LogState {
	return LogState{Epochs: slices.Clone(s.Epochs), Trimmed: s.Trimmed, Internal: s.Internal}
}

// Resume returns nil if the changes after r can be delivered without a gap, else
// ErrPositionExpired: the log does not know the epoch, the sequence is past the last
// one of its epoch, or the entries were trimmed.
func (s *LogState) Resume(r backend.Revision) error {
	i := slices.IndexFunc(s.Epochs, func(e backend.Revision) bool { return e.Epoch == r.Epoch })
	if i < 0 || r.Seq > s.Epochs[i].Seq || r.Compare(s.Trimmed) < 0 {
		return backend.ErrPositionExpired
	}
	return nil
}

// Shared returns the last revision that the log shares with a history that has lost
// changes: where the epoch of r ended. It is zero if the log does not know the epoch, or
// cannot resume there.
func (s *LogState) Shared(r backend.Revision) backend.Revision {
	i := slices.IndexFunc(s.Epochs, func(e backend.Revision) bool { return e.Epoch == r.Epoch })
	if i < 0 || r.Seq <= s.Epochs[i].Seq || s.Resume(s.Epochs[i]) != nil {
		return backend.Revision{}
	}
	return s.Epochs[i]
}

// Follows reports whether an entry is the next one after a revision that [LogState.Resume] accepts.
// A log may mark the beginning of an epoch by an entry with the sequence 0.
func (s *LogState) Follows(r, entry backend.Revision) bool {
	if entry.Epoch == r.Epoch {
		return entry.Seq == r.Seq+1
	}
	return entry.Epoch > r.Epoch && entry.Seq <= 1 && s.Resume(entry) == nil &&
		s.Behind(r) == s.Behind(backend.Revision{Epoch: entry.Epoch})
}

// Behind returns the number of changes after r, for an r that [LogState.Resume]
// accepts.
func (s *LogState) Behind(r backend.Revision) int {
	n := uint64(0)
	for _, e := range s.Epochs {
		switch {
		case e.Epoch == r.Epoch:
			n += e.Seq - r.Seq
		case e.Epoch > r.Epoch:
			n += e.Seq
		}
	}
	return int(n)
}
