package transport

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/sluicegw/sluice/backend/budget"
)

var (
	// errGone says that a queue accepts nothing more because its connection is ending.
	errGone = errors.New("the connection ends")
	// errForgotten says that the client has cancelled the operation.
	errForgotten = errors.New("the operation was cancelled")
	// errMemory says that the events that wait have the memory that they may have.
	errMemory = errors.New("there is no memory for another event")
)

// frame is one message on its way to a client. The payload goes between the head
// and the tail. It is shared, and not copied before it is written.
type frame struct {
	from    *source
	kind    byte // for WebSocket: its opcode
	head    []byte
	payload []byte
	tail    string
	soon    bool // may wait a moment so that others leave with it
	event   bool // is refused if there is no memory for it
	// release gives back what the frame holds, once it is written or dropped; nil for nothing.
	release func()
}

func (f *frame) size() int { return len(f.head) + len(f.payload) + len(f.tail) }

// source is the operation that frames come from. The queue's lock guards it.
type source struct{ forgotten bool }

// outbox is the queue of one client, bounded in messages and bytes; whatever one
// call of put adds may always wait. At most one writer works at a time. It is
// started when there is something to write, and takes frames until none is left.
type outbox struct {
	messages, bytes int
	// memory is what the frames of all queues may take beyond a little of each, from when
	// they wait to be put until they have been written. Default: unbounded.
	memory *budget.Room
	// wake starts the writer; soon says that it may start a moment later. It is
	// called with the lock held, and never while a writer is at work.
	wake func(soon bool)

	mu     sync.Mutex
	frames []frame
	held   int           // bytes of frames
	room   chan struct{} // closed when something was taken; nil if nobody waits for it
	busy   bool          // a writer is at work
	gone   bool          // nothing more is accepted
	// writing are the bytes of frames that were taken and not yet written, and releases
	// what gives back what they hold.
	writing  int
	releases []func()
}

// put adds frames, all or none, and waits for room until ctx ends. If accepted is
// not nil, it is called before a writer can see the frames.
func (o *outbox) put(ctx context.Context, accepted func(), frames ...frame) (err error) {
	defer func() {
		if err != nil {
			drop(frames)
		}
	}()
	size := 0
	for i := range frames {
		if err := o.claim(ctx, &frames[i]); err != nil {
			return err
		}
		size += frames[i].size()
	}
	for {
		o.mu.Lock()
		switch {
		case o.gone:
			o.mu.Unlock()
			return errGone
		case frames[0].from != nil && frames[0].from.forgotten:
			o.mu.Unlock()
			return errForgotten
		case len(o.frames) == 0 || len(o.frames)+len(frames) <= o.messages && o.held+size <= o.bytes:
			if accepted != nil {
				accepted()
			}
			o.add(size, frames...)
			o.mu.Unlock()
			return nil
		}
		if err := o.await(ctx); err != nil {
			return err
		}
	}
}

// freeQueue is how many bytes of each queue are not counted: what a client that reads
// has not read yet.
const freeQueue = 8 << 10

// claim takes the memory of a frame that is about to wait, unless it has its own. An event
// waits for it a moment, others as long as their operation may.
func (o *outbox) claim(ctx context.Context, f *frame) error {
	if f.release != nil || o.isFree(f.size()) {
		return nil
	}
	await := o.memory.Await
	if f.event {
		await = o.memory.AwaitPatiently
	}
	switch err := await(ctx, int64(f.size())); {
	case errors.Is(err, budget.ErrBusy):
		return errMemory
	case err != nil:
		return err
	}
	f.counts(o.memory)
	return nil
}

// isFree says whether so many bytes more are not counted.
func (o *outbox) isFree(size int) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.held+o.writing+size <= freeQueue
}

// counts notes that the bytes of a frame were taken of a room.
func (f *frame) counts(r *budget.Room) {
	n := int64(f.size())
	f.release = func() { r.Give(n) }
}

