package stream

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/sluicegw/sluice/backend/budget"
)

var (
	// errGone means that the connection of the queue is ending.
	errGone = errors.New("the connection ends")
	// errMemory means that the events of all clients use the memory that they may have.
	errMemory = errors.New("there is no memory for another event")
)

// Frame is one message on its way to a client. The payload goes between the head
// and the tail. It is shared, and not copied before it is written.
type Frame struct {
	From    any // the operation that sends it, for Forget
	Head    []byte
	Payload []byte
	Tail    string
	// Release is called once the frame is written or dropped; nil if it holds no memory.
	Release func()
	Kind    byte // for WebSocket: its opcode
	// Event may wait a moment so that others leave with it, and is refused if there is no
	// memory for it.
	Event bool
}

// Size returns the number of bytes of the message.
func (f *Frame) Size() int { return len(f.Head) + len(f.Payload) + len(f.Tail) }

// Queue holds the messages that wait for one client, bounded in number and bytes; an empty queue accepts the
// frames of any one call of Put. At most one writer works at a time. It is
// started when there is something to write, and takes frames until none is left:
//
//	        Put, deliver, Offer, Finish: Wake
//	idle -------------------------------------> busy (Take returns frames)
//	  ^                                           |
//	  +-------------------------------------------+
//	     Take finds none; at the end it reports ended
type Queue struct {
	Messages, Bytes int
	// Memory is shared by all queues. A frame takes its size of it from before it is put until it is written,
	// unless the queue has no more than [freeQueue] with it. Default: unbounded.
	Memory *budget.Room
	// Wake starts the writer; if soon is set, it may start a moment later. Wake is
	// called with the lock held, and never while a writer is at work.
	Wake func(soon bool)

	mu     sync.Mutex
	frames []Frame
	held   int           // bytes of frames
	room   chan struct{} // closed when something was taken; nil if nobody waits for it
	busy   bool          // a writer is at work
	gone   bool          // nothing more is accepted
	// writing counts the bytes of frames that were taken and are not yet written; releases are their
	// Release functions.
	writing  int
	releases []func()
}

// Put adds frames, all or none, and waits for room until ctx ends. If accepted is
// not nil, it is called before a writer can see the frames.
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

// freeQueue is how many bytes of each queue take nothing of Queue.Memory: no more wait for a client that
// keeps up.
const freeQueue = 8 << 10

// claim takes the memory of a frame that is about to be queued, unless the frame holds some already. An event
// waits for memory for [budget.Patience], other frames until ctx ends.
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

// releaseTo makes Release give the bytes of the frame back to r.
func (f *Frame) releaseTo(r *budget.Room) {
	n := int64(f.Size())
	f.Release = func() { r.Give(n) }
}

// drop releases frames that are not written.
func drop(frames []Frame) {
	for i := range frames {
		if frames[i].Release != nil {
			frames[i].Release()
		}
	}
}

// deliver adds events of a group without waiting, as many as there is room and memory for, but none after an
// event that each follower executes by itself or after ctx has ended. It returns their number.
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

// Offer adds a small frame if there is room right now. Such frames are repeated anyway.
func (q *Queue) Offer(f Frame) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.gone && len(q.frames) < q.Messages {
		q.add(f.Size(), f)
	}
}

// Finish adds the last frames, even if the queue is full. Nothing is accepted
// after them, and the writer learns of the end. Only the first call has an effect.
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

// Discard drops all frames, also those being written, and accepts no more.
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

// Forget drops the frames of an operation whose context has ended, which can add no more.
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

// Take returns the next frames, as many as fit into most bytes but at least one.
// If there are none, the writer is done; ended reports whether the queue is finished.
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

// releaseWritten releases the frames that were taken: they are written, or never will be.
func (q *Queue) releaseWritten() {
	for _, release := range q.releases {
		release()
	}
	q.writing, q.releases = 0, nil
}

// add adds frames, of size bytes together, and starts the writer. The caller holds the lock.
func (q *Queue) add(size int, frames ...Frame) {
	q.frames = append(q.frames, frames...)
	q.held += size
	q.start(frames[0].Event)
}

// start starts the writer unless it is at work. The caller holds the lock.
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
