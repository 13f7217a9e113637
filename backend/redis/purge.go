package redis

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend"
)

// purgeRound is the maximum number of resources that one Purge removes from a shard.
const (
	purgeRound = 256
	// purgeChunk is the maximum number of resources that one run of the script removes, so that the server is not
	// blocked for long.
	purgeChunk = 64
)

// Purge removes a limited number of expired resources in each shard, and trims the logs. It returns the number of
// resources that it has removed. Any number of gateways may purge at the same time, because the script removes a
// resource only if it is still expired. With Config.ReadOnly it does nothing.
func (s *Store) Purge(ctx context.Context) (int, error) {
	if err := s.ready(ctx); err != nil || s.core.cfg.ReadOnly {
		return 0, err
	}
	total := 0
	var errs []error
	for i := range s.core.shards {
		n, err := s.purge(ctx, &s.core.shards[i])
		total += n
		errs = append(errs, err)
		if ctx.Err() != nil {
			break
		}
	}
	return total, errors.Join(errs...)
}

func (s *Store) purge(ctx context.Context, sh *shard) (int, error) {
	var due []string
	err := s.read(ctx, "purge", func(ctx context.Context, ses *session) error {
		reply, err := s.core.scripts.due.run(
			ctx, ses.client, []string{sh.members}, dueEnd(s.nodeTime(ctx, ses, sh)), purgeRound,
		)
		due = texts(reply)
		return err
	})
	if err != nil {
		return 0, err
	}
	slices.SortFunc(due, func(a, b string) int { return strings.Compare(dueOrder(a), dueOrder(b)) })
	due = due[:min(len(due), purgeRound)]
	total := 0
	for first := true; first || len(due) > 0; first = false {
		chunk := due[:min(len(due), purgeChunk)]
		due = due[len(chunk):]
		n, err := s.purgeChunk(ctx, sh, chunk)
		total += n
		if err != nil {
			return total, err
		}
	}
	return total, nil
}

// purgeChunk removes the expired resources of the given expiry members, and trims the log.
func (s *Store) purgeChunk(ctx context.Context, sh *shard, due []string) (n int, err error) {
	p := &proposal{shard: sh, keys: []string{sh.meta, sh.members, sh.log}}
	var bad []any
	for _, m := range due {
		k, err := expiryMember(m)
		if err != nil {
			s.core.skip("purge", k, err)
			bad = append(bad, m)
			continue
		}
		a := newAction(opExpire, k)
		a.more = packed(nil, []byte(m))
		p.keys, p.actions = append(p.keys, sh.key(k)), append(p.actions, a)
	}
	if len(bad) > 0 { // otherwise every round would find them again
		err := s.read(ctx, "purge", func(ctx context.Context, ses *session) error {
			return ses.client.ZRem(ctx, sh.members, bad...).Err()
		})
		if err != nil {
			return 0, err
		}
	}
	reply, err := s.propose(ctx, p)
	if text(reply, 0) != "ok" {
		if err == nil {
			_, err = s.outcome(p, reply)
		}
		return 0, err
	}
	for i := range p.actions {
		if text(reply, i+2) == "1" {
			n++
		}
	}
	return n, nil
}

// Run purges at intervals of PurgeInterval until ctx ends or the store is closed, neither of which is an error. It
// continues while servers do not answer.
func (s *Store) Run(ctx context.Context) error {
	log, away := s.core.cfg.Logger, false
	for {
		// Other gateways do the same. A random pause keeps them apart.
		pause := s.core.cfg.PurgeInterval
		tick := time.NewTimer(pause - pause/8 + rand.N(pause/4+1))
		select {
		case <-ctx.Done():
			tick.Stop()
			return nil
		case <-s.closed:
			tick.Stop()
			return nil
		case <-tick.C:
		}
		err := s.round(ctx)
		switch {
		case ctx.Err() != nil, errors.Is(err, backend.ErrClosed):
		case err != nil && !away:
			log.Error("the store is away", zap.Error(err))
		case err == nil && away:
			log.Info("the store is back")
		}
		away = err != nil
	}
}

// round purges until no expired resources are left.
func (s *Store) round(ctx context.Context) error {
	if err := s.read(ctx, "clock", s.measureAll); err != nil {
		return err
	}
	for {
		n, err := s.Purge(ctx)
		if err != nil || n < purgeRound {
			return err
		}
	}
}
