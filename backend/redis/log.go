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

// logRead says what is read of the logs.
type logRead struct {
	// after are the revisions to begin after, by shard; nil reads the states alone.
	after []backend.Revision
	// limit is the maximum number of entries of one shard.
	limit int
	// turn is the shard that is read first. There may be no room left for others.
	turn int
}

// readLog reads the state of each shard's log and the entries after a revision.
// Each shard is read in one step. The entries of all shards together take at most
// [backend.MaxDeliveryBytes], unless there is one that is larger.
func (s *Store) readLog(ctx context.Context, r logRead) (p logPage, err error) {
	n := len(s.core.shards)
	err = s.read(ctx, "log", func(ctx context.Context, ses *session) error {
		p = logPage{states: make([]storekit.LogState, n), entries: make([][]goredis.XMessage, n), more: make([]bool, n)}
		all := make([]int, n)
		for i := range all {
			all[i] = (i + r.turn) % n
		}
		if !s.core.at.Cluster {
			return s.readLogs(ctx, ses, r, all, backend.MaxDeliveryBytes, true, &p)
		}
		// Each shard is a call of its own and has an equal share of the room.
		g, within := errgroup.WithContext(ctx)
		g.SetLimit(maxExchanges)
		for _, i := range all {
			g.Go(func() error {
				return s.readLogs(within, ses, r, []int{i}, backend.MaxDeliveryBytes/n, n == 1, &p)
			})
		}
		if err := g.Wait(); err != nil {
			return err
		}
		for _, i := range all {
			if len(p.entries[i]) > 0 {
				return nil
			}
		}
		for _, i := range all {
			if p.more[i] { // its next entry is larger than its share
				return s.readLogs(ctx, ses, r, []int{i}, backend.MaxDeliveryBytes, true, &p)
			}
		}
		return nil
	})
	return p, err
}

// readLogs reads the logs of shards that are on one server, up to room bytes.
// oversize allows one entry that is larger.
func (s *Store) readLogs(ctx context.Context, ses *session, r logRead, shards []int, room int, oversize bool, p *logPage) error {
	keys, args := make([]string, 0, 2*len(shards)), append(make([]any, 0, 3+len(shards)), r.limit, room, "")
	if oversize {
		args[2] = "1"
	}
	for _, i := range shards {
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
	if len(reply) != len(shards) {
		return fmt.Errorf("log: %d answers for %d shards: %w", len(reply), len(shards), backend.ErrUnavailable)
	}
	for at, i := range shards {
		values, _ := reply[at].([]any)
		if p.states[i], err = s.readState(ses, i, values); err != nil {
			return err
		}
		p.more[i] = text(values, 4) != ""
		if p.entries[i], err = messages(values); err != nil {
			return err
		}
	}
	return nil
}

// messages decodes the entries in the script's answer for one shard.
func messages(values []any) ([]goredis.XMessage, error) {
	if len(values) != 6 {
		return nil, fmt.Errorf("log: an answer of %d parts: %w", len(values), backend.ErrUnavailable)
	}
	list, _ := values[5].([]any)
	out := make([]goredis.XMessage, len(list))
	for i, one := range list {
		entry, _ := one.([]any)
		if len(entry) != 2 {
			return nil, fmt.Errorf("log: an entry of %d parts: %w", len(entry), backend.ErrUnavailable)
		}
		fields := texts(entry[1])
		out[i] = goredis.XMessage{ID: text(entry, 0), Values: make(map[string]any, len(fields)/2)}
		for j := 0; j+1 < len(fields); j += 2 {
			out[i].Values[fields[j]] = fields[j+1]
		}
	}
	return out, nil
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

// ends says whether nothing lies between a revision and the beginning of a later epoch.
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
