package standard

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"connectrpc.com/connect"
	"github.com/google/uuid"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/owner"
)

const (
	// maxLog is the maximum number of changed keys that are kept. When there are more, older positions expire.
	maxLog = 10_000
	// settleTime limits the wait for streams to begin. A service may not report the beginning.
	settleTime = 2 * time.Second
	// idleTime is how long the streams stay open after the last call of Changes.
	idleTime = 2 * time.Minute
	// refusalTime is how long no stream is opened after the service has refused one.
	refusalTime = 10 * time.Minute
)

// follower collects the keys of changed resources from streams of events. The first call of Changes opens the streams.
// They are closed if there are no calls for a while.
//
// The streams have no positions, so the follower numbers the changes. Its positions expire when a stream ends, or when
// the log drops keys that follow them. The gateway then compares all resources.
type follower struct {
	plans []*plan
	// refused is set for a while after the service has refused a stream, because it does not have streams or does not
	// allow this gateway to use them.
	refused atomic.Bool

	mu sync.Mutex // guards all below
	// feed has the changes since the streams were opened; nil if they are closed.
	feed   *feed
	closed bool
}

// feed collects the changes from streams that were opened together.
type feed struct {
	// epoch is the first part of the feed's positions.
	epoch string
	// opened is when the streams were opened. begun has a channel for each stream, which is closed when the stream has
	// begun.
	opened time.Time
	begun  []chan struct{}
	// over is closed when a stream has ended. err is the reason.
	over   chan struct{}
	cancel context.CancelFunc
	done   sync.WaitGroup
	idle   *time.Timer

	mu  sync.Mutex // guards all below
	err error
	// log has the changed keys. trimmed is the position before its first element.
	log     []backend.Key
	trimmed int
	// changed is closed at the next change.
	changed chan struct{}
}

func newFollower(plans []*plan) *follower { return &follower{plans: plans} }

// close ends the streams and waits until their goroutines have ended.
func (f *follower) close() {
	f.mu.Lock()
	f.closed = true
	open := f.feed
	f.feed = nil
	f.mu.Unlock()
	if open != nil {
		open.end(fmt.Errorf("the client was closed"))
		open.done.Wait()
	}
}

// open returns the feed. It opens the streams if necessary.
func (f *follower) open(ctx context.Context) (*feed, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, fmt.Errorf("%w: the client was closed", owner.ErrNotSent)
	}
	if f.feed != nil {
		f.feed.idle.Reset(idleTime)
		select {
		case <-f.feed.over:
		default:
			return f.feed, nil
		}
	}
	ctx, cancel := context.WithCancel(access.WithoutCaller(context.WithoutCancel(ctx)))
	out := &feed{
		epoch: uuid.NewString(), opened: time.Now(), over: make(chan struct{}), cancel: cancel,
		changed: make(chan struct{}),
	}
	out.idle = time.AfterFunc(idleTime, func() { out.end(fmt.Errorf("nobody has asked for changes for %s", idleTime)) })
	for _, p := range f.plans {
		begun := make(chan struct{})
		out.begun = append(out.begun, begun)
		out.done.Go(func() {
			err := out.read(ctx, p, begun)
			if ctx.Err() == nil && !isClosed(begun) && isRefusal(err) {
				f.refuse()
			}
			out.end(err)
		})
	}
	f.feed = out
	return out, nil
}

// refuse records that the service has refused a stream.
func (f *follower) refuse() {
	f.refused.Store(true)
	time.AfterFunc(refusalTime, func() { f.refused.Store(false) })
}

// isRefusal reports whether the error of a stream without events means that the service does not have such a stream, or
// does not allow this gateway to use it. It returns false for the answer of a proxy, and for an answer which means that
// the service is temporarily unavailable.
func isRefusal(err error) bool {
	if !connect.IsWireError(err) {
		return false
	}
	switch connect.CodeOf(err) {
	case connect.CodeUnavailable, connect.CodeResourceExhausted, connect.CodeAborted, connect.CodeCanceled,
		connect.CodeDeadlineExceeded:
		return false
	}
	return true
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// end ends the streams. If it is called several times, the first reason counts.
func (f *feed) end(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return
	}
	f.err = err
	close(f.over)
	f.cancel()
	f.idle.Stop()
}

// read reads the stream of a kind until it ends. It closes begun when the stream has begun.
func (f *feed) read(ctx context.Context, p *plan, begun chan struct{}) error {
	begin := f.begin(begun)
	request := p.watch.request()
	p.watch.complete(request)
	return p.watch.call.Listen(ctx, request, func(event *dynamicpb.Message) {
		begin()
		if key, ok := p.changedKey(event); ok {
			f.add(key)
		}
	})
}

