package stream_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/sluicegw/sluice/graph/stream"
)

// queued are the payloads that a queue gives next, up to so many bytes.
func queued(q *stream.Queue, most int) (out string, ended bool) {
	frames, ended := q.Take(nil, most)
	for i := range frames {
		out += string(frames[i].Payload) + " "
	}
	return out, ended
}

func frame(from any, payload string) stream.Frame {
	return stream.Frame{From: from, Payload: []byte(payload)}
}

func TestQueue_AFullQueueMakesWhoPutsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		woken := 0
		q := &stream.Queue{Messages: 2, Bytes: 10, Wake: func(bool) { woken++ }}
		put := make(chan error, 1)
		go func() {
			for _, text := range []string{"much more than ten bytes", "a", "b", "c"} {
				if err := q.Put(t.Context(), nil, frame(nil, text)); err != nil {
					put <- err
				}
			}
			put <- nil
		}()
		for _, want := range []string{"much more than ten bytes ", "a b ", "c ", ""} {
			synctest.Wait()
			if got, ended := queued(q, 100); got != want || ended {
				t.Errorf("%q, want %q", got, want)
			}
		}
		if err := <-put; err != nil || woken != 1 {
			t.Errorf("%v; the writer was woken %d times", err, woken)
		}
		q.Finish(frame(nil, "last"))
		if err := q.Put(t.Context(), nil, frame(nil, "late")); err == nil {
			t.Error("something follows the last frame")
		}
		if got, _ := queued(q, 100); got != "last " {
			t.Errorf("%q at the end", got)
		}
		if _, ended := queued(q, 100); !ended || woken != 2 {
			t.Errorf("the writer does not see the end, and was woken %d times", woken)
		}
	})
}

func TestQueue_AForgottenOperationHasNothingInTheQueue(t *testing.T) {
	q := &stream.Queue{Messages: 9, Bytes: 100, Wake: func(bool) {}}
	ctx, stop := context.WithCancel(t.Context())
	one, other := new(int), new(int)
	released, accepted := 0, 0
	for _, from := range []any{one, other, one} {
		f := frame(from, "of one")
		if from == other {
			f = frame(other, "of the other")
		}
		f.Release = func() { released++ }
		if err := q.Put(ctx, func() { accepted++ }, f); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	q.Forget(one)
	if err := q.Put(ctx, func() { accepted++ }, frame(one, "late")); !errors.Is(err, context.Canceled) {
		t.Errorf("it queues more: %v", err)
	}
	if got, _ := queued(q, 100); got != "of the other " || released != 2 || accepted != 3 {
		t.Errorf("%q waits, %d were released and %d accepted", got, released, accepted)
	}
	if _, _ = queued(q, 100); released != 3 {
		t.Error("what was written holds memory")
	}
}
