package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/owner"
)

// channel is the notification channel of PostgreSQL on which each change is announced.
const channel = "sluice_changes"

// Changes implements [owner.Service].
//
// A position is a snapshot of the database: it names the transactions whose changes it shows. Numbers from a sequence
// would not do, since they become visible in another order than they were taken in: who has seen 8 may never see 7.
//
//	transactions    A begins   B begins   B ends   snapshot "A:C:A"   A ends
//	                                      ^ told before               ^ not shown by "A:C:A", so it is told after it
func (s *service) Changes(ctx context.Context, position string, wait time.Duration) (owner.Changes, error) {
	end := time.Now().Add(wait)
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return owner.Changes{}, err
	}
	defer release(conn)
	// Listen before the first read, so that no change is missed between the read and the wait.
	if _, err := conn.Exec(ctx, "listen "+channel); err != nil {
		return owner.Changes{}, err
	}
	for {
		c, err := changesAfter(ctx, conn.Conn(), position)
		if err != nil || position == "" || c.Expired || len(c.Keys) > 0 || !time.Now().Before(end) {
			return c, err
		}
		waiting, stop := context.WithDeadline(ctx, end)
		_, err = conn.Conn().WaitForNotification(waiting)
		stop()
		if err != nil && ctx.Err() != nil {
			return owner.Changes{}, ctx.Err()
		}
		if err != nil && waiting.Err() == nil {
			return owner.Changes{}, err
		}
	}
}

// release returns a connection to the pool. Before, it stops listening, because nobody would read the notifications.
func release(conn *pgxpool.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if _, err := conn.Exec(ctx, "unlisten "+channel); err != nil {
		_ = conn.Conn().Close(ctx) // the pool makes another one
	}
	conn.Release()
}

// changesAfter returns the changes that the snapshot in position does not show. One statement reads the keys and the
// next position, so both belong to the same snapshot.
func changesAfter(ctx context.Context, conn *pgx.Conn, position string) (owner.Changes, error) {
	var now string
	err := conn.QueryRow(ctx, "select id || '/' || pg_current_snapshot() from history").Scan(&now)
	if err != nil || position == "" {
		return owner.Changes{Position: now}, err
	}
	history, snapshot, _ := strings.Cut(position, "/")
	if !strings.HasPrefix(now, history+"/") {
		return owner.Changes{Position: now, Expired: true}, nil
	}
	// Each row has the position and the key of a change. If there is no change, a single row has the position and no
	// key.
	rows, err := conn.Query(ctx, `
		select history.id || '/' || pg_current_snapshot(), pg_snapshot_xmax($1::pg_snapshot) > pg_snapshot_xmax(pg_current_snapshot()),
			coalesce(change.kind, ''), coalesce(change.namespace, ''), coalesce(change.name, '')
		from history left join change on change.transaction >= pg_snapshot_xmin($1::pg_snapshot)
			and not pg_visible_in_snapshot(change.transaction, $1::pg_snapshot)`, snapshot)
	if err != nil {
		return owner.Changes{}, err
	}
	var c owner.Changes
	var key backend.Key
	_, err = pgx.ForEachRow(rows, []any{&c.Position, &c.Expired, &key.Kind, &key.Namespace, &key.Name}, func() error {
		if key.Name != "" {
			c.Keys = append(c.Keys, key)
		}
		return nil
	})
	var pg *pgconn.PgError
	if errors.As(err, &pg) && strings.HasPrefix(pg.Code, "22") {
		return owner.Changes{Position: now, Expired: true}, nil // it is no snapshot
	}
	return c, err
}
