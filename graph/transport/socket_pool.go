package transport

import (
	"runtime"
	"sync"
	"time"
)

const (
	// backlog is how many sockets may wait for each worker before another one starts.
	backlog = 8
	// turn is how many sockets a worker writes to before others get its processor.
	turn = 512
)

// writerPool writes events to sockets without a goroutine for each: a change that a thousand
// clients listen for is a thousand small writes, which the kernel takes at once. Its workers
// never wait for a client: if the kernel does not take all, or if there is more to write, a
// goroutine of the socket goes on. They end when no socket waits.
type writerPool struct {
	parent *Sockets
	most   int // workers

	mu sync.Mutex
	// The sockets that wait, linked by their after, and how many these are. Each has a
	// writer that is about to start, so none waits twice.
	first, last *socket
	waiting     int
	workers     int
}

// add queues a socket that has something to write.
func (c *writerPool) add(s *socket) {
	c.mu.Lock()
	if c.last == nil {
		c.first = s
	} else {
		c.last.after = s
	}
	c.last = s
	c.waiting++
	start := c.workers < c.most && c.waiting > c.workers*backlog
	if start {
		c.workers++
	}
	c.mu.Unlock()
	if start {
		go c.work()
	}
}

// next takes a socket from the queue. A worker that gets none must end.
func (c *writerPool) next() *socket {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.first
	if s == nil {
		c.workers--
		return nil
	}
	if c.first = s.after; c.first == nil {
		c.last = nil
	}
	s.after = nil
	c.waiting--
	return s
}

func (c *writerPool) work() {
	a := newAttempt()
	a.buffer = c.parent.buffers.Get().(*buffer)
	defer func() { c.parent.keep(a.buffer) }()
	for n := 1; ; n++ {
		s := c.next()
		if s == nil {
			return
		}
		a.write(s)
		if n%turn == 0 {
			runtime.Gosched()
		}
	}
}

// write is the writer of a socket, as long as it need not wait.
func (a *attempt) write(s *socket) {
	ok, ended := a.fill(s)
	if ok && a.size() <= maxBatch {
		a.encode()
		now := time.Now()
		if s.limitWrite(now) == nil {
			_ = s.raw.Write(a.once)
		}
		if a.sent == len(a.bytes) {
			s.wrote = now
			ok, ended = a.fill(s)
		}
	}
	switch {
	case ok:
		go s.writeFrom(a.buffer)
		a.buffer = s.parent.buffers.Get().(*buffer)
	case ended:
		go func() {
			defer s.writers.Done()
			s.closeAfterFlush()
		}()
	default:
		s.writers.Done()
	}
}
