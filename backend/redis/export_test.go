package redis

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"strconv"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/storekit"
)

// OpenAnew opens a store and begins an epoch, as drivers on files do.
func OpenAnew(ctx context.Context, cfg Config) (*Store, error) {
	s, err := Open(ctx, cfg)
	if err != nil || s.core.begun.Load() {
		return s, err
	}
	return s, s.read(ctx, "epoch", func(ctx context.Context, ses *session) error {
		for i := range s.core.shards {
			sh := &s.core.shards[i]
			ids, err := ses.client.HMGet(ctx, sh.meta, "run", "replid").Result()
			if err != nil {
				return err
			}
			reply, err := s.core.scripts.epoch.run(ctx, ses.client, []string{sh.meta, sh.log, sh.members}, text(ids, 0), text(ids, 1),
				Format, len(s.core.shards), i, s.core.clockArgument(""), "", s.core.random(), "begin")
			if err != nil {
				return err
			}
			epoch, err := strconv.ParseUint(text(reply, 1), 10, 64)
			if err != nil {
				return err
			}
			s.core.epochs[i].Store(epoch)
		}
		return nil
	})
}

// Skewed sets the clocks of nodes ahead.
func Skewed(cfg Config, skew func(node string) time.Duration) Config {
	cfg.skew = skew
	return cfg
}

// Measure is what Run does about clocks.
func (s *Store) Measure(ctx context.Context) error { return s.read(ctx, "clock", s.measureAll) }

// What decodes foreign bytes.

func DecodeRecord(k backend.Key, value string) (*backend.Resource, error) {
	return decodeRecord(k, value)
}

func DecodeBare(k backend.Key, value string) (*backend.Resource, error) { return bareRecord(k, value) }

func DecodeEntry(id string, values map[string]any) (backend.Event, bool, error) {
	return decodeEntry(goredis.XMessage{ID: id, Values: values})
}

// SealRecord returns a record of fields that end with a newline, references and a body, with its sums.
func SealRecord(k backend.Key, fields, refs, body string) string {
	h := header{fields: string(appendBodySum([]byte(fields), []byte(body))), refs: refs}
	return h.fields + sumDigitsOf(string(k.Append(nil))+h.fields+refs) + refs + body
}

// Reseal returns a record with the right sums, if it has the form of one.
func Reseal(k backend.Key, record string) string {
	h, err := parseHeader(record)
	if err != nil {
		return record
	}
	return SealRecord(k, strings.TrimSuffix(h.fields, h.bodySum), h.refs, h.body)
}

// SealHead returns the head of an entry without a change, with its sum.
func SealHead(id, head string) string { return head + sumDigitsOf(id+head) }

func sumDigitsOf(text string) string {
	full := sha1.Sum([]byte(text))
	return hex.EncodeToString(full[:])[:sumDigits]
}

func DecodeMember(m string) (backend.Key, error) { return targetOf(m) }

func FindMember(r backend.Range, m string) (backend.Key, error) {
	prefix := 1
	if r.Referenced != nil {
		prefix += len(r.Prefix())
	}
	f := find(prefix, m)
	return f.key, f.err
}

func DueOrder(m string) string { return dueOrder(m) }

func MembersOf(r *backend.Resource) [][]byte { return membersOf(r) }

func ParseRevision(s string) (backend.Revision, error) { return backend.ParseRevision(s) }

func ParseState(head backend.Revision, trimmed, epochs string) (storekit.LogState, error) {
	return parseState(head, trimmed, epochs)
}

func Older(version, than string) bool { return older(version, than) }

// Outcome is what the caller of a batch is told.
type Outcome struct {
	Result backend.Result
	Err    error
}

// ApplyTogether sends batches of one shard in one pipeline, as if their callers had
// come together.
func (s *Store) ApplyTogether(ctx context.Context, batches []backend.Batch) ([]Outcome, error) {
	ses, err := s.core.acquire(s)
	if err != nil {
		return nil, err
	}
	defer ses.inflight.Done()
	sh := s.shard(batches[0].Actions[0].Key.Namespace)
	on, err := ses.primary(ctx, sh)
	if err != nil {
		return nil, err
	}
	calls, proposals := make([]*scriptCall, len(batches)), make([]*proposal, len(batches))
	for i, b := range batches {
		p := newProposal(sh, b)
		proposals[i] = p
		calls[i] = &scriptCall{keys: p.keys, done: make(chan struct{}), args: s.core.arguments(p, "")}
	}
	ses.writeQueue(on).send(calls)
	out := make([]Outcome, len(calls))
	for i, c := range calls {
		if <-c.done; c.err != nil {
			out[i].Err = c.err
		} else {
			out[i].Result, out[i].Err = s.outcome(proposals[i], c.reply)
		}
	}
	return out, nil
}

// Waiting is how many calls wait to be sent to the server of a namespace, and Senders
// how many pipelines are on their way.
func (s *Store) Waiting(ctx context.Context, namespace string) (n int) {
	s.writeQueueOf(ctx, namespace, func(w *writeQueue) { n = len(w.queue) })
	return n
}

func (s *Store) Senders(ctx context.Context, namespace string) (n int) {
	s.writeQueueOf(ctx, namespace, func(w *writeQueue) { n = w.senders })
	return n
}

func (s *Store) writeQueueOf(ctx context.Context, namespace string, look func(*writeQueue)) {
	ses, err := s.core.acquire(s)
	if err != nil {
		return
	}
	defer ses.inflight.Done()
	on, err := ses.primary(ctx, s.shard(namespace))
	if err != nil {
		return
	}
	w := ses.writeQueue(on)
	w.mu.Lock()
	defer w.mu.Unlock()
	look(w)
}

// Handle returns another store on the same data, with separate connections. A handle of a closed store is
// closed.
func (s *Store) Handle() *Store {
	c := newCore(s.core.cfg, s.core.at)
	c.clocks = s.core.clocks
	for i := range c.epochs {
		c.epochs[i].Store(s.core.epochs[i].Load())
		c.heads[i].Store(s.core.heads[i].Load())
	}
	h := &Store{core: c, closed: make(chan struct{})}
	if s.isClosed() {
		c.closing = true
		h.once.Do(func() { close(h.closed) })
		return h
	}
	c.session = newSession(c)
	return h
}
