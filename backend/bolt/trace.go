package bolt

import (
	"context"
	"time"

	"github.com/sluicegw/sluice/internal/span"
)

// callTimes has the times of a traced call. The goroutine that commits sets group before it answers the call.
type callTimes struct {
	queued time.Time
	group  *groupTimes
}

// groupTimes has the times of a group with a traced call. It is nil for other groups.
type groupTimes struct {
	taken, committed time.Time
	// sync is how long the commit took: writing pages and syncing the file.
	sync         time.Duration
	calls, bytes int
}

// timesOf returns a callTimes for a call if its request is traced; otherwise nil.
func timesOf(ctx context.Context) *callTimes {
	if !span.Of(ctx).Recording() {
		return nil
	}
	return &callTimes{queued: time.Now()}
}

// traceGroup returns a groupTimes for a group that was just taken; nil if none of its calls is traced.
func traceGroup(group []*call) (out *groupTimes) {
	for _, w := range group {
		if w.times == nil {
			continue
		}
		if out == nil {
			out = &groupTimes{taken: time.Now(), calls: len(group)}
		}
		w.times.group = out
	}
	if out != nil {
		for _, w := range group {
			out.bytes += w.size
		}
	}
	return out
}

// timed returns a function that calls commit and records how long it took.
func (g *groupTimes) timed(commit func() error) func() error {
	if g == nil {
		return commit
	}
	return func() error {
		begin := time.Now()
		err := commit()
		g.committed = time.Now()
		g.sync = g.committed.Sub(begin)
		return err
	}
}

// record adds spans for a call that was answered: the time in the queue, and the commit of its group.
func (t *callTimes) record(ctx context.Context) {
	if t == nil || t.group == nil {
		return
	}
	g := t.group
	end := g.committed
	if end.IsZero() { // nothing was committed
		end = time.Now()
	}
	span.Past(ctx, span.Queue, t.queued, g.taken)
	span.Past(
		ctx, span.Commit, g.taken, end,
		span.Group.Int(g.calls), span.Bytes.Int(g.bytes), span.Sync.Float64(g.sync.Seconds()),
	)
}
