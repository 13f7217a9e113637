package stream

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/sluicegw/sluice/backend/budget"
)

var (
	// errGone is the error of a queue whose connection is closed.
	errGone = errors.New("the connection ends")
	// errMemory is the error if the events of all clients have used up their memory.
	errMemory = errors.New("there is no memory for another event")
)

// Frame is one message to a client. The payload goes between head and tail; it is
// shared and is not copied until it is written.
type Frame struct {
	From    any // the operation that sends it, for Forget
	Head    []byte
	Payload []byte
	Tail    string
	// Release is called when the frame was written or dropped; nil if it holds no
	// memory.
	Release func()
	Kind    byte // for WebSocket: its opcode
	// Event marks an event. It may be delayed to be written together with others, and is
	// refused if there is no memory for it.
	Event bool
}

// Size returns the number of bytes of the message.
func (f *Frame) Size() int { return len(f.Head) + len(f.Payload) + len(f.Tail) }

// Queue has the messages that wait for one client. Their number and their bytes are bounded, but an
// empty queue accepts the frames of any one call of Put. At most one writer is active at a time. It
// is started when there is something to write, and takes frames until there are none:
//
//	        Put, deliver, Offer, Finish: Wake
//	idle -------------------------------------> busy (Take returns frames)
//	  ^                                           |
//	  +-------------------------------------------+
//	     Take finds none; at the end it reports ended
type Queue struct {
	Messages, Bytes int
	// Memory is shared by all queues. A frame holds memory of its size from before it is queued
	// until it is written, unless the queue has at most [freeQueue] bytes together with the frame.
	// Default: unbounded.
	Memory *budget.Room
	// Wake starts the writer; if soon is set, it may start a moment later. Wake is
	// called with the lock held, and only if no writer is active.
	Wake func(soon bool)

	mu     sync.Mutex
	frames []Frame
	held   int           // bytes of frames
	room   chan struct{} // closed when something was taken; nil if nobody waits for it
	busy   bool          // a writer is at work
	gone   bool          // nothing more is accepted
	// writing is the number of bytes of frames that were taken but not written yet; releases are
	// their Release functions.
	writing  int
	releases []func()
}

// Put adds all of the frames or none. It waits for room until ctx ends. accepted, if
// not nil, is called before a writer can see the frames.
func (q *Queue) Put(ctx context.Context, accepted func(), frames ...Frame) (err error) {
	defer func() {
		if err != nil {
			drop(frames)
		}
	}()
	size := 0
	for i := range frames {
		if err := q.claim(ctx, &frames[i]); err != nil {
			return err
		}
		size += frames[i].Size()
	}
	for {
		q.mu.Lock()
		switch {
		case q.gone:
			q.mu.Unlock()
			return errGone
		case ctx.Err() != nil: // see Forget
			q.mu.Unlock()
			return ctx.Err()
		case len(q.frames) == 0 || len(q.frames)+len(frames) <= q.Messages && q.held+size <= q.Bytes:
			if accepted != nil {
				accepted()
			}
			q.add(size, frames...)
			q.mu.Unlock()
			return nil
		}
		if err := q.await(ctx); err != nil {
			return err
		}
	}
}

// freeQueue is the number of bytes of each queue that need no memory of Queue.Memory. A client that
// keeps up has fewer bytes in its queue.
const freeQueue = 8 << 10

// claim takes memory for a frame that is to be queued, unless it holds some already. It waits for
// memory: for an event at most [budget.Patience], for other frames until ctx ends.
func (q *Queue) claim(ctx context.Context, f *Frame) error {
	q.mu.Lock()
	free := f.Release != nil || q.held+q.writing+f.Size() <= freeQueue
	q.mu.Unlock()
	if free {
		return nil
	}
	await := q.Memory.Await
	if f.Event {
		await = q.Memory.AwaitPatiently
	}
	switch err := await(ctx, int64(f.Size())); {
	case errors.Is(err, budget.ErrBusy):
		return errMemory
	case err != nil:
		return err
	}
	f.releaseTo(q.Memory)
	return nil
}

// releaseTo makes Release return the frame's bytes to r.
func (f *Frame) releaseTo(r *budget.Room) {
	n := int64(f.Size())
	f.Release = func() { r.Give(n) }
}

