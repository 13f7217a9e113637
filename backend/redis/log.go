package redis

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	goredis "github.com/redis/go-redis/v9"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/storekit"
)

// readState decodes the state of a shard's log from the fields that readLog reads. Position passes only the epoch and
// the sequence. If the epoch is not the one for which the session was verified, readState renews the session.
func (s *Store) readState(ses *session, shard int, values []any) (storekit.LogState, error) {
	epoch, seq := text(values, 0), text(values, 1)
	known := s.core.epochs[shard].Load()
	head, err := backend.ParseRevision(epoch + "-" + seq)
	if err != nil || head.Epoch != known {
		s.core.renew(ses)
	}
	if err != nil || head.Epoch < known {
		return storekit.LogState{}, fmt.Errorf("shard %d has lost its place: %w", shard, backend.ErrUnavailable)
	}
	s.core.noteHead(shard, head)
	state, err := parseState(head, text(values, 2), text(values, 3))
	if err != nil {
		return storekit.LogState{}, fmt.Errorf("shard %d: %w", shard, err)
	}
	return state, nil
}

// parseState decodes the trim mark, which may be empty, and the list of earlier epochs. The list has the last revision
// of each epoch, followed by a space.
func parseState(head backend.Revision, trimmed, epochs string) (state storekit.LogState, err error) {
	for _, e := range strings.Fields(epochs) {
		r, err := backend.ParseRevision(e)
		if err != nil {
			return storekit.LogState{}, backend.FormatErrorf("epochs")
		}
		state.Epochs = append(state.Epochs, r)
	}
	state.Epochs = append(state.Epochs, head)
	if trimmed != "" {
		if state.Trimmed, err = backend.ParseRevision(trimmed); err != nil {
			return storekit.LogState{}, backend.FormatErrorf("trim mark")
		}
	}
	return state, nil
}

// logPage is a part of the logs of all shards.
type logPage struct {
	states  []storekit.LogState
	entries [][]goredis.XMessage
	// more reports, for each shard, whether its log may have more entries.
	more []bool
}

// logRead selects a part of the logs.
type logRead struct {
	// after has, for each shard, the revision after which to read. If it is nil, only the states are read.
	after []backend.Revision
	// limit is the maximum number of entries from one shard.
	limit int
	// turn is the shard whose entries are read first. There may be no room for entries of other shards.
	turn int
}

// maxEntryHead is an upper bound for the size of the field h of an entry, without references.
const maxEntryHead = 4 << 10

// readLog reads the state of each shard's log and the entries after a revision. Each shard is read in one step. All
// entries together have at most [backend.MaxDeliveryBytes], unless there is only one. The number of entries to request
// is computed as if each were as large as the largest one ever written to the shard, which the previous read has shown.
func (s *Store) readLog(ctx context.Context, r logRead) (p logPage, err error) {
	n := len(s.core.shards)
	err = s.read(ctx, "log", func(ctx context.Context, ses *session) error {
		p = logPage{states: make([]storekit.LogState, n), entries: make([][]goredis.XMessage, n), more: make([]bool, n)}
		x := s.exchange(ses)
		states := make([]*goredis.SliceCmd, n)
		entries := make([]*goredis.XMessageSliceCmd, n)
		limits := make([]int, n)
		for i := range n {
			sh := &s.core.shards[i]
			states[i] = x.on(i).HMGet(ctx, sh.meta, "epoch", "seq", "trimmed", "epochs", "largest")
			if r.after != nil && !r.after[i].IsZero() {
				largest := cmp.Or(int(s.core.largest[i].Load()), backend.MaxResourceBytes) // 0: it is not known yet
				limits[i] = min(max(backend.MaxDeliveryBytes/n/(largest+maxEntryHead), 1), r.limit)
				entries[i] = x.on(i).XRangeN(ctx, sh.log, "("+streamID(r.after[i]), "+", int64(limits[i]))
			}
		}
		if err := x.run(ctx); err != nil {
			return err
		}
		room, first := backend.MaxDeliveryBytes, true
		for j := range n {
			i := (j + r.turn) % n
			values := states[i].Val()
			if p.states[i], err = s.readState(ses, i, values); err != nil {
				return err
			}
			s.core.largest[i].Store(parseLargest(text(values, 4)))
			if entries[i] == nil {
				continue
			}
			found := entries[i].Val()
			p.more[i] = len(found) == limits[i]
			for at := range found {
				room -= entrySize(found[at])
				if room < 0 && !first {
					found, p.more[i] = found[:at], true
					break
				}
				first = false
			}
			p.entries[i] = found
		}
		return nil
	})
	return p, err
}

// streamID returns the stream id for a revision. The entry that begins an epoch has sequence number 0.
func streamID(r backend.Revision) string {
	return strconv.FormatUint(r.Epoch, 10) + "-" + strconv.FormatUint(r.Seq, 10)
}

// follow decodes entries of one shard. The first one must follow the revision at without a gap, and each other one must
// follow the previous one. follow returns the events, and the revision of the last entry. If an entry is missing or
// does not decode, follow returns the events before it, and ErrPositionExpired.
func follow(
	state *storekit.LogState, at backend.Revision, entries []goredis.XMessage,
) ([]backend.Event, backend.Revision, error) {
	var events []backend.Event
	for _, m := range entries {
		e, ok, err := decodeEntry(m)
		if err != nil {
			return events, at, err
		}
		if !state.Follows(at, e.Revision) {
			return events, at, fmt.Errorf("%s follows %s: %w", m.ID, at, backend.ErrPositionExpired)
		}
		at = e.Revision
		if ok {
			events = append(events, e)
		}
	}
	return events, at, nil
}
