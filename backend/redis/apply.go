package redis

import (
	"context"
	"errors"
	"fmt"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/sluicegw/sluice/backend"
)

// Apply is [backend.Store.Apply].
func (s *Store) Apply(ctx context.Context, b backend.Batch) (backend.Result, error) {
	if err := s.ready(ctx); err != nil {
		return backend.Result{}, err
	}
	if err := b.Validate(); err != nil {
		return backend.Result{}, err
	}
	p := newProposal(s.shard(b.Actions[0].Key.Namespace), b)
	reply, err := s.propose(ctx, p, b.Deadline)
	if text(reply, 0) == "unreadable" {
		if err := s.takeDamaged(ctx, p, reply); err != nil {
			return backend.Result{}, err
		}
		reply, err = s.propose(ctx, p, b.Deadline)
	}
	if text(reply, 0) == "" {
		return backend.Result{}, err
	}
	res, failure := s.outcome(p, reply)
	if failure != nil {
		return backend.Result{}, failure
	}
	return res, err
}

// propose sends a batch until it is judged, its deadline has passed or patience
// ends. It never sends again what may have been judged. If it returns an answer
// and an error, the batch was judged but then no replica confirmed it in time:
// ErrUnknown.
func (s *Store) propose(ctx context.Context, p *proposal, deadline time.Time) ([]any, error) {
	until := time.Now().Add(patience)
	for n := 0; ; n++ {
		ses, err := s.core.acquire(s)
		if err != nil {
			return nil, err
		}
		reply, err := s.send(ctx, ses, p, deadline)
		ses.locate(err)
		ses.inflight.Done()
		if text(reply, 0) == "epoch" {
			// The epoch is not that of these connections.
			s.core.renew(ses)
			reply, err = nil, fmt.Errorf("the epoch has changed: %w", backend.ErrUnavailable)
		} else if reply != nil {
			return reply, err
		} else if !unsent(err) && !refused(err) && !errors.Is(err, backend.ErrUnavailable) {
			if replied(err) {
				return nil, fmt.Errorf("apply: %w: %w", backend.ErrUnavailable, err)
			}
			return nil, fmt.Errorf("apply: %w: %w", backend.ErrUnknown, err)
		}
		if s.isClosed() {
			return nil, backend.ErrClosed
		}
		if ctx.Err() != nil || final(err) || !pause(ctx, n, until) {
			return nil, failed(ctx, "apply", err)
		}
	}
}

// send sends the batch once.
func (s *Store) send(ctx context.Context, ses *session, p *proposal, deadline time.Time) ([]any, error) {
	cfg := &s.core.cfg
	ctx, cancel := context.WithTimeout(ctx, cfg.Timeout)
	defer cancel()
	on, err := ses.primary(ctx, p.shard)
	if err != nil {
		return nil, err
	}
	node, err := s.judgeClock(ctx, on)
	if err != nil {
		return nil, err
	}
	args := s.core.arguments(head{
		shard: p.shard, deadline: s.core.deadlineArgument(deadline, node), clock: s.core.clockArgument(node), request: p.batch.RequestID, actor: p.batch.Actor,
	}, p.actions)
	var reply []any
	if cfg.Durability == DurabilityReplica {
		reply, err = s.sendAndWait(ctx, on, p.keys, args)
	} else {
		reply, err = ses.writers(on).run(ctx, &scriptCall{keys: p.keys, args: args, size: p.batch.Size()})
	}
	return reply, err
}

// sendAndWait runs the script and waits until a replica has what it wrote, on the
// same connection as WAIT demands.
func (s *Store) sendAndWait(ctx context.Context, on *goredis.Client, keys []string, args []any) ([]any, error) {
	for _, run := range []func(goredis.Pipeliner) *goredis.Cmd{
		func(p goredis.Pipeliner) *goredis.Cmd { return p.EvalSha(ctx, s.core.scripts.apply.sha, keys, args...) },
		func(p goredis.Pipeliner) *goredis.Cmd { return p.Eval(ctx, s.core.scripts.apply.source, keys, args...) },
	} {
		pipe := on.Pipeline()
		cmd := run(pipe)
		wait := s.waitForReplica(ctx, pipe)
		_, execErr := pipe.Exec(ctx)
		reply, err := onlyReply(cmd.Slice())
		if goredis.HasErrorPrefix(err, "NOSCRIPT") {
			continue
		}
		if err != nil {
			if execErr != nil && !replied(err) {
				err = execErr
			}
			return nil, err
		}
		if text(reply, 0) != "ok" {
			return reply, nil
		}
		if n, err := wait.Int64(); err != nil || n < 1 {
			return reply, fmt.Errorf("no replica confirms the batch: %w", backend.ErrUnknown)
		}
		return reply, nil
	}
	return nil, fmt.Errorf("the server does not keep scripts: %w", backend.ErrUnavailable)
}

// waitForReplica asks how many replicas have everything that the connection wrote.
func (s *Store) waitForReplica(ctx context.Context, pipe goredis.Pipeliner) *goredis.Cmd {
	return pipe.Do(ctx, "wait", 1, (s.core.cfg.Timeout * 2 / 3).Milliseconds())
}

// Sync is [backend.Syncer.Sync]. With DurabilityReplica it waits until a replica
// has everything that the shard's server has now.
func (s *Store) Sync(ctx context.Context, namespace string) error {
	if s.core.cfg.Durability != DurabilityReplica {
		return s.ready(ctx)
	}
	sh := s.shard(namespace)
	return s.read(ctx, "sync", func(ctx context.Context, ses *session) error {
		on, err := ses.primary(ctx, sh)
		if err != nil {
			return err
		}
		pipe := on.Pipeline()
		// WAIT is about what its own connection wrote last, so this writes something.
		pipe.HIncrBy(ctx, sh.meta, "syncs", 1)
		wait := s.waitForReplica(ctx, pipe)
		if _, err := pipe.Exec(ctx); err != nil {
			return err
		}
		if n, _ := wait.Int64(); n < 1 {
			return fmt.Errorf("no replica confirms: %w", backend.ErrUnavailable)
		}
		return nil
	})
}

// primary is a client of the server that has the shard. The client follows no
// redirects and repeats nothing.
func (s *session) primary(ctx context.Context, sh *shard) (*goredis.Client, error) {
	switch c := s.client.(type) {
	case *goredis.Client:
		return c, nil
	case *goredis.ClusterClient:
		on, err := c.MasterForKey(ctx, sh.meta)
		if err != nil {
			return nil, &refusal{err: fmt.Errorf("no master for shard %d: %w", sh.index, err)}
		}
		return on, nil
	}
	return nil, fmt.Errorf("unknown client %T: %w", s.client, backend.ErrUnavailable)
}

// locate asks again, in the background, which node has which slots, if a call has failed
// with an error that may mean that it is another one: also if the node did not answer,
// since one that is gone for good redirects nobody.
func (s *session) locate(failed error) {
	if failed == nil || replied(failed) && !refused(failed) {
		return
	}
	for _, client := range []goredis.UniversalClient{s.client, s.blocking} {
		if c, ok := client.(*goredis.ClusterClient); ok {
			c.ReloadState(context.Background())
		}
	}
}
