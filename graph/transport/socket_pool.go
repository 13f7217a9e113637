package transport

import (
	"runtime"
	"sync"
	"time"
)

const (
	// backlog is the number of waiting sockets for each worker above which another worker is started.
	backlog = 8
	// yieldAfter is the number of sockets after which a worker yields its processor.
	yieldAfter = 512
)

// writerPool writes events to sockets without a goroutine for each of them. A change that a thousand clients follow
// takes a thousand small writes, which the kernel usually accepts at once. A worker never waits for a client: if the
// kernel does not accept everything, or if there is more to write, a goroutine of the socket continues. Workers end
// when no socket waits. With a goroutine for each write, an event for a thousand clients would take a third more CPU
// time (network/ours/burst=1 of BenchmarkLive).
type writerPool struct {
	sockets *sockets
	most    int // workers

	mu      sync.Mutex // guards waiting and workers
	waiting []*socket  // each has a writer that is about to start, so none waits twice
	workers int
}

// add adds a socket to which something must be written.
func (p *writerPool) add(s *socket) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting = append(p.waiting, s)
	if p.workers < p.most && len(p.waiting) > p.workers*backlog {
		p.workers++
		go p.work()
	}
}

// next returns the next waiting socket. If it returns nil, the worker must end.
func (p *writerPool) next() *socket {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.waiting) == 0 {
		p.waiting = nil
		p.workers--
		return nil
	}
	s := p.waiting[0]
	p.waiting[0] = nil
	p.waiting = p.waiting[1:]
	return s
}

func (p *writerPool) work() {
	b := p.sockets.buffers.Get().(*buffer)
	defer func() { p.sockets.keep(b) }()
	for n := 1; ; n++ {
		s := p.next()
		if s == nil {
			return
		}
		b = b.writeTo(s)
		if n%yieldAfter == 0 {
			runtime.Gosched()
		}
	}
}

// writeTo writes to a socket as far as that is possible without waiting. It returns a buffer for the next socket.
func (b *buffer) writeTo(s *socket) *buffer {
	ok, ended := b.fill(s)
	if ok && b.size() <= maxBatch {
		b.encode()
		now := time.Now()
		if s.limitWrite(now) == nil {
			_ = s.raw.Write(b.now)
		}
		if b.sent == len(b.bytes) {
			s.wrote = now
			ok, ended = b.fill(s)
		}
	}
	switch {
	case ok:
		go s.writeFrom(b)
		return s.sockets.buffers.Get().(*buffer)
	case ended:
		go func() {
			defer s.writers.Done()
			s.closeAfterFlush()
		}()
	default:
		s.writers.Done()
	}
	return b
}
