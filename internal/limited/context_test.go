package limited_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicegw/sluice/internal/limited"
)

// ofTest is the key of a value.
type ofTest struct{}

func TestALimitedContextEndsAtItsDeadlineWhetherOrNotSomebodyWaits(t *testing.T) {
	for name, look := range map[string]func(context.Context){
		"asked":  func(context.Context) { time.Sleep(time.Minute) },
		"waited": func(ctx context.Context) { <-ctx.Done() },
		"of a child": func(ctx context.Context) {
			child, cancel := context.WithCancel(context.WithValue(ctx, ofTest{}, 1))
			defer cancel()
			<-child.Done()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				ctx := limited.Until(t.Context(), begin.Add(time.Second))
				defer ctx.Cancel()
				if ctx.Err() != nil {
					t.Error("it has ended before:", ctx.Err())
				}
				look(ctx)
				if !errors.Is(ctx.Err(), context.DeadlineExceeded) || !errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
					t.Errorf("after %v: %v, because %v", time.Since(begin), ctx.Err(), context.Cause(ctx))
				}
				if name != "asked" && time.Since(begin) != time.Second {
					t.Error("it ended after", time.Since(begin))
				}
			})
		})
	}
}

func TestALimitedContextEndsWithThatOfItsRequest(t *testing.T) {
	reason := errors.New("the client has gone")
	request, leave := context.WithCancelCause(t.Context())
	asked, waited := limited.Until(request, time.Now().Add(time.Hour)), limited.Until(request, time.Now().Add(time.Hour))
	defer asked.Cancel()
	defer waited.Cancel()
	done := waited.Done()
	leave(reason)
	<-done
	for _, ctx := range []context.Context{asked, waited} {
		if !errors.Is(ctx.Err(), context.Canceled) || !errors.Is(context.Cause(ctx), reason) {
			t.Errorf("%v, because %v", ctx.Err(), context.Cause(ctx))
		}
	}
}

func TestALimitedContextEndsWhenItIsCancelled(t *testing.T) {
	for _, first := range []bool{true, false} {
		ctx := limited.Until(t.Context(), time.Now().Add(time.Hour))
		if first {
			_ = ctx.Done()
		}
		ctx.Cancel()
		if !errors.Is(ctx.Err(), context.Canceled) {
			t.Error(ctx.Err())
		}
		<-ctx.Done()
	}
}

func TestALimitedContextKeepsTheSoonerDeadline(t *testing.T) {
	soon := time.Now().Add(time.Minute)
	request, cancel := context.WithDeadline(t.Context(), soon)
	defer cancel()
	ctx := limited.Until(request, soon.Add(time.Hour))
	defer ctx.Cancel()
	if end, ok := ctx.Deadline(); !ok || !end.Equal(soon) {
		t.Error(end, ok)
	}
}
