package transport

import (
	"time"

	"github.com/sluicegw/sluice/graph/stream"
)

const (
	// maxBatch is the most bytes of frames in one write.
	maxBatch = 64 << 10
	// maxWrite is how many bytes a client must accept within the write time-out.
	maxWrite = 128 << 10
)

// buffer is the memory of a writer that is at work.
type buffer struct {
	frames []stream.Frame // taken, and not yet in bytes
	bytes  []byte
	sent   int // of bytes
}

// fill takes what is next in the queue of a socket. If that is nothing, its writer is done.
func (b *buffer) fill(s *socket) (ok, ended bool) {
	b.bytes, b.sent = b.bytes[:0], 0
	frames, ended := s.out.Take(b.frames[:0], maxBatch)
	if len(frames) == 0 {
		return false, ended
	}
	b.frames = frames
	return true, false
}

// size is how many bytes the frames have that were taken.
func (b *buffer) size() (n int) {
	for i := range b.frames {
		n += b.frames[i].Size()
	}
	return n
}

// encode turns frames into bytes.
func (b *buffer) encode() {
	for i := range b.frames {
		b.bytes = appendFrame(b.bytes, &b.frames[i])
	}
	clear(b.frames) // the payloads can be freed while they are being sent
	b.frames = b.frames[:0]
}

// wake starts the writer at once, or a moment later so that events that arrive
// close together leave in one write. Events are written by the pool, if it can. What is
// for one client alone does not wait behind those for all.
func (s *socket) wake(soon bool) {
	s.writers.Add(1)
	if soon {
		if wait := s.parent.cfg.Gather - time.Since(s.wrote); wait > 0 {
			if s.gather == nil {
				s.gather = time.AfterFunc(wait, s.write)
			} else {
				s.gather.Reset(wait)
			}
			return
		}
		if s.raw != nil {
			s.parent.pool.add(s)
			return
		}
	}
	go s.write()
}

// write empties the queue.
func (s *socket) write() { s.writeFrom(s.parent.buffers.Get().(*buffer)) }

// writeFrom sends what is in the buffer, and then empties the queue, with one system call for
// all frames that are queued.
func (s *socket) writeFrom(b *buffer) {
	defer s.writers.Done()
	defer s.parent.keep(b)
	for {
		b.encode()
		if err := s.send(b.bytes[b.sent:]); err != nil {
			s.close(closing{})
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

// send writes in parts, each with a time limit of its own.
func (s *socket) send(data []byte) error {
	for len(data) > 0 {
		n := min(len(data), maxWrite)
		if err := s.limitWrite(time.Now()); err != nil {
			return err
		}
		if _, err := s.net.Write(data[:n]); err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}

// limitWrite sets the deadline of the next write.
func (s *socket) limitWrite(now time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ending != nil {
		return s.net.SetWriteDeadline(s.endBy)
	}
	return s.net.SetWriteDeadline(now.Add(s.parent.cfg.WriteTimeout))
}

// closeAfterFlush ends the connection after the last frame.
func (s *socket) closeAfterFlush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ending != nil && s.ending.wait {
		_ = s.net.SetReadDeadline(time.Now().Add(closeWait))
		return
	}
	_ = s.net.Close()
}

// keep puts the memory of a writer back into the pool, unless it has grown for a large message.
func (s *Sockets) keep(b *buffer) {
	if cap(b.bytes) <= 2*maxBatch && cap(b.frames) <= DefaultQueue {
		clear(b.frames[:cap(b.frames)])
		b.frames, b.bytes, b.sent = b.frames[:0], b.bytes[:0], 0
		s.buffers.Put(b)
	}
}
