package redis

import (
	"context"
	"errors"
	"fmt"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/storekit"
)

// This file sends batches to the servers. Batches that wait for the same server at the same time share a pipeline;
// those with a single action share a run of the script as well:
//
//	Apply      newProposal     the batch as keys and arguments of the script
//	propose    send            -> writeQueue of the shard's primary -> batch.lua
//	             |
//	             +- not sent, or refused by the server     again, while patience lasts
//	             +- reply 'epoch'                          new connections, then again
//	             +- reply 'unreadable'                     takeDamaged, then once more
//	             +- any other reply                        outcome: result or error
//	             +- no reply                               ErrUnknown; never sent again
//
// A batch whose reply was lost may have been applied. The caller of Apply finds that out from the log. After the
// deadline of the batch no server applies it any more.

// Apply implements [backend.Store].
func (s *Store) Apply(ctx context.Context, b backend.Batch) (backend.Result, error) {
	if err := s.ready(ctx); err != nil {
		return backend.Result{}, err
	}
	if s.core.cfg.ReadOnly {
		return backend.Result{}, backend.ErrReadOnly
	}
	if err := b.Validate(s); err != nil {
		return backend.Result{}, err
	}
	p := newProposal(s.shard(b.Namespace()), b)
	reply, err := s.propose(ctx, p)
	if text(reply, 0) == "unreadable" {
		if err := s.takeDamaged(ctx, p, reply); err != nil {
			return backend.Result{}, err
		}
		reply, err = s.propose(ctx, p)
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

// propose sends a batch until the script has decided on it or patience has passed. A batch that the script may have
// decided on is never sent again. If propose returns both a reply and an error, the batch was applied, but no replica
// has confirmed it in time: ErrUnknown.
func (s *Store) propose(ctx context.Context, p *proposal) ([]any, error) {
	until, backoff := time.Now().Add(patience), repetitions()
	for {
		ses, err := s.core.acquire(s)
		if err != nil {
			return nil, err
		}
		reply, err := s.send(ctx, ses, p)
		ses.locate(err)
		ses.inflight.Done()
		if text(reply, 0) == "epoch" {
			// These connections belong to another epoch.
			s.core.renew(ses)
			reply, err = nil, fmt.Errorf("the epoch has changed: %w", backend.ErrUnavailable)
		} else if reply != nil {
			s.core.noteSpace()
			return reply, err
		} else if !unsent(err) && !refused(err) && !errors.Is(err, backend.ErrUnavailable) {
			if goredis.HasErrorPrefix(err, "OOM") {
				s.core.noteFull(err)
				return nil, fmt.Errorf("apply: %w: %w", backend.ErrNoSpace, err)
			}
			if replied(err) {
				return nil, fmt.Errorf("apply: %w: %w", backend.ErrUnavailable, err)
			}
			return nil, fmt.Errorf("apply: %w: %w", backend.ErrUnknown, err)
		}
		if s.isClosed() {
			return nil, backend.ErrClosed
		}
		if ctx.Err() != nil || final(err) || errors.As(err, new(*NoReplicaError)) || !pause(ctx, backoff, until) {
			return nil, failed(ctx, "apply", err)
		}
	}
}

// send sends the batch once. It does not send the batch if the server is refused because of its clock.
func (s *Store) send(ctx context.Context, ses *session, p *proposal) ([]any, error) {
	ctx, cancel := context.WithTimeout(ctx, s.core.cfg.Timeout)
	defer cancel()
	on, err := ses.primary(ctx, p.shard)
	if err != nil {
		return nil, err
	}
	if err := s.core.checkReplica(ctx, p.shard, on); err != nil {
		return nil, err
	}
	node, err := s.checkClock(ctx, on)
	if err != nil {
		return nil, err
	}
	return ses.writeQueue(on).run(ctx, &scriptCall{keys: p.keys, args: s.core.arguments(p, node), size: p.batch.Size()})
}

// waitForReplica adds a command that returns how many replicas have everything that the connection has written.
func (c *core) waitForReplica(ctx context.Context, pipe goredis.Pipeliner) *goredis.Cmd {
	return pipe.Do(ctx, "wait", 1, (c.cfg.Timeout * 2 / 3).Milliseconds())
}

// Sync implements [backend.Syncer]. With DurabilityReplica it waits until a replica has everything that the server of
// the shard has now.
func (s *Store) Sync(ctx context.Context, namespace string) error {
	if s.core.cfg.Durability != DurabilityReplica || s.core.cfg.ReadOnly {
		return s.ready(ctx)
	}
	sh := s.shard(namespace)
	return s.read(ctx, "sync", func(ctx context.Context, ses *session) error {
		on, err := ses.primary(ctx, sh)
		if err != nil {
			return err
		}
		pipe := on.Pipeline()
		// WAIT waits for the last write that was sent on the same connection, so there must be one.
		pipe.HIncrBy(ctx, sh.meta, "syncs", 1)
		wait := s.core.waitForReplica(ctx, pipe)
		if _, err := pipe.Exec(ctx); err != nil {
			return err
		}
		if n, _ := wait.Int64(); n < 1 {
			return fmt.Errorf("no replica confirms: %w", backend.ErrUnavailable)
		}
		return nil
	})
}

// primary returns a client of the server that has a shard. The client follows no redirects and repeats no calls.
func (s *session) primary(ctx context.Context, sh *shard) (*goredis.Client, error) {
	c, ok := s.client.(*goredis.ClusterClient)
	if !ok {
		return s.client.(*goredis.Client), nil
	}
	on, err := c.MasterForKey(ctx, sh.meta)
	if err != nil {
		return nil, &refusal{err: fmt.Errorf("no master for shard %d: %w", sh.index, err)}
	}
	return on, nil
}

// locate makes the cluster clients read again, in the background, which node has which slots. It does so if an error
// may mean that slots have moved. It also does so if a node does not answer, because a node that is gone cannot
// redirect calls.
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

// takeDamaged prepares a batch to be sent again, after the script has found a resource that does not decode. A delete
// may remove such a resource if its condition is only about presence. For that it needs the resource's members of the
// index. They can be found only by reading the whole index of the shard, which takeDamaged does once for all such
// deletes. For any other action on the resource it returns [backend.ErrUnreadable].
func (s *Store) takeDamaged(ctx context.Context, p *proposal, reply []any) error {
	i := p.action(text(reply, 1))
	byKey := make(map[string]*action)
	for i := range p.actions {
		a := &p.batch.Actions[i]
		if a.Op == backend.OpDelete && a.If == (backend.Condition{Presence: a.If.Presence}) {
			byKey[string(a.Key.Append(nil))] = &p.actions[i]
		}
	}
	if byKey[string(p.batch.Actions[i].Key.Append(nil))] == nil {
		return storekit.Unreadable(p.batch.Actions[i].Key, errors.New("the batch asks more of it"))
	}
	return s.read(ctx, "damaged", func(ctx context.Context, ses *session) error {
		for _, a := range byKey {
			a.op, a.more = opDeleteDamaged, nil
		}
		lo := "-"
		for {
			members, err := ses.client.ZRangeArgs(
				ctx, goredis.ZRangeArgs{Key: p.shard.members, ByLex: true, Start: lo, Stop: "+", Count: scanChunk},
			).Result()
			if err != nil {
				return err
			}
			for _, m := range members {
				k, err := targetOf(m)
				if err != nil {
					continue
				}
				if a := byKey[string(k.Append(nil))]; a != nil {
					a.more = packed(a.more, []byte(m))
				}
			}
			if len(members) < scanChunk {
				return nil
			}
			lo = "(" + members[len(members)-1]
		}
	})
}
