package redis

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	goredis "github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/storekit"
)

// askHead asks where a shard's log ends.
func askHead(ctx context.Context, pipe goredis.Pipeliner, sh *shard) *goredis.SliceCmd {
	return pipe.HMGet(ctx, sh.meta, "epoch", "seq")
}

// readState decodes the state of a shard's log, as log.lua reads it, or the part of it
// that askHead asks for. If the epoch is not the one in which
// the session was verified, the session is renewed.
func (s *Store) readState(ses *session, shard int, values []any) (storekit.LogState, error) {
	epoch, seq := text(values, 0), text(values, 1)
	known := s.core.epochs[shard].Load()
	head, err := parseRevision(epoch + "-" + seq)
	if err != nil || head.Epoch != known {
		s.core.renew(ses)
	}
	if err != nil || head.Epoch < known {
		return storekit.LogState{}, fmt.Errorf("shard %d has lost its place: %w", shard, backend.ErrUnavailable)
	}
	s.core.see(shard, head)
	state, err := parseState(head, text(values, 2), text(values, 3))
	if err != nil {
		return storekit.LogState{}, fmt.Errorf("shard %d: %w", shard, err)
	}
	return state, nil
}

// parseState decodes the trim mark, which may be empty, and the older epochs, each
// with its last sequence and followed by a space.
func parseState(head backend.Revision, trimmed, epochs string) (state storekit.LogState, err error) {
	for _, e := range strings.Fields(epochs) {
		r, err := parseRevision(e)
		if err != nil {
			return storekit.LogState{}, fmt.Errorf("epochs: %w", backend.ErrFormat)
		}
		state.Epochs = append(state.Epochs, r)
	}
	state.Epochs = append(state.Epochs, head)
	if trimmed != "" {
		if state.Trimmed, err = parseRevision(trimmed); err != nil {
			return storekit.LogState{}, fmt.Errorf("trim mark: %w", backend.ErrFormat)
		}
	}
	return state, nil
}

// logPage is a view of the logs of all shards.
type logPage struct {
	states  []storekit.LogState
	entries [][]goredis.XMessage
	// more says, by shard, whether the log may go on after the entries.
	more []bool
}

// logRead selects what is read of the logs.
type logRead struct {
	// after are the revisions to begin after, by shard; nil reads the states alone.
	after []backend.Revision
	// limit is the maximum number of entries of one shard.
	limit int
	// turn is the shard that is read first. There may be no room left for others.
	turn int

	shards []int // on one server
	room   int   // the maximum number of bytes of all their entries
	// oversize allows one entry that is larger than room.
	oversize bool
}

// readLog reads the state of each shard's log and the entries after a revision.
// Each shard is read in one step. The entries of all shards together take at most
// [backend.MaxDeliveryBytes], unless there is one that is larger.
func (s *Store) readLog(ctx context.Context, r logRead) (p logPage, err error) {
	n := len(s.core.shards)
	for i := range n {
		r.shards = append(r.shards, (i+r.turn)%n)
	}
	r.room, r.oversize = backend.MaxDeliveryBytes, true
	err = s.read(ctx, "log", func(ctx context.Context, ses *session) error {
		p = logPage{states: make([]storekit.LogState, n), entries: make([][]goredis.XMessage, n), more: make([]bool, n)}
		if !s.core.at.Cluster {
			return s.readLogs(ctx, ses, r, &p)
		}
		// Each shard is a call by itself and has an equal share of the room.
		g, within := errgroup.WithContext(ctx)
		g.SetLimit(maxExchanges)
		for _, i := range r.shards {
			one := r
			one.shards, one.room, one.oversize = []int{i}, r.room/n, n == 1
			g.Go(func() error { return s.readLogs(within, ses, one, &p) })
		}
		if err := g.Wait(); err != nil {
			return err
		}
		if slices.ContainsFunc(p.entries, func(e []goredis.XMessage) bool { return len(e) > 0 }) {
			return nil
		}
		for _, i := range r.shards {
			if p.more[i] { // its next entry is larger than its share
				one := r
				one.shards = []int{i}
				return s.readLogs(ctx, ses, one, &p)
			}
		}
		return nil
	})
	return p, err
}

// readLogs reads the logs of shards that are on one server.
func (s *Store) readLogs(ctx context.Context, ses *session, r logRead, p *logPage) error {
	keys, args := make([]string, 0, 2*len(r.shards)), append(make([]any, 0, 3+len(r.shards)), r.limit, r.room, "")
	if r.oversize {
		args[2] = "1"
	}
	for _, i := range r.shards {
		sh := &s.core.shards[i]
		keys = append(keys, sh.meta, sh.log)
		place := ""
		if r.after != nil && !r.after[i].IsZero() {
			place = streamID(r.after[i])
		}
		args = append(args, place)
	}
	reply, err := s.core.scripts.log.run(ctx, ses.client, keys, args...)
	if err != nil {
		return err
	}
	for at, i := range r.shards {
		values, _ := reply[at].([]any)
		if p.states[i], err = s.readState(ses, i, values); err != nil {
			return err
		}
		p.more[i], p.entries[i] = text(values, 4) != "", messages(values[5])
	}
	return nil
}

// messages reads a list of entries in a script's answer.
func messages(list any) []goredis.XMessage {
	entries, _ := list.([]any)
	out := make([]goredis.XMessage, len(entries))
	for i := range entries {
		entry := entries[i].([]any)
		fields := texts(entry[1])
		out[i] = goredis.XMessage{ID: text(entry, 0), Values: make(map[string]any, len(fields)/2)}
		for j := 0; j+1 < len(fields); j += 2 {
			out[i].Values[fields[j]] = fields[j+1]
		}
	}
	return out
}

// streamID is the stream id for a revision. The entry that begins an epoch has the
// sequence 0.
func streamID(r backend.Revision) string {
	return strconv.FormatUint(r.Epoch, 10) + "-" + strconv.FormatUint(r.Seq, 10)
}

// follow decodes entries of one shard as long as they follow the revision at
// without a gap. It returns the events and the revision where they end, and
// ErrPositionExpired if something is missing or does not decode.
func follow(state *storekit.LogState, at backend.Revision, entries []goredis.XMessage) ([]backend.Event, backend.Revision, error) {
	var events []backend.Event
	for _, m := range entries {
		e, ok, err := decodeEntry(m)
		if err != nil {
			return events, at, err
		}
		switch {
		case e.Revision.Epoch == at.Epoch && e.Revision.Seq == at.Seq+1:
		case e.Revision.Epoch > at.Epoch && e.Revision.Seq <= 1 && ends(state, at, e.Revision.Epoch):
		default:
			return events, at, fmt.Errorf("%s follows %s: %w", m.ID, at, backend.ErrPositionExpired)
		}
		at = e.Revision
		if ok {
			events = append(events, e)
		}
	}
	return events, at, nil
}

// ends reports whether nothing lies between a revision and the beginning of a later epoch.
func ends(state *storekit.LogState, at backend.Revision, next uint64) bool {
	i := slices.IndexFunc(state.Epochs, func(e backend.Revision) bool { return e.Epoch == at.Epoch })
	if i < 0 || state.Epochs[i].Seq != at.Seq {
		return false
	}
	for _, e := range state.Epochs[i+1:] {
		if e.Epoch == next {
			return true
		}
		if e.Seq > 0 {
			return false
		}
	}
	return false
}
