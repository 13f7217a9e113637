package redis

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/sluicegw/sluice/backend"
)

var _ backend.Heads = (*Store)(nil)

// headTimeout is the time limit for asking the servers for the heads. All callers that wait share it.
const headTimeout = 5 * time.Second

// headQuestions makes callers who ask for the heads at about the same time share one question to the servers. A caller
// that comes while a question is being answered waits for the next one. The zero value is ready.
type headQuestions struct {
	mu     sync.Mutex // guards all below
	asking bool
	next   *headQuestion
}

// headQuestion is a question to the primaries of all shards. head and err are set before answered is closed.
type headQuestion struct {
	answered chan struct{}
	head     backend.Position
	err      error
}

// Head implements [backend.Heads]. All callers who wait share one question to the servers, which begins after the last
// of them has called Head.
func (s *Store) Head(ctx context.Context) (backend.Position, error) {
	if err := s.ready(ctx); err != nil {
		return backend.Position{}, err
	}
	q := s.core.questions.join(s)
	select {
	case <-q.answered:
		return q.head, q.err
	case <-ctx.Done():
		return backend.Position{}, ctx.Err()
	}
}

// join returns the next question, and makes sure that it will be asked.
func (qs *headQuestions) join(s *Store) *headQuestion {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	q := qs.next
	if q == nil {
		q = &headQuestion{answered: make(chan struct{})}
		qs.next = q
	}
	if qs.asking {
		return q
	}
	qs.asking = s.core.background(func() { qs.ask(s) })
	if !qs.asking {
		qs.next = nil
		q.err = backend.ErrClosed
		close(q.answered)
	}
	return q
}

// ask asks questions until no caller waits for one.
func (qs *headQuestions) ask(s *Store) {
	for {
		qs.mu.Lock()
		q := qs.next
		qs.next = nil
		qs.asking = q != nil
		qs.mu.Unlock()
		if q == nil {
			return
		}
		q.head, q.err = s.askHeads()
		close(q.answered)
	}
}

// askHeads asks the primaries of all shards for the heads of their logs. If the answer differs from the last one, it
// ends the pause of a watcher.
func (s *Store) askHeads() (backend.Position, error) {
	ctx, cancel := context.WithTimeout(context.Background(), headTimeout)
	defer cancel()
	at, err := s.Position(ctx)
	if err != nil && ctx.Err() != nil {
		// headTimeout has passed; callers may have later deadlines.
		return backend.Position{}, fmt.Errorf("head: no answer within %v: %w", headTimeout, backend.ErrUnavailable)
	} else if err != nil {
		return backend.Position{}, err
	}
	if last := s.core.lastHeads.Swap(&at); last == nil || !last.Equal(at) {
		select {
		case s.core.skipPause <- struct{}{}:
		default:
		}
	}
	return at, nil
}
