package storekit

import (
	"slices"

	"github.com/sluicegw/sluice/backend"
)

// LogState is the state of the log of one shard. A driver stores it in the same transaction as the entries.
type LogState struct {
	// Epochs has the last revision of each epoch of the log, in ascending order. The last one is current.
	Epochs []backend.Revision
	// Trimmed is the revision of the newest entry that was removed; zero if none was removed.
	Trimmed backend.Revision
	// Internal is the number of changes of internal records, which have no entries. It is never reset.
	Internal uint64
}

// maxEpochs is the maximum number of epochs in the state. The oldest epochs are removed first. Positions in removed
// epochs expire.
const maxEpochs = 1024

// Head returns the revision of the last change. If the current epoch has no change yet, the result has that epoch and
// the sequence 0.
func (s *LogState) Head() backend.Revision {
	if len(s.Epochs) == 0 {
		return backend.Revision{}
	}
	return s.Epochs[len(s.Epochs)-1]
}

// Next returns the revision of the next change of a key, and advances the state by it. Internal records have a separate
// sequence, so the sequence of the entries has no gaps.
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

// Begin begins a new epoch. Earlier copies of the state are not changed.
func (s *LogState) Begin(epoch uint64) {
	s.Epochs = append(slices.Clone(s.Epochs), backend.Revision{Epoch: epoch})
	if n := len(s.Epochs) - maxEpochs; n > 0 {
		s.Epochs = s.Epochs[n:]
	}
}

// Trim records that all entries up to rev were removed. It removes the epochs from which no watch can resume.
func (s *LogState) Trim(rev backend.Revision) {
	s.Trimmed = rev
	i := slices.IndexFunc(s.Epochs, func(e backend.Revision) bool { return e.Epoch >= rev.Epoch })
	s.Epochs = s.Epochs[max(i, 0):]
}

// Clone returns a copy that shares no memory.
func (s *LogState) Clone() LogState {
	return LogState{Epochs: slices.Clone(s.Epochs), Trimmed: s.Trimmed, Internal: s.Internal}
}

// Resume returns nil if all changes after r can be delivered. Otherwise it returns ErrPositionExpired: the log does not
// have the epoch, the sequence is greater than the last one of the epoch, or entries after r were removed.
func (s *LogState) Resume(r backend.Revision) error {
	i := slices.IndexFunc(s.Epochs, func(e backend.Revision) bool { return e.Epoch == r.Epoch })
	if i < 0 || r.Seq > s.Epochs[i].Seq || r.Compare(s.Trimmed) < 0 {
		return backend.ErrPositionExpired
	}
	return nil
}

// Shared returns the revision at which a new watch can begin, if this log has lost changes of the history in which r
// was seen. It is the last revision of r's epoch in this log. Shared returns zero if nothing of that epoch was lost, if
// the log does not have the epoch, or if it cannot resume at that revision.
func (s *LogState) Shared(r backend.Revision) backend.Revision {
	i := slices.IndexFunc(s.Epochs, func(e backend.Revision) bool { return e.Epoch == r.Epoch })
	if i < 0 || r.Seq <= s.Epochs[i].Seq || s.Resume(s.Epochs[i]) != nil {
		return backend.Revision{}
	}
	return s.Epochs[i]
}

// Follows reports whether entry is the revision of the first log entry after r. [LogState.Resume] must accept r. A log
// may have an entry with the sequence 0 at the beginning of an epoch.
func (s *LogState) Follows(r, entry backend.Revision) bool {
	if entry.Epoch == r.Epoch {
		return entry.Seq == r.Seq+1
	}
	return entry.Epoch > r.Epoch && entry.Seq <= 1 && s.Resume(entry) == nil &&
		s.Behind(r) == s.Behind(backend.Revision{Epoch: entry.Epoch})
}

// Behind returns the number of changes after r. [LogState.Resume] must accept r.
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
