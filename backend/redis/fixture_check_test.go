package redis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	goredis "github.com/redis/go-redis/v9"

	"github.com/sluicegw/sluice/backend"
)

// checkErrors is how many errors Check reports at most.
const checkErrors = 20

// Check reads everything and reports where resources, index and log are
// inconsistent. Nobody may write meanwhile.
func (s *Store) Check(ctx context.Context) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	ses, err := s.core.acquire(s)
	if err != nil {
		return err
	}
	defer ses.inflight.Done()
	c := &checker{client: ses.client, shards: s.core.shards, stored: make([]map[backend.Key]*backend.Resource, len(s.core.shards))}
	if err := c.read(ctx, s.core.cfg.Prefix); err != nil {
		return err
	}
	for i := range s.core.shards {
		if err := c.check(ctx, &s.core.shards[i]); err != nil {
			return err
		}
	}
	_, err = s.Verify(ctx, backend.Verification{Found: func(d backend.Damage) { c.errs = append(c.errs, fmt.Errorf("verify: %s", d)) }})
	return errors.Join(append(c.errs, err)...)
}

type checker struct {
	client goredis.UniversalClient
	shards []shard
	// stored are the resources of each shard.
	stored []map[backend.Key]*backend.Resource
	mu     sync.Mutex // guards what is above and below while nodes are read
	errs   []error
}

func (c *checker) wrong(format string, args ...any) {
	if len(c.errs) < checkErrors {
		c.errs = append(c.errs, fmt.Errorf(format, args...))
	}
}

func (c *checker) check(ctx context.Context, sh *shard) error {
	members, err := c.client.ZRange(ctx, sh.members, 0, -1).Result()
	if err != nil {
		return err
	}
	stored, missing := c.stored[sh.index], map[string]backend.Key{}
	for _, r := range stored {
		for _, m := range membersOf(r) {
			missing[string(m)] = r.Key
		}
	}
	for _, m := range members {
		if _, ok := missing[m]; !ok {
			k, err := targetOf(m)
			c.wrong("the index has %q of %s, which has it not (%v)", m, k, err)
		}
		delete(missing, m)
	}
	for m, k := range missing {
		c.wrong("resource %s: no %q in the index", k, m)
	}
	return c.log(ctx, sh, stored)
}

// read reads all resources, each node once.
func (c *checker) read(ctx context.Context, prefix string) error {
	for i := range c.shards {
		c.stored[i] = map[backend.Key]*backend.Resource{}
	}
	node := func(ctx context.Context, node goredis.UniversalClient) error {
		it := node.Scan(ctx, 0, escapeGlob(prefix)+"i:*", 1000).Iterator()
		for it.Next(ctx) {
			record, err := node.Get(ctx, it.Val()).Result()
			if err != nil {
				return err
			}
			c.resource(it.Val(), record)
		}
		return it.Err()
	}
	if cluster, ok := c.client.(*goredis.ClusterClient); ok {
		return cluster.ForEachMaster(ctx, func(ctx context.Context, one *goredis.Client) error { return node(ctx, one) })
	}
	return node(ctx, c.client)
}

// resource takes what one key holds.
func (c *checker) resource(name, record string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.shards, func(sh shard) bool { return strings.HasPrefix(name, sh.item) })
	if i < 0 {
		c.wrong("key %q is of no shard", name)
		return
	}
	k, err := backend.DecodeKey([]byte(strings.TrimPrefix(name, c.shards[i].item)))
	if err != nil {
		c.wrong("key %q: %w", name, err)
		return
	}
	if shardOf(k.Namespace, len(c.shards)) != i {
		c.wrong("resource %s lies in shard %d", k, i)
	}
	r, err := decodeRecord(k, record)
	if err != nil {
		c.wrong("resource %s: %w", k, err)
		return
	}
	c.stored[i][k] = r
}

// log expects dense revisions from the trim mark to the head, and what is stored
// under each key to be what the log's last entry of the key left.
func (c *checker) log(ctx context.Context, sh *shard, stored map[backend.Key]*backend.Resource) error {
	names := []string{"epoch", "seq", "count", "bytes", "trimmed"}
	values, err := c.client.HMGet(ctx, sh.meta, names...).Result()
	if err != nil {
		return err
	}
	meta := map[string]string{}
	for i, name := range names {
		meta[name], _ = values[i].(string)
	}
	entries, err := c.client.XRange(ctx, sh.log, "-", "+").Result()
	if err != nil {
		return err
	}
	trimmed, _ := backend.ParseRevision(meta["trimmed"])
	var last backend.Revision
	count, bytes := 0, 0
	newest := map[backend.Key]backend.Event{}
	for _, m := range entries {
		e, ok, err := decodeEntry(m)
		if err != nil {
			c.wrong("%w", err)
			continue
		}
		if e.Revision.Compare(trimmed) <= 0 {
			last = e.Revision
			continue // may go at any time
		}
		if !last.IsZero() && e.Revision.Epoch == last.Epoch && e.Revision.Seq != last.Seq+1 {
			c.wrong("log entry %s follows %s", e.Revision, last)
		}
		last = e.Revision
		if !ok {
			continue
		}
		count++
		head, _ := m.Values["h"].(string)
		size, _ := strconv.Atoi(strings.Split(head, "\n")[1])
		bytes += size
		if want := e.Size(); size != want && e.Resource.UID != "" {
			c.wrong("log entry %s counts %d bytes, want %d", e.Revision, size, want)
		}
		newest[e.Resource.Key] = e
	}
	if head := meta["epoch"] + "-" + meta["seq"]; len(entries) > 0 && head != streamID(last) {
		c.wrong("the log ends at %s, its meta says %s", streamID(last), head)
	}
	if meta["count"] != strconv.Itoa(count) || meta["bytes"] != strconv.Itoa(bytes) {
		c.wrong("the log has %d entries of %d bytes, its meta says %s of %s", count, bytes, meta["count"], meta["bytes"])
	}
	for k, e := range newest {
		r := stored[k]
		if want := e.Type != backend.Deleted; (r != nil) != want || want && r.Revision != e.Revision {
			c.wrong("%s: what is stored is not what its last log entry %s %s left", k, e.Type, e.Revision)
		}
	}
	return nil
}
