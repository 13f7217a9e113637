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
	// maxLog is the maximum number of changed keys that are kept. If there are more, older
	// positions expire.
	maxLog = 10_000
	// settleTime is how long to wait for a stream to start, if the service does not report its
	// start.
	settleTime = 2 * time.Second
	// idleTime is how long streams stay open without a call of Changes.
	idleTime = 2 * time.Minute
)

// follower collects the keys of changed resources from streams of events. The first call of Changes
// opens the streams; they are closed when there are no calls for a while. A stream has no
// positions, so the follower counts its own. They expire when a stream ends or too many keys are
// waiting; then all resources are compared.
type follower struct {
	plans []*plan
	// refused reports whether the service has answered that it has no streams, or not for this
	// gateway.
	refused atomic.Bool

	mu sync.Mutex // guards all below
	// feed has the changes since the streams were opened; nil if they are closed.
	feed   *feed
	closed bool
}

// feed has the changes of streams that were opened together.
type feed struct {
	// epoch is the prefix of the feed's positions.
	epoch string
	// begun has an element for each stream that has started.
	begun chan struct{}
	// over is closed when a stream has ended; err is then the reason.
	over   chan struct{}
	cancel context.CancelFunc
	done   sync.WaitGroup
	idle   *time.Timer

	mu  sync.Mutex // guards all below
	err error
	// log has the keys after the position trimmed.
	log     []backend.Key
	trimmed int
	// changed is closed at the next change.
	changed chan struct{}
}

func newFollower(plans []*plan) *follower { return &follower{plans: plans} }

// close ends the streams.
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

// open returns the feed. It opens the streams if they are closed.
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
		epoch: uuid.NewString(), begun: make(chan struct{}, len(f.plans)), over: make(chan struct{}), cancel: cancel,
		changed: make(chan struct{}),
	}
	out.idle = time.AfterFunc(idleTime, func() { out.end(fmt.Errorf("nobody has asked for changes for %s", idleTime)) })
	for _, p := range f.plans {
		out.done.Go(func() {
			err := out.read(ctx, p)
			if ctx.Err() == nil && isRefusal(err) {
				f.refused.Store(true)
			}
			out.end(err)
		})
	}
	f.feed = out
	return out, nil
}

// isRefusal reports whether an error means that the service has no such stream, or not for this
// gateway.
func isRefusal(err error) bool {
	code := connect.CodeOf(err)
	return code == connect.CodeUnimplemented || code == connect.CodePermissionDenied
}

// end ends the streams. It keeps the reason of the first call.
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

// read reads the stream of a kind until it ends.
func (f *feed) read(ctx context.Context, p *plan) error {
	begun := sync.OnceFunc(func() { f.begun <- struct{}{} })
	return p.watch.call.Listen(ctx, p.watch.request(), func(event *dynamicpb.Message) {
		begun()
		if key, ok := p.changedKey(event); ok {
			f.add(key)
		}
	})
}

// changedKey returns the key of an event's resource.
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
	default: // it tells that the stream has begun, or is still there
		return backend.Key{}, false
	}
	key, err := p.keyOf(resource)
	return key, err == nil
}

// add adds a key to the log.
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

// settle waits until all streams have started, for at most settleTime.
func (f *feed) settle(ctx context.Context, streams int) error {
	timer := time.NewTimer(settleTime)
	defer timer.Stop()
	for begun := 0; begun < streams; begun++ {
		select {
		case <-f.begun:
		case <-timer.C:
			begun = streams // a service need not say that a stream has begun
		case <-f.over:
			return f.reason()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	for range streams { // for who else waits
		select {
		case f.begun <- struct{}{}:
		default:
		}
	}
	return nil
}

func (f *feed) reason() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

// Changes implements [owner.Service], if the mapping has a method that streams events.
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

// present returns the current position. The result is expired unless position is empty.
func (c *Client) present(ctx context.Context, open *feed, position string) (owner.Changes, error) {
	if err := open.settle(ctx, len(c.follower.plans)); err != nil {
		return owner.Changes{}, fmt.Errorf("service %s: Changes: %w", c.name, err)
	}
	open.mu.Lock()
	defer open.mu.Unlock()
	return owner.Changes{Position: open.position(), Expired: position != ""}, nil
}
