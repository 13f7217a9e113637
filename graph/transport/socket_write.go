package transport

import "time"

const (
	// maxBatch is the most bytes of frames in one write.
	maxBatch = 64 << 10
	// maxWrite is how many bytes a client must accept within the write time-out.
	maxWrite = 128 << 10
)

// buffer is the memory of a writer that is at work.
type buffer struct {
	frames []frame
	bytes  []byte
}

// wake starts the writer at once, or a moment later so that events that arrive
// close together leave in one write.
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
	}
	go s.write()
}

// write empties the outbox, with one system call for all frames that are queued.
func (s *socket) write() {
	defer s.writers.Done()
	b := s.parent.buffers.Get().(*buffer)
	defer s.parent.keep(b)
	for {
		frames, ended := s.out.take(b.frames[:0], maxBatch)
		if len(frames) == 0 {
			if ended {
				s.farewell()
			}
			return
		}
		b.frames, b.bytes = frames, b.bytes[:0]
		for i := range frames {
			b.bytes = appendFrame(b.bytes, &frames[i])
		}
		clear(frames) // the payloads can be freed while they are being sent
		if err := s.send(b.bytes); err != nil {
			s.out.end()
			s.close(closing{})
			s.abort()
			return
		}
		s.wrote = time.Now()
	}
}

// send writes in parts, each with a time limit of its own.
func (s *socket) send(data []byte) error {
	for len(data) > 0 {
		n := min(len(data), maxWrite)
		if err := s.limitWrite(); err != nil {
			return err
		}
		if _, err := s.net.Write(data[:n]); err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}

// limitWrite sets the deadline of the next write: the time-out from now, up to a quarter
// of it later. So it is moved rarely: on a busy connection that costs more than a frame.
func (s *socket) limitWrite() error {
	limit, now := s.parent.cfg.WriteTimeout, time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.ending != nil:
		s.writeBy = s.endBy
	case s.writeBy.Sub(now) >= limit:
		return nil
	default:
		s.writeBy = now.Add(limit + limit/4)
	}
	return s.net.SetWriteDeadline(s.writeBy)
}

// farewell ends the connection after the last frame.
func (s *socket) farewell() {
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
		s.buffers.Put(b)
	}
}
