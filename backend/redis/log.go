package redis

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	goredis "github.com/redis/go-redis/v9"

	"github.com/sluicegw/sluice/backend"
)

// askState asks for what the log of a shard knows of itself.
func askState(ctx context.Context, pipe goredis.Pipeliner, sh *shard) *goredis.SliceCmd {
	return pipe.HMGet(ctx, sh.meta, "epoch", "seq", "trimmed", "epochs")
}

// readState reads it. An epoch that is not the one the session was verified in
// means that other connections than these are to be used.
func (s *Store) readState(ses *session, shard int, cmd *goredis.SliceCmd) (backend.LogState, error) {
	field := make([]string, 4)
	for i, v := range cmd.Val() {
		field[i], _ = v.(string)
	}
	known := s.core.epochs[shard].Load()
	head, err := parseRevision(field[0] + "-" + field[1])
	if err != nil || head.Epoch != known {
		s.core.renew(ses)
	}
	if err != nil || head.Epoch < known {
		return backend.LogState{}, fmt.Errorf("shard %d has lost its place: %w", shard, backend.ErrUnavailable)
	}
	state, err := parseState(head, field[2], field[3])
	if err != nil {
		return backend.LogState{}, fmt.Errorf("shard %d: %w", shard, err)
	}
	return state, nil
}

// parseState reads the trim mark, which may be empty, and the older epochs, each
// with its last sequence and ended by a space.
func parseState(head backend.Revision, trimmed, epochs string) (state backend.LogState, err error) {
	for _, e := range strings.Fields(epochs) {
		r, err := parseRevision(e)
		if err != nil {
			return backend.LogState{}, fmt.Errorf("epochs: %w", backend.ErrFormat)
		}
		state.Epochs = append(state.Epochs, r)
	}
	state.Epochs = append(state.Epochs, head)
	if trimmed != "" {
		if state.Trimmed, err = parseRevision(trimmed); err != nil {
			return backend.LogState{}, fmt.Errorf("trim mark: %w", backend.ErrFormat)
		}
	}
	return state, nil
}

// logPage is a view of the logs of all shards.
type logPage struct {
	states  []backend.LogState
	entries [][]goredis.XMessage
}

// readLog reads the state of each shard's log and at most limit entries after
// the position, from one state of each shard.
func (s *Store) readLog(ctx context.Context, after []backend.Revision, limit int) (p logPage, err error) {
	err = s.read(ctx, "log", func(ctx context.Context, ses *session) error {
		x := s.exchange(ses, limit == 0)
		states := make([]*goredis.SliceCmd, len(s.core.shards))
		ranges := make([]*goredis.XMessageSliceCmd, len(s.core.shards))
		for i := range s.core.shards {
			sh, pipe := &s.core.shards[i], x.on(i)
			states[i] = askState(ctx, pipe, sh)
			if limit > 0 && !after[i].IsZero() {
				ranges[i] = pipe.XRangeN(ctx, sh.log, "("+streamID(after[i]), "+", int64(limit))
			}
		}
		if err := x.run(ctx); err != nil {
			return err
		}
		p = logPage{states: make([]backend.LogState, len(states)), entries: make([][]goredis.XMessage, len(states))}
		for i, cmd := range states {
			var err error
			if p.states[i], err = s.readState(ses, i, cmd); err != nil {
				return err
			}
			if ranges[i] != nil {
				p.entries[i] = ranges[i].Val()
			}
		}
		return nil
	})
	return p, err
}

// streamID is the id of the entry of a revision; that of an epoch's beginning has the sequence 0.
func streamID(r backend.Revision) string {
	return strconv.FormatUint(r.Epoch, 10) + "-" + strconv.FormatUint(r.Seq, 10)
}

// follow decodes the entries of one shard that follow a revision without a gap.
// It returns the events, where they end, and ErrPositionExpired where something
// is missing or does not decode.
func follow(state *backend.LogState, at backend.Revision, entries []goredis.XMessage) ([]backend.Event, backend.Revision, error) {
	var events []backend.Event
	shared := names{}
	for _, m := range entries {
		e, ok, err := shared.entry(m)
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
		if ok && !e.Resource.Internal() {
			events = append(events, e)
		}
	}
	return events, at, nil
}

// ends says whether nothing lies between a revision and the beginning of a later epoch.
func ends(state *backend.LogState, at backend.Revision, next uint64) bool {
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
