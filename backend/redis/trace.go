package redis

import (
	"context"
	"time"

	"github.com/sluicegw/sluice/internal/span"
)

// callTimes are when a batch of a traced request came how far. A sender sets all but queued before it answers.
type callTimes struct {
	queued, sent, replied time.Time
	// calls and bytes are those of the pipeline.
	calls, bytes int
}

// timesOf returns the times of a batch whose request is traced, else nil.
func timesOf(ctx context.Context) *callTimes {
	if !span.Of(ctx).Recording() {
		return nil
	}
	return &callTimes{queued: time.Now()}
}

// noteSent notes that the calls of a pipeline are about to be sent.
func noteSent(calls []*scriptCall) {
	for _, c := range calls {
		if c.times == nil {
			continue
		}
		c.times.sent = time.Now()
		c.times.calls = len(calls)
		for _, other := range calls {
			c.times.bytes += other.size
		}
	}
}

// noteReplied notes that a pipeline was answered, or failed.
func noteReplied(runs []*scriptRun) {
	for _, r := range runs {
		for _, c := range r.calls {
			if c.times != nil {
				c.times.replied = time.Now()
			}
		}
	}
}

// record adds the spans of a batch that was answered: how long it was queued, and its pipeline.
func (t *callTimes) record(ctx context.Context) {
	if t == nil || t.replied.IsZero() {
		return
	}
	span.Past(ctx, span.Queue, t.queued, t.sent)
	span.Past(ctx, span.Pipeline, t.sent, t.replied, span.Group.Int(t.calls), span.Bytes.Int(t.bytes))
}
