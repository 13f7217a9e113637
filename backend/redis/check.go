package redis

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	goredis "github.com/redis/go-redis/v9"

	"github.com/sluicegw/sluice/backend"
)

// checkErrors bounds what Check reports.
const checkErrors = 20

// Check reads everything and says where resources, index and log do not agree.
// Nobody must write meanwhile.
func (s *Store) Check(ctx context.Context) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	ses, err := s.core.acquire(s)
	if err != nil {
		return err
	}
	defer ses.inflight.Done()
	c := &checker{client: ses.client}
	for i := range s.core.shards {
		if err := c.check(ctx, &s.core.shards[i]); err != nil {
			return err
		}
	}
	return errors.Join(c.errs...)
}

type checker struct {
	client goredis.UniversalClient
	errs   []error
}

func (c *checker) wrong(format string, args ...any) {
	if len(c.errs) < checkErrors {
		c.errs = append(c.errs, fmt.Errorf(format, args...))
	}
}

func (c *checker) check(ctx context.Context, sh *shard) error {
	members, err := c.client.ZRange(ctx, sh.rows, 0, -1).Result()
	if err != nil {
		return err
	}
	stored, err := c.resources(ctx, sh)
	if err != nil {
		return err
	}
	missing := map[string]backend.Key{}
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

// resources reads all resources of a shard.
func (c *checker) resources(ctx context.Context, sh *shard) (map[backend.Key]*backend.Resource, error) {
	node := c.client
	if cluster, ok := c.client.(*goredis.ClusterClient); ok {
		one, err := cluster.MasterForKey(ctx, sh.meta)
		if err != nil {
			return nil, err
		}
		node = one
	}
	out := map[backend.Key]*backend.Resource{}
	it := node.Scan(ctx, 0, escapeGlob(sh.item)+"*", 1000).Iterator()
	for it.Next(ctx) {
		k, err := backend.DecodeKey([]byte(strings.TrimPrefix(it.Val(), sh.item)))
		if err != nil {
			c.wrong("key %q: %w", it.Val(), err)
			continue
		}
		record, err := node.Get(ctx, it.Val()).Result()
		if err != nil {
			return nil, err
		}
		if out[k], err = decodeRecord(k, record); err != nil {
			c.wrong("resource %s: %w", k, err)
			delete(out, k)
		}
	}
	return out, it.Err()
}

// log wants dense revisions from the trim mark to the head, and of every key the
// last change that the log holds to be what is stored.
func (c *checker) log(ctx context.Context, sh *shard, stored map[backend.Key]*backend.Resource) error {
	meta, err := c.client.HGetAll(ctx, sh.meta).Result()
	if err != nil {
		return err
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