// begin returns a function that records that a stream has begun. Positions that were returned before the stream began
// expire, because it may have missed changes after them.
func (f *feed) begin(begun chan struct{}) func() {
	return sync.OnceFunc(func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.trimmed += len(f.log) + 1
		f.log = nil
		close(f.changed)
		f.changed = make(chan struct{})
		close(begun)
	})
}

// changedKey returns the key of the resource that an event is about, and false if the event is about none.
func (p *plan) changedKey(event protoreflect.Message) (backend.Key, bool) {
	m := p.watch
	resource := event
	switch {
	case m.itself:
	case len(m.answerAt) > 0 && m.answerAt.has(event):
		resource = m.answerAt.get(event).Message()
	case len(m.headerAt) > 0 && m.headerAt.has(event):
		header := m.headerAt.get(event).Message()
		for _, one := range m.headerIs {
			if one.fieldAt.text(header) != one.text {
				return backend.Key{}, false
			}
		}
		key, err := keyOf(p.name, p.pattern(), m.headerNamespaceAt.text(header), m.headerNameAt.text(header))
		return key, err == nil
	default: // an event without a resource, for example that the stream has begun
		return backend.Key{}, false
	}
	key, err := p.keyOf(resource)
	return key, err == nil
}

// add adds a key to the log. If the log is full, it first drops the older half.
func (f *feed) add(key backend.Key) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.log) >= maxLog {
		drop := maxLog / 2
		f.log = append([]backend.Key(nil), f.log[drop:]...)
		f.trimmed += drop
	}
	f.log = append(f.log, key)
	close(f.changed)
	f.changed = make(chan struct{})
}

// position returns the current position. The caller holds mu.
func (f *feed) position() string { return fmt.Sprintf("%s.%d", f.epoch, f.trimmed+len(f.log)) }

// after returns the changes after a position, and a channel that is closed at the next change.
func (f *feed) after(position string) (owner.Changes, <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := owner.Changes{Position: f.position()}
	epoch, place, _ := strings.Cut(position, ".")
	n, known := parsePlace(place)
	if epoch != f.epoch || !known || n < f.trimmed || n > f.trimmed+len(f.log) || f.err != nil {
		out.Expired = true
		return out, f.changed
	}
	out.Keys = append(out.Keys, f.log[n-f.trimmed:]...)
	return out, f.changed
}

// parsePlace parses the number in a position.
func parsePlace(text string) (n int, ok bool) {
	if _, err := fmt.Sscanf(text, "%d", &n); err != nil {
		return 0, false
	}
	return n, fmt.Sprint(n) == text
}

// settle waits until all streams have begun. It waits at most until settleTime after they were opened, because a
// service may not report the beginning.
func (f *feed) settle(ctx context.Context) error {
	timer := time.NewTimer(settleTime - time.Since(f.opened))
	defer timer.Stop()
	for _, begun := range f.begun {
		select {
		case <-begun:
		case <-timer.C:
			return nil
		case <-f.over:
			return f.reason()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

func (f *feed) reason() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

// Changes implements [owner.Service]. It returns ErrUnimplemented if no mapping has a method that streams events, or if
// the service refuses the streams.
func (c *Client) Changes(ctx context.Context, position string, wait time.Duration) (owner.Changes, error) {
	if c.follower == nil || c.follower.refused.Load() {
		return owner.Changes{}, fmt.Errorf("service %s: %w: no kind has a stream of events", c.name, owner.ErrUnimplemented)
	}
	open, err := c.follower.open(ctx)
	if err != nil {
		return owner.Changes{}, fmt.Errorf("service %s: Changes: %w", c.name, err)
	}
	if position == "" || !strings.HasPrefix(position, open.epoch+".") {
		return c.present(ctx, open, position)
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for late := false; ; {
		out, changed := open.after(position)
		if late || out.Expired || len(out.Keys) > 0 {
			return out, nil
		}
		select {
		case <-changed:
		case <-open.over:
			out.Expired = true
			return out, nil
		case <-timer.C:
			late = true
		case <-ctx.Done():
			return owner.Changes{}, context.Cause(ctx)
		}
	}
}

// present returns the current position. If the caller has given a position, the result is Expired.
func (c *Client) present(ctx context.Context, open *feed, position string) (owner.Changes, error) {
	err := open.settle(ctx)
	switch {
	case err != nil && c.follower.refused.Load():
		return owner.Changes{}, fmt.Errorf("service %s: Changes: %w: %w", c.name, owner.ErrUnimplemented, err)
	case err != nil:
		return owner.Changes{}, fmt.Errorf("service %s: Changes: %w", c.name, err)
	}
	open.mu.Lock()
	defer open.mu.Unlock()
	return owner.Changes{Position: open.position(), Expired: position != ""}, nil
}
