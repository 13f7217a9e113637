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
	ctx := context.Background() // the connection bounds each exchange
	if l.conn == nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.core.cfg.Timeout)
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