// drop gives back what frames hold.
func drop(frames []frame) {
	for i := range frames {
		if frames[i].release != nil {
			frames[i].release()
		}
	}
}

// deliver adds events that are shared, as many as there is room and memory for right
// now, and returns how many these are.
func (o *outbox) deliver(events []*shared, framed func(*shared) frame) (n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for ; n < len(events); n++ {
		f := framed(events[n])
		size := f.size()
		if o.gone || f.from != nil && f.from.forgotten || len(o.frames) > 0 && (len(o.frames) == o.messages || o.held+size > o.bytes) {
			return n
		}
		if o.held+o.writing+size > freeQueue {
			if !o.memory.Take(int64(size)) {
				return n
			}
			f.counts(o.memory)
		}
		o.add(size, f)
	}
	return n
}

// offer adds a small frame if there is room right now. Such frames are repeated anyway.
func (o *outbox) offer(f frame) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.gone && len(o.frames) < o.messages {
		o.add(f.size(), f)
	}
}

// finish adds the last frames, even if the queue is full. Nothing is accepted
// after them, and the writer learns of the end. It returns false if the queue had
// been finished before.
func (o *outbox) finish(last ...frame) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.gone {
		return false
	}
	o.gone = true
	o.frames = append(o.frames, last...)
	for i := range last {
		o.held += last[i].size()
	}
	o.start(false)
	o.makeRoom()
	return true
}

// discard drops everything in the queue and accepts nothing more.
func (o *outbox) discard() {
	o.mu.Lock()
	defer o.mu.Unlock()
	drop(o.frames)
	o.gone, o.frames, o.held = true, nil, 0
	o.makeRoom()
}

// forget drops the frames of a source, including those that it has yet to put.
func (o *outbox) forget(s *source) {
	o.mu.Lock()
	defer o.mu.Unlock()
	s.forgotten = true
	o.frames = slices.DeleteFunc(o.frames, func(f frame) bool {
		if f.from != s {
			return false
		}
		o.held -= f.size()
		drop([]frame{f})
		return true
	})
	o.makeRoom()
}

// take returns the next frames, as many as fit into most bytes but at least one.
// If there are none, the writer is done, and ended says whether the queue has
// been finished.
func (o *outbox) take(into []frame, most int) (out []frame, ended bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.wrote()
	if len(o.frames) == 0 {
		o.busy = false
		return nil, o.gone
	}
	n := 0
	for size := 0; n < len(o.frames); n++ {
		if size += o.frames[n].size(); n > 0 && size > most {
			break
		}
	}
	out = append(into, o.frames[:n]...)
	for i := range out {
		o.held -= out[i].size()
		o.writing += out[i].size()
		if out[i].release != nil {
			o.releases = append(o.releases, out[i].release)
		}
	}
	o.frames = slices.Delete(o.frames, 0, n)
	if len(o.frames) == 0 && cap(o.frames) > 4 {
		o.frames = nil // an idle connection keeps no memory for a burst
	}
	o.makeRoom()
	return out, false
}

// wrote gives back the memory of what was taken: it is written, or never will be. The
// writer calls it by taking more, and at its end.
func (o *outbox) wrote() {
	for _, release := range o.releases {
		release()
	}
	o.writing, o.releases = 0, nil
}

// end is the end of a writer that takes no more.
func (o *outbox) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.wrote()
}

func (o *outbox) add(size int, frames ...frame) {
	o.frames = append(o.frames, frames...)
	o.held += size
	o.start(frames[0].soon)
}

func (o *outbox) start(soon bool) {
	if !o.busy {
		o.busy = true
		o.wake(soon)
	}
}

// await gives up the lock and waits until something was taken or written, the
// connection ends, or ctx does.
func (o *outbox) await(ctx context.Context) error {
	if o.room == nil {
		o.room = make(chan struct{})
	}
	room := o.room
	o.mu.Unlock()
	select {
	case <-room:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (o *outbox) makeRoom() {
	if o.room != nil {
		close(o.room)
		o.room = nil
	}
}