// drop releases frames that will not be written.
func drop(frames []Frame) {
	for i := range frames {
		if frames[i].Release != nil {
			frames[i].Release()
		}
	}
}

// deliver adds events of a group and returns their number. It does not wait. It stops at the first
// event for which there is no room or no memory, which each follower must execute by itself, or if
// ctx has ended.
func (q *Queue) deliver(ctx context.Context, events []*event, w Wire) (n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.gone || ctx.Err() != nil {
		return 0
	}
	for ; n < len(events) && events[n].change == nil; n++ {
		f := w.Frame(events[n].payload, events[n].cursor)
		f.Event = true
		size := f.Size()
		if len(q.frames) > 0 && (len(q.frames) == q.Messages || q.held+size > q.Bytes) {
			return n
		}
		if q.held+q.writing+size > freeQueue {
			if !q.Memory.Take(int64(size)) {
				return n
			}
			f.releaseTo(q.Memory)
		}
		q.add(size, f)
	}
	return n
}

// Offer adds a small frame if there is room. Otherwise it drops the frame, which is
// repeated later anyway.
func (q *Queue) Offer(f Frame) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.gone && len(q.frames) < q.Messages {
		q.add(f.Size(), f)
	}
}

// Finish adds the last frames, even if the queue is full, and refuses further frames.
// The writer is told of the end. Only the first call has an effect.
func (q *Queue) Finish(last ...Frame) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.gone {
		return
	}
	q.gone = true
	q.frames = append(q.frames, last...)
	for i := range last {
		q.held += last[i].Size()
	}
	q.start(false)
	q.makeRoom()
}

// Discard drops all frames, including those that are being written, and refuses further
// frames.
func (q *Queue) Discard() {
	q.mu.Lock()
	defer q.mu.Unlock()
	drop(q.frames)
	q.releaseWritten()
	q.gone = true
	q.frames = nil
	q.held = 0
	q.makeRoom()
}

// Forget drops the frames of an operation whose context has ended.
func (q *Queue) Forget(from any) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.frames = slices.DeleteFunc(q.frames, func(f Frame) bool {
		if f.From != from {
			return false
		}
		q.held -= f.Size()
		drop([]Frame{f})
		return true
	})
	q.makeRoom()
}

// Take returns the next frames: as many as fit into most bytes, but at least one. If
// there are none, the writer must stop; ended reports whether the queue is finished.
func (q *Queue) Take(into []Frame, most int) (out []Frame, ended bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.releaseWritten()
	if len(q.frames) == 0 {
		q.busy = false
		return nil, q.gone
	}
	n := 0
	for size := 0; n < len(q.frames); n++ {
		size += q.frames[n].Size()
		if n > 0 && size > most {
			break
		}
	}
	out = append(into, q.frames[:n]...)
	for i := range out {
		q.held -= out[i].Size()
		q.writing += out[i].Size()
		if out[i].Release != nil {
			q.releases = append(q.releases, out[i].Release)
		}
	}
	q.frames = slices.Delete(q.frames, 0, n)
	if len(q.frames) == 0 && cap(q.frames) > 4 {
		q.frames = nil // an idle connection keeps no memory for a burst
	}
	q.makeRoom()
	return out, false
}

// releaseWritten releases the frames that were taken. They were written, or never will
// be.
func (q *Queue) releaseWritten() {
	for _, release := range q.releases {
		release()
	}
	q.writing, q.releases = 0, nil
}

// add adds frames, which have size bytes together, and starts the writer. The caller holds
// the lock.
func (q *Queue) add(size int, frames ...Frame) {
	q.frames = append(q.frames, frames...)
	q.held += size
	q.start(frames[0].Event)
}

// start starts the writer if none is active. The caller holds the lock.
func (q *Queue) start(soon bool) {
	if !q.busy {
		q.busy = true
		q.Wake(soon)
	}
}

// await unlocks the queue and waits until frames are taken or dropped, or ctx ends.
func (q *Queue) await(ctx context.Context) error {
	if q.room == nil {
		q.room = make(chan struct{})
	}
	room := q.room
	q.mu.Unlock()
	select {
	case <-room:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// makeRoom wakes the calls of Put that wait for room. The caller holds the lock.
func (q *Queue) makeRoom() {
	if q.room != nil {
		close(q.room)
		q.room = nil
	}
}
