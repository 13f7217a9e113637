package redis

import (
	"context"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/sluicegw/sluice/backend"
)

// directLine is a connection of a session that is kept for one question about the heads
// after the other, so that none takes it from the pool, checks it, and starts timers. The
// zero value has none.
type directLine struct {
	session *session
	conn    *goredis.Conn
	used    time.Time
}

// exchangeEnd is a context that tells a connection when an exchange has to end. It does not
// end by itself, so it needs no timer.
type exchangeEnd struct {
	context.Context
	at time.Time
}

// Deadline is [context.Context.Deadline].
func (e exchangeEnd) Deadline() (time.Time, bool) { return e.at, true }

// directIdle is how long a connection is kept between two questions.
const directIdle = time.Second

// ask asks the one server, once. False: it did not answer, or there are several
// servers.
func (l *directLine) ask(s *Store) (at backend.Position, ok bool) {
	ses, err := s.core.acquire(s)
	if err != nil {
		return at, false
	}
	defer ses.inflight.Done()
	server, ok := ses.client.(*goredis.Client)
	if !ok {
		return at, false
	}
	now := time.Now()
	if l.conn != nil && (l.session != ses || now.Sub(l.used) > directIdle) {
		l.release()
	}
	// Half of the time is left for the pool.
	limit := min(s.core.cfg.Timeout, headTimeout/2)
	var ctx context.Context = exchangeEnd{context.Background(), now.Add(limit)}
	if l.conn == nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.Background(), limit)
		defer cancel()
		l.session, l.conn = ses, server.Conn()
	}
	l.used = now
	if at, err = s.position(ctx, ses, l.conn.Pipeline()); err != nil {
		l.release()
	}
	return at, err == nil
}

// release gives the connection back to the session, which closes one that is broken.
func (l *directLine) release() {
	_ = l.conn.Close()
	l.session, l.conn = nil, nil
}
