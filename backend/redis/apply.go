package redis

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
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
		if p, err = s.reproposal(ctx, p, reply, err); err == nil {
			reply, err = s.propose(ctx, p, b.Deadline)
		}
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

// proposal is a batch as the script takes it.
type proposal struct {
	shard *shard
	batch backend.Batch
	keys  []string
	args  []any // of the actions
}

// deed is what the script calls one.
func deed(d backend.Deed) string {
	switch d {
	case backend.DeedPut:
		return "p"
	case backend.DeedDelete:
		return "d"
	case backend.DeedReindex:
		return "r"
	}
	return "c"
}

// presence is what the script calls one.
func presence(p backend.Presence) string {
	switch p {
	case backend.Absent:
		return "a"
	case backend.Present:
		return "p"
	}
	return ""
}

// actionArguments is the number of arguments of one action, STRIDE in apply.lua.
const actionArguments = 12

func newProposal(sh *shard, b backend.Batch) *proposal {
	p := &proposal{shard: sh, batch: b, keys: make([]string, 0, 3+len(b.Actions)), args: make([]any, 0, actionArguments*len(b.Actions))}
	p.keys = append(p.keys, sh.meta, sh.rows, sh.log)
	for i := range b.Actions {
		a := &b.Actions[i]
		p.keys = append(p.keys, sh.key(a.Key))
		deleting, refs := "", ""
		switch {
		case a.If.Deleting:
			deleting = "y"
		case a.If.NotDeleting:
			deleting = "n"
		}
		if a.If.Unreferenced {
			refs = string(entryRef) + string(backend.Range{Referenced: &a.Key, BoundOnly: true}.Prefix())
		}
		var entries, rest []byte
		if a.Do == backend.DeedPut || a.Do == backend.DeedReindex {
			entries, rest = derive(a)
		}
		p.args = append(p.args, deed(a.Do), backend.AppendString(nil, a.Key.Kind), backend.OrderTuple(a.Key.Namespace, a.Key.Name),
			presence(a.If.Presence), escape(a.If.UID), a.If.Revision.String(), deleting, refs, escape(a.Put.UID), entries, rest, sh.item)
	}
	return p
}

// derive returns the entries of a put or a reindex, and the rest of its record:
// whether the caller made it, when it expires, whether it is being deleted, its
// size, that of its rows, and the body.
func derive(a *backend.Action) (entries, rest []byte) {
	r := backend.Resource{Key: a.Key, Rows: a.Put.Rows, Refs: a.Put.Refs, Body: a.Put.Body}
	r.Fingerprint, r.Deleting = a.Put.Fingerprint, a.Put.Deleting
	if !a.Put.ExpiresAt.IsZero() {
		r.ExpiresAt = a.Put.ExpiresAt.UTC().Truncate(time.Millisecond)
	}
	rest = append(make([]byte, 0, len(r.Body)+48), 'e')
	if a.Put.Caller {
		rest[0] = 'c'
	}
	rest = append(append(rest, millis(r.ExpiresAt)...), '\n')
	if r.Deleting {
		rest = append(rest, deletingFlag...)
	}
	rest = append(strconv.AppendInt(append(rest, '\n'), int64(r.Size()), 10), '\n')
	rest = append(strconv.AppendInt(rest, int64(rowsSize(r.Rows)), 10), '\n')
	return appendEntries(nil, &r), append(rest, r.Body...)
}

