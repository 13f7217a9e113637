package transport

import (
	"slices"
	"time"

	"github.com/sluicegw/sluice/graph/stream"
)

// maxBatch is the maximum number of bytes of frames in one write.
const maxBatch = 64 << 10

// buffer is the memory of a goroutine while it writes.
type buffer struct {
	frames []stream.Frame // taken from the queue, not yet encoded
	bytes  []byte
	sent   int // of bytes
	// now is the method writeNow as a function value, which is kept because creating it for each write would allocate.
	now func(fd uintptr) (done bool)
}

func newBuffer() *buffer {
	b := new(buffer)
	b.now = b.writeNow
	return b
}

// fill takes the next frames from the queue of a socket. If there are none, ok is false and the goroutine must stop
// writing.
func (b *buffer) fill(s *socket) (ok, ended bool) {
	b.bytes, b.sent = b.bytes[:0], 0
	frames, ended := s.out.Take(b.frames[:0], maxBatch)
	if len(frames) == 0 {
		return false, ended
	}
	b.frames = frames
	return true, false
}

// size returns the size of the frames in bytes.
func (b *buffer) size() (n int) {
	for i := range b.frames {
		n += b.frames[i].Size()
	}
	return n
}

// encode converts the frames to bytes.
func (b *buffer) encode() {
	for i := range b.frames {
		b.bytes = appendFrame(b.bytes, &b.frames[i])
	}
	clear(b.frames) // the payloads can be freed while they are being sent
	b.frames = b.frames[:0]
}

// wake starts the writer of a socket. If soon is set, it may start a moment later, so that events which arrive in quick
// succession are written together. Events are written by the pool if possible. Messages for a single client are written
// by a separate goroutine, so that they do not wait behind events for many clients.
func (s *socket) wake(soon bool) {
	s.writers.Add(1)
	if soon {
		if wait := s.sockets.cfg.Gather - time.Since(s.wrote); wait > 0 {
			if s.gather == nil {
				s.gather = time.AfterFunc(wait, s.write)
			} else {
				s.gather.Reset(wait)
			}
			return
		}
		if s.raw != nil {
			s.sockets.pool.add(s)
			return
		}
	}
	go s.write()
}

// write sends all queued frames.
func (s *socket) write() { s.writeFrom(s.sockets.buffers.Get().(*buffer)) }

// writeFrom sends the frames in b, and then all queued frames. Frames that are queued at the same time are sent with
// one system call.
func (s *socket) writeFrom(b *buffer) {
	defer s.writers.Done()
	defer s.sockets.keep(b)
	for {
		b.encode()
		if err := s.send(b.bytes[b.sent:]); err != nil {
			s.close(&closing{})
			s.abort()
			return
		}
		if len(b.bytes) > 0 {
			s.wrote = time.Now()
		}
		ok, ended := b.fill(s)
		if ended {
			s.closeAfterFlush()
		}
		if !ok {
			return
		}
	}
}

// send writes data in parts, each with a deadline.
func (s *socket) send(data []byte) error {
	for part := range slices.Chunk(data, maxWrite) {
		if err := s.limitWrite(time.Now()); err != nil {
			return err
		}
		if _, err := s.net.Write(part); err != nil {
			return err
		}
	}
	return nil
}

// limitWrite sets the deadline for the next write.
func (s *socket) limitWrite(now time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ending != nil {
		return s.net.SetWriteDeadline(s.endBy)
	}
	return s.net.SetWriteDeadline(now.Add(s.sockets.cfg.WriteTimeout))
}

// closeAfterFlush closes the connection after the last frame was written.
func (s *socket) closeAfterFlush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ending != nil && s.ending.wait {
		_ = s.net.SetReadDeadline(time.Now().Add(closeWait))
		return
	}
	_ = s.net.Close()
}

// keep makes the memory of a writer available to others, unless it has grown for a large message.
func (s *sockets) keep(b *buffer) {
	if cap(b.bytes) <= 2*maxBatch && cap(b.frames) <= DefaultQueue {
		clear(b.frames[:cap(b.frames)])
		b.frames = b.frames[:0]
		b.bytes = b.bytes[:0]
		b.sent = 0
		s.buffers.Put(b)
	}
}
