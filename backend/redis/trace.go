package redis

import (
	"context"
	"time"

	"github.com/sluicegw/sluice/internal/span"
)

// callTimes are the times of a traced batch. The sender sets all except queued.
type callTimes struct {
	queued, sent, replied time.Time
	// calls and bytes describe the pipeline of the batch.
	calls, bytes int
}

// timesOf returns a callTimes for a batch if its request is traced; otherwise nil.
func timesOf(ctx context.Context) *callTimes {
	if !span.Of(ctx).Recording() {
		return nil
	}
	return &callTimes{queued: time.Now()}
}

// noteSent records that a pipeline is about to be sent.
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

// noteReplied records that a pipeline was answered or has failed.
func noteReplied(runs []*scriptRun) {
	for _, r := range runs {
		for _, c := range r.calls {
			if c.times != nil {
				c.times.replied = time.Now()
			}
		}
	}
}

// record adds spans for a batch that was answered: the time in the queue, and the pipeline.
func (t *callTimes) record(ctx context.Context) {
	if t == nil || t.replied.IsZero() {
		return
	}
	span.Past(ctx, span.Queue, t.queued, t.sent)
	span.Past(ctx, span.Pipeline, t.sent, t.replied, span.Group.Int(t.calls), span.Bytes.Int(t.bytes))
}
