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
	// errMemory is the error if there is no memory for another event in the memory that all queues share.
	errMemory = errors.New("there is no memory for another event")
)

// Frame is a message to a client: head, payload and tail. The payload may be shared by several frames and is not copied
// before it is written.
type Frame struct {
	From    any // the operation that sends it, for Forget
	Head    []byte
	Payload []byte
	Tail    string
	// Release is called when the frame was written or dropped. It is nil if the frame holds no memory.
	Release func()
	Kind    byte // for WebSocket: its opcode
	// Event is set for an event. Events may be delayed in order to be written together, and are refused if there is no
	// memory.
	Event bool
}

// Size returns the size of the message in bytes.
func (f *Frame) Size() int { return len(f.Head) + len(f.Payload) + len(f.Tail) }

// Queue is the queue of messages to one client. It has a maximum number of messages and of bytes; but if it is empty,
// it accepts all frames of one call of Put. At most one writer is active. It is started when there is something to
// write, and takes frames until there are none:
//
//	        Put, deliver, Offer, Finish: Wake
//	idle -------------------------------------> busy (Take returns frames)
//	  ^                                           |
//	  +-------------------------------------------+
//	     Take finds none; at the end it reports ended
type Queue struct {
	Messages, Bytes int
	// Memory is shared by all queues. Each frame claims its size until it is written. A frame is free if the queue has
	// at most [freeQueue] bytes with it. Default: unbounded.
	Memory *budget.Room
	// Wake starts the writer. If soon is set, the writer may begin a little later. Wake is called with the lock held,
	// and only if no writer is active.
	Wake func(soon bool)

	mu     sync.Mutex
	frames []Frame
	held   int           // bytes of frames
	room   chan struct{} // closed when something was taken; nil if nobody waits for it
	busy   bool          // a writer is at work
	gone   bool          // nothing more is accepted
	// writing is the size of the frames that were taken and may not be written yet, and releases are their Release
	// functions.
	writing  int
	releases []func()
}

// Put adds all frames or, if it returns an error, none. It waits for room until ctx ends. If accepted is not nil, it is
// called before the writer can take the frames.
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

// freeQueue is the number of bytes in each queue that are not claimed from Queue.Memory. A client that keeps up has
// fewer bytes in its queue.
const freeQueue = 8 << 10

// claim claims memory for a frame, unless the frame has some already. It waits for memory: for an event at most
// [budget.Patience], for another frame until ctx ends.
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

// releaseTo sets Release to a function that returns the size of the frame to r.
func (f *Frame) releaseTo(r *budget.Room) {
	n := int64(f.Size())
	f.Release = func() { r.Give(n) }
}

// drop releases the memory of frames that will not be written.
func drop(frames []Frame) {
	for i := range frames {
		if frames[i].Release != nil {
			frames[i].Release()
		}
	}
}

// deliver adds events of a group without waiting, and returns how many it has added. It stops if there is no room or no
// memory, if ctx has ended, or at an event that each follower must execute itself.
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

// Offer adds a small frame if there is room, and drops it otherwise. It is meant for frames that are repeated, such as
// keep-alives.
func (q *Queue) Offer(f Frame) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.gone && len(q.frames) < q.Messages {
		q.add(f.Size(), f)
	}
}

// Finish adds the last frames, even if the queue is full, and refuses all later frames. After the last frame, Take
// reports the end. Only the first call has an effect.
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

// Discard drops all frames, including those that are being written, and refuses all later frames.
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

// Forget drops the frames of an operation. The context of the operation must have ended.
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

// Take returns the next frames, up to a size of most bytes, but at least one. If there are none, the writer must stop;
// ended then reports whether the queue was finished.
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

// releaseWritten releases the memory of the frames that were taken last.
func (q *Queue) releaseWritten() {
	for _, release := range q.releases {
		release()
	}
	q.writing, q.releases = 0, nil
}

// add appends frames and starts the writer. size is their total size. The caller holds the lock.
func (q *Queue) add(size int, frames ...Frame) {
	q.frames = append(q.frames, frames...)
	q.held += size
	q.start(frames[0].Event)
}

// start starts the writer unless one is active. The caller holds the lock.
func (q *Queue) start(soon bool) {
	if !q.busy {
		q.busy = true
		q.Wake(soon)
	}
}

// await unlocks the queue, and waits until frames are taken or dropped, or until ctx ends.
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

// makeRoom wakes calls of Put that wait for room. The caller holds the lock.
func (q *Queue) makeRoom() {
	if q.room != nil {
		close(q.room)
		q.room = nil
	}
}