// propose sends a batch until it was judged, its deadline has passed or patience
// ends. Nothing is sent again that may have been judged. With an answer the
// error is what became of it afterwards: ErrUnknown where a replica does not
// confirm in time.
func (s *Store) propose(ctx context.Context, p *proposal, deadline time.Time) ([]any, error) {
	until := time.Now().Add(patience)
	for n := 0; ; n++ {
		ses, err := s.core.acquire(s)
		if err != nil {
			return nil, err
		}
		reply, err := s.send(ctx, ses, p, deadline)
		ses.inflight.Done()
		if text(reply, 0) == "epoch" {
			// Another gateway met another server than these connections.
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
	clock := s.core.clockArgument()
	args := append(make([]any, 0, 10+len(p.args)),
		s.core.epochs[p.shard.index].Load(), Format, s.core.deadlineArgument(deadline, clock), clock, escape(p.batch.RequestID),
		cfg.LogEntries, cfg.LogBytes, cfg.LogAge.Milliseconds(), cfg.LogSlack, len(p.batch.Actions))
	args = append(args, p.args...)
	var reply []any
	if cfg.Durability == DurabilityReplica {
		reply, err = s.sendAndWait(ctx, on, p.keys, args)
	} else {
		reply, err = s.core.scripts.apply.run(ctx, on, p.keys, args...)
	}
	if err != nil && (elsewhere(err) || unsent(err)) {
		ses.reload(ctx)
	}
	return reply, err
}

// sendAndWait runs the script and waits, on the same connection, until a
// replica has what it wrote.
func (s *Store) sendAndWait(ctx context.Context, on *goredis.Client, keys []string, args []any) ([]any, error) {
	for _, run := range []func(goredis.Pipeliner) *goredis.Cmd{
		func(p goredis.Pipeliner) *goredis.Cmd { return p.EvalSha(ctx, s.core.scripts.apply.sha, keys, args...) },
		func(p goredis.Pipeliner) *goredis.Cmd { return p.Eval(ctx, s.core.scripts.apply.source, keys, args...) },
	} {
		pipe := on.Pipeline()
		cmd := run(pipe)
		wait := s.waitForReplica(ctx, pipe)
		_, execErr := pipe.Exec(ctx)
		reply, err := cmd.Slice()
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

// waitForReplica asks how many replicas have what the connection has written.
func (s *Store) waitForReplica(ctx context.Context, pipe goredis.Pipeliner) *goredis.Cmd {
	return pipe.Do(ctx, "wait", 1, (s.core.cfg.Timeout * 2 / 3).Milliseconds())
}

// Sync is [backend.Syncer.Sync]: with DurabilityReplica it waits until a replica
// has all that the shard's server has now.
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
		// WAIT counts from the connection's own last write.
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

// primary is a client of the server that has the shard. It follows no redirects
// and repeats nothing.
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

// reload learns anew which node has which slots.
func (s *session) reload(ctx context.Context) {
	if c, ok := s.client.(*goredis.ClusterClient); ok {
		c.ReloadState(ctx)
	}
}

// outcome reads the script's answer.
func (s *Store) outcome(p *proposal, reply []any) (backend.Result, error) {
	switch word := text(reply, 0); word {
	case "ok":
		res, err := s.result(p, reply)
		if err != nil {
			// It was applied, and what it left does not decode.
			return res, fmt.Errorf("apply: %w: %w", backend.ErrUnknown, err)
		}
		return res, nil
	case "deadline":
		return backend.Result{}, backend.ErrDeadline
	case "condition":
		return backend.Result{}, p.conditionError(reply)
	case "unreadable":
		i, err := p.action(text(reply, 1))
		if err != nil {
			return backend.Result{}, err
		}
		return backend.Result{}, unreadable(p.batch.Actions[i].Key, backend.ErrUnreadable)
	case "format":
		return backend.Result{}, fmt.Errorf("apply: the store has format %.20s, this release reads up to %d: %w", text(reply, 1), Format, backend.ErrFormat)
	default:
		return backend.Result{}, fmt.Errorf("apply: unknown answer %.20q: %w", word, backend.ErrUnknown)
	}
}

// action reads the number of an action, which scripts count from 1.
func (p *proposal) action(number string) (int, error) {
	n, err := strconv.Atoi(number)
	if err != nil || n < 1 || n > len(p.batch.Actions) {
		return 0, fmt.Errorf("apply: unknown action %.20q: %w", number, backend.ErrUnavailable)
	}
	return n - 1, nil
}

func (p *proposal) conditionError(reply []any) error {
	i, err := p.action(text(reply, 1))
	if err != nil {
		return err
	}
	ce := &backend.ConditionError{Action: i, Key: p.batch.Actions[i].Key}
	switch word := text(reply, 2); word {
	case "absent":
		ce.Err = backend.ErrNotFound
	case "exists":
		ce.Err = backend.ErrExists
	case "conflict":
		ce.Err = backend.ErrConflict
	case "deleting":
		ce.Err = backend.ErrDeleting
	case "notdeleting":
		ce.Err = backend.ErrNotDeleting
	case "referenced":
		ce.Err = backend.ErrReferenced
	default:
		return fmt.Errorf("apply: unknown condition %.20q: %w", word, backend.ErrUnavailable)
	}
	if record := text(reply, 3); record != "" {
		if ce.Current, err = decodeRecord(ce.Key, record); err != nil {
			return unreadable(ce.Key, err)
		}
	}
	return ce
}

// result reads what an applied batch left behind.
func (s *Store) result(p *proposal, reply []any) (backend.Result, error) {
	n := len(p.batch.Actions)
	res := backend.Result{Resources: make([]*backend.Resource, n), Revisions: make([]backend.Revision, n)}
	for i := range p.batch.Actions {
		a, said := &p.batch.Actions[i], text(reply, i+2)
		var err error
		switch a.Do {
		case backend.DeedPut:
			res.Resources[i], err = putResult(a, said)
			if err == nil {
				res.Revisions[i] = res.Resources[i].Revision
			}
		case backend.DeedDelete:
			id, record, _ := strings.Cut(said, "\n")
			if res.Revisions[i], err = backend.ParseRevision(id); err == nil && record != "" {
				res.Resources[i], err = decodeRecord(a.Key, record)
			} else if err == nil {
				res.Resources[i] = &backend.Resource{Key: a.Key}
			}
		default:
			if said != "" {
				res.Resources[i], err = decodeRecord(a.Key, said)
			}
		}
		if err != nil {
			return backend.Result{}, err
		}
	}
	seq, err := strconv.ParseUint(text(reply, 1), 10, 64)
	if err != nil {
		return backend.Result{}, err
	}
	head := backend.Revision{Epoch: s.core.epochs[p.shard.index].Load(), Seq: seq}
	for _, r := range res.Revisions {
		head.Epoch = max(head.Epoch, r.Epoch)
	}
	heads := make([]backend.Revision, len(s.core.shards))
	heads[p.shard.index] = head
	res.Position = backend.NewPosition(heads...)
	return res, nil
}

// putResult is the stored resource by what the script stamped.
func putResult(a *backend.Action, said string) (*backend.Resource, error) {
	field := strings.Split(said, "\n")
	if len(field) != 5 {
		return nil, fmt.Errorf("put: %w", backend.ErrUnreadable)
	}
	r := &backend.Resource{Key: a.Key, Rows: a.Put.Rows, Refs: a.Put.Refs, Body: a.Put.Body}
	r.Fingerprint, r.Deleting = a.Put.Fingerprint, a.Put.Deleting
	if !a.Put.ExpiresAt.IsZero() {
		r.ExpiresAt = a.Put.ExpiresAt.UTC().Truncate(time.Millisecond)
	}
	var errs [5]error
	r.Revision, errs[0] = backend.ParseRevision(field[0])
	r.SpecRevision, errs[1] = backend.ParseRevision(field[1])
	r.UID, errs[2] = unescape(field[2])
	r.CreatedAt, errs[3] = parseMillis(field[3])
	r.UpdatedAt, errs[4] = parseMillis(field[4])
	return r, errors.Join(errs[:]...)
}

func unreadable(k backend.Key, err error) error {
	if errors.Is(err, backend.ErrUnreadable) {
		return fmt.Errorf("%s: %w", k, err)
	}
	return fmt.Errorf("%s: %w: %w", k, backend.ErrUnreadable, err)
}
