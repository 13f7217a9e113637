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
	"github.com/sluicegw/sluice/backend/storekit"
)

var _ backend.Verifier = (*Store)(nil)

// verifyChunk is how many records, members or entries a verification reads at a time.
const verifyChunk = 256

// verifyTries is how often a log is read if its oldest entries are removed meanwhile.
const verifyTries = 3

// Verify implements [backend.Verifier]. There may be writes at the same time: what seems wrong is checked again in one
// step of the server.
func (s *Store) Verify(ctx context.Context, v backend.Verification) (backend.Verified, error) {
	if err := s.ready(ctx); err != nil {
		return backend.Verified{}, err
	}
	ses, err := s.core.acquire(s)
	if err != nil {
		return backend.Verified{}, err
	}
	defer ses.inflight.Done()
	c := &verifier{store: s, client: ses.client, Inspector: storekit.Inspector{Verification: v}}
	err = c.records(ctx)
	for i := range s.core.shards {
		sh := &s.core.shards[i]
		if err == nil {
			err = c.index(ctx, sh)
		}
		if err == nil {
			err = c.log(ctx, sh)
		}
	}
	if err != nil {
		return c.Verified, fmt.Errorf("redis: verify: %w", failed(ctx, "verify", err))
	}
	return c.Verified, nil
}

type verifier struct {
	storekit.Inspector
	store  *Store
	client goredis.UniversalClient
	mu     sync.Mutex // held while records of one node are checked
}

func (c *verifier) shards() []shard { return c.store.core.shards }

// records checks all records of all nodes.
func (c *verifier) records(ctx context.Context) error {
	node := func(ctx context.Context, node goredis.UniversalClient) error {
		cursor := uint64(0)
		for {
			keys, next, err := node.Scan(ctx, cursor, escapeGlob(c.store.core.cfg.Prefix)+"i:*", verifyChunk).Result()
			if err != nil {
				return err
			}
			if err := c.scanned(ctx, node, keys); err != nil {
				return err
			}
			cursor = next
			if cursor == 0 {
				return nil
			}
		}
	}
	if cluster, ok := c.client.(*goredis.ClusterClient); ok {
		return cluster.ForEachMaster(ctx, func(ctx context.Context, one *goredis.Client) error {
			return node(ctx, one)
		})
	}
	return node(ctx, c.client)
}

// scanned checks the records with the given keys on a node.
func (c *verifier) scanned(ctx context.Context, node goredis.UniversalClient, keys []string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	pipe := node.Pipeline()
	cmds := make([]*goredis.StringCmd, len(keys))
	for i, key := range keys {
		cmds[i] = pipe.Get(ctx, key)
	}
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, goredis.Nil) {
		return err
	}
	var found []storedRecord
	for i, key := range keys {
		if cmds[i].Err() != nil {
			continue // it is gone
		}
		c.Count(&c.Verified.Records)
		sh := c.shardOfItem(key)
		k, err := backend.DecodeKey([]byte(strings.TrimPrefix(key, sh.item)))
		if err == nil && c.store.Shard(k.Namespace) != sh.index {
			err = fmt.Errorf("it lies in shard %d", sh.index)
		}
		if sh.item == "" || err != nil {
			c.Report(backend.Damage{Part: backend.PartRecord, Problem: fmt.Sprintf("the key %q is none of a record", key)})
			continue
		}
		r, err := decodeRecord(k, cmds[i].Val())
		if err != nil {
			c.Report(backend.Damage{Part: backend.PartRecord, Key: k, Problem: err.Error()})
			continue
		}
		found = append(found, storedRecord{shard: sh, resource: r})
	}
	return c.checkRecords(ctx, node, found)
}

// storedRecord is a decoded record, and the shard in which it lies.
type storedRecord struct {
	shard    *shard
	resource *backend.Resource
}

// shardOfItem returns the shard of a record's key; a zero shard if it belongs to none.
func (c *verifier) shardOfItem(key string) *shard {
	shards := c.shards()
	if i := slices.IndexFunc(shards, func(sh shard) bool { return strings.HasPrefix(key, sh.item) }); i >= 0 {
		return &shards[i]
	}
	return &shard{}
}

// checkRecords checks that the index has all members of the records, and that the log has entries of their last
// changes.
func (c *verifier) checkRecords(ctx context.Context, node goredis.UniversalClient, found []storedRecord) error {
	if len(found) == 0 {
		return nil
	}
	pipe := node.Pipeline()
	checks := make([]*recordCheck, len(found))
	for i, one := range found {
		checks[i] = newRecordCheck(ctx, pipe, one)
	}
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, goredis.Nil) {
		return err
	}
	for i, one := range found {
		if checks[i].wrong() == nil {
			continue
		}
		if err := c.recheck(ctx, node, one); err != nil {
			return err
		}
	}
	return nil
}

// recheck reads a record, its index members and its last log entry in one step of the server, and reports what is
// wrong.
func (c *verifier) recheck(ctx context.Context, node goredis.UniversalClient, one storedRecord) error {
	for {
		pipe := node.TxPipeline()
		record := pipe.Get(ctx, one.shard.key(one.resource.Key))
		check := newRecordCheck(ctx, pipe, one)
		if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, goredis.Nil) {
			return err
		}
		if record.Err() != nil {
			return nil // it is gone
		}
		now, err := decodeRecord(one.resource.Key, record.Val())
		if err != nil { // it was changed meanwhile, and the new state does not decode
			c.Report(backend.Damage{Part: backend.PartRecord, Key: one.resource.Key, Problem: err.Error()})
			return nil
		}
		if now.Revision == one.resource.Revision && now.BindingVersion == one.resource.BindingVersion {
			for _, d := range check.wrong() {
				c.Report(d)
			}
			return nil
		}
		one.resource = now
	}
}

// recordCheck has the commands that read the index members and the last log entry of a record.
type recordCheck struct {
	of      storedRecord
	members [][]byte
	present []*goredis.IntCmd         // parallel to members
	entry   *goredis.XMessageSliceCmd // nil for a record without log entries
	trimmed *goredis.StringCmd
}

func newRecordCheck(ctx context.Context, pipe goredis.Pipeliner, of storedRecord) *recordCheck {
	q := &recordCheck{of: of, members: membersOf(of.resource)}
	for _, m := range q.members {
		q.present = append(q.present, countMember(ctx, pipe, of.shard, string(m)))
	}
	if !of.resource.Key.Internal() {
		id := streamID(of.resource.Revision)
		q.entry = pipe.XRangeN(ctx, of.shard.log, id, id, 1)
		q.trimmed = pipe.HGet(ctx, of.shard.meta, "trimmed")
	}
	return q
}

// countMember adds a command that counts a member in the index.
func countMember(ctx context.Context, pipe goredis.Pipeliner, sh *shard, m string) *goredis.IntCmd {
	return pipe.ZLexCount(ctx, sh.members, "["+m, "["+m)
}

// wrong returns what is wrong according to the answers.
func (q *recordCheck) wrong() (found []backend.Damage) {
	r := q.of.resource
	for i, m := range q.members {
		if q.present[i].Val() > 0 {
			continue
		}
		found = append(found, backend.Damage{
			Part: partOf(string(m)), Key: r.Key, Problem: fmt.Sprintf("the index has no member %q that leads to it", m),
		})
	}
	if q.entry == nil {
		return found
	}
	trimmed, _ := backend.ParseRevision(q.trimmed.Val())
	if len(q.entry.Val()) == 0 && r.Revision.Compare(trimmed) > 0 {
		found = append(found, backend.Damage{
			Part: backend.PartLog, Key: r.Key, Revision: r.Revision, Problem: "the log has no entry of its last change",
		})
	}
	return found
}

// partOf returns the part of the store to which a member of the index belongs.
func partOf(member string) string {
	switch member[0] {
	case memberDeleting:
		return backend.PartDeletion
	case memberExpiry:
		return backend.PartExpiry
	case memberRef:
		return backend.PartReference
	}
	return backend.PartName
}

// index checks all members of a shard's index: the record of each must be stored, and must have that member.
func (c *verifier) index(ctx context.Context, sh *shard) error {
	lo := "-"
	for {
		members, err := c.client.ZRangeArgs(
			ctx, goredis.ZRangeArgs{Key: sh.members, ByLex: true, Start: lo, Stop: "+", Count: verifyChunk},
		).Result()
		if err != nil {
			return err
		}
		for _, m := range members {
			c.Count(&c.Verified.Entries)
			if _, err := targetOf(m); err != nil {
				c.Report(backend.Damage{Part: backend.PartName, Problem: fmt.Sprintf("the member %q of the index leads to no key", m)})
			}
		}
		if err := c.members(ctx, sh, members); err != nil {
			return err
		}
		if len(members) < verifyChunk {
			return nil
		}
		lo = "(" + members[len(members)-1]
	}
}

// members checks members of the index. It reports a member whose record is not stored, or does not have that member.
func (c *verifier) members(ctx context.Context, sh *shard, members []string) error {
	pipe := c.client.Pipeline()
	records := make([]*goredis.StringCmd, len(members))
	for i, m := range members {
		if k, err := targetOf(m); err == nil {
			records[i] = pipe.Get(ctx, sh.key(k))
		}
	}
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, goredis.Nil) {
		return err
	}
	for i, m := range members {
		if records[i] == nil || memberProblem(m, records[i]) == "" {
			continue
		}
		k, _ := targetOf(m)
		again := c.client.TxPipeline()
		record := again.Get(ctx, sh.key(k))
		present := countMember(ctx, again, sh, m)
		if _, err := again.Exec(ctx); err != nil && !errors.Is(err, goredis.Nil) {
			return err
		}
		if problem := memberProblem(m, record); problem != "" && present.Val() > 0 {
			c.Report(backend.Damage{Part: partOf(m), Key: k, Problem: problem})
		}
	}
	return nil
}

// memberProblem describes what is wrong with a member of the index; "" if nothing is. verifier.scanned reports a record
// that does not decode.
func memberProblem(m string, record *goredis.StringCmd) string {
	if record.Err() != nil {
		return fmt.Sprintf("the member %q of the index leads to it, and it is not stored", m)
	}
	k, _ := targetOf(m)
	r, err := decodeRecord(k, record.Val())
	if err != nil || slices.ContainsFunc(membersOf(r), func(own []byte) bool { return string(own) == m }) {
		return ""
	}
	return fmt.Sprintf("the member %q of the index leads to it, and is none of its own", m)
}

// errTrimmed means that entries were removed from a log before they were read.
var errTrimmed = errors.New("trimmed meanwhile")

// log checks that a shard's log has no gaps between the trim mark and the head, and that each stored resource agrees
// with its last entry.
func (c *verifier) log(ctx context.Context, sh *shard) error {
	for try := 1; ; try++ {
		v := &logVerifier{verifier: c, shard: sh, absent: storekit.NewAbsent(), last: try == verifyTries}
		err := v.run(ctx)
		if errors.Is(err, errTrimmed) && !v.last {
			continue
		}
		if errors.Is(err, errTrimmed) {
			return fmt.Errorf("the log of shard %d is trimmed faster than it can be read: %w", sh.index, backend.ErrUnavailable)
		}
		if err != nil {
			return err
		}
		for _, d := range v.found {
			c.Report(d)
		}
		return nil
	}
}

// logVerifier verifies a log in one pass.
type logVerifier struct {
	*verifier
	shard *shard
	// last reports whether this is the last try.
	last   bool
	state  storekit.LogState
	at     backend.Revision
	absent *storekit.Absent
	found  []backend.Damage
	// count and bytes are the number and the size of the entries that were read.
	count, bytes int64
}

func (v *logVerifier) wrong(part string, at backend.Revision, format string, args ...any) {
	v.found = append(v.found, backend.Damage{Part: part, Revision: at, Problem: fmt.Sprintf(format, args...)})
}

// headFields returns the fields that the meta of every log has.
func headFields() []string { return []string{"run", "replid", "epochs", "count", "bytes", "oldest"} }

// findMissing reports fields that are missing in the meta of the log. Without them changes would be lost without
// notice, or the log would not be trimmed.
func (v *logVerifier) findMissing(ctx context.Context) error {
	values, err := v.client.HMGet(ctx, v.shard.meta, headFields()...).Result()
	if err != nil {
		return err
	}
	for i, field := range headFields() {
		if values[i] == nil {
			v.wrong(backend.PartHead, backend.Revision{}, "the head of shard %d lacks the field %s", v.shard.index, field)
		}
	}
	return nil
}

// readMeta reads the state of the log, and how many entries and bytes it should have.
func (v *logVerifier) readMeta(ctx context.Context) (count, bytes string, err error) {
	values, err := v.client.HMGet(ctx, v.shard.meta, "epoch", "seq", "trimmed", "epochs", "count", "bytes").Result()
	if err != nil {
		return "", "", err
	}
	head, err := backend.ParseRevision(text(values, 0) + "-" + text(values, 1))
	if err == nil {
		v.state, err = parseState(head, text(values, 2), text(values, 3))
	}
	if err != nil {
		return "", "", backend.FormatErrorf("the head of shard %d: %w", v.shard.index, err)
	}
	return text(values, 4), text(values, 5), nil
}

func (v *logVerifier) run(ctx context.Context) error {
	if err := v.findMissing(ctx); err != nil {
		return err
	}
	count, bytes, err := v.readMeta(ctx)
	if err != nil {
		return err
	}
	head, trimmed := v.state.Head(), v.state.Trimmed
	v.at = trimmed
	if err := v.pages(ctx, head, v.entries); err != nil {
		return err
	}
	if v.at != head && !(v.at.IsZero() && head.Seq == 0) {
		v.wrong(
			backend.PartHead, backend.Revision{},
			"the log ends at %s, and should at %s", streamID(v.at), streamID(head),
		)
	}
	if _, _, err := v.readMeta(ctx); err != nil {
		return err
	}
	unchanged := v.state.Trimmed == trimmed
	agrees := count == strconv.FormatInt(v.count, 10) && bytes == strconv.FormatInt(v.bytes, 10)
	if unchanged && len(v.found) == 0 && !agrees {
		v.wrong(backend.PartHead, backend.Revision{}, "the log has %d entries of %d bytes, and should have %s of %s", v.count, v.bytes, count, bytes)
	}
	return v.reportAbsent(ctx, trimmed)
}

// pages reads the entries after v.at up to a revision, or to the end of the log if end is zero, and calls take with
// each page.
func (v *logVerifier) pages(
	ctx context.Context, end backend.Revision, take func(context.Context, []goredis.XMessage) error,
) error {
	from, to := "-", "+"
	if !v.at.IsZero() {
		from = "(" + streamID(v.at)
	}
	if !end.IsZero() {
		to = streamID(end)
	}
	for {
		page, err := v.client.XRangeN(ctx, v.shard.log, from, to, verifyChunk).Result()
		if err != nil || len(page) == 0 {
			return err
		}
		if err := take(ctx, page); err != nil {
			return err
		}
		from = "(" + page[len(page)-1].ID
	}
}

// entries checks that the entries of a page decode and have no gaps, and compares them with the stored records.
func (v *logVerifier) entries(ctx context.Context, page []goredis.XMessage) error {
	var events []backend.Event
	for _, m := range page {
		rev, err := backend.ParseRevision(m.ID)
		if err != nil {
			v.wrong(backend.PartLog, backend.Revision{}, "the id %q is none", m.ID)
			continue
		}
		if !v.at.IsZero() && !v.state.Follows(v.at, rev) {
			before := v.at
			if _, _, err := v.readMeta(ctx); err != nil {
				return err
			}
			if v.state.Trimmed.Compare(before) > 0 {
				return errTrimmed
			}
			v.wrong(backend.PartLog, rev, "it follows %s: changes are missing in between", before)
		}
		v.at = rev
		e, ok, err := decodeEntry(m)
		if err == nil && !ok {
			continue
		}
		v.Count(&v.Verified.Changes)
		v.count++
		v.bytes += int64(entrySize(m))
		if err != nil {
			v.wrong(backend.PartLog, rev, "it does not decode, or has a wrong sum")
			continue
		}
		events = append(events, e)
	}
	return v.compare(ctx, events)
}

// compare compares changes with the stored records, which it reads after the changes.
func (v *logVerifier) compare(ctx context.Context, events []backend.Event) error {
	if len(events) == 0 {
		return nil
	}
	pipe := v.client.Pipeline()
	heads := make([]*goredis.StringCmd, len(events))
	for i := range events {
		heads[i] = pipe.GetRange(ctx, v.shard.key(events[i].Resource.Key), 0, headBytes-1)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return err
	}
	for i := range events {
		e := &events[i]
		if heads[i].Val() == "" {
			v.absent.Note(e)
			continue
		}
		v.absent.Take(e.Resource.Key) // it was absent at an earlier entry, and is stored again
		r, err := recordHead(e.Resource.Key, heads[i].Val())
		if err != nil {
			continue // scanned reports records that do not decode
		}
		if order := r.Revision.Compare(e.Revision); order < 0 || order == 0 && e.Type == backend.Deleted {
			v.found = append(v.found, backend.Damage{
				Part: backend.PartRecord, Key: e.Resource.Key, Revision: e.Revision,
				Problem: fmt.Sprintf("the log has a change that is not stored: what is stored is of %s", r.Revision),
			})
		}
	}
	return nil
}

// reportAbsent reports resources that are not stored although they should be according to the log. If a resource has
// been deleted meanwhile, the rest of the log has its deletion.
func (v *logVerifier) reportAbsent(ctx context.Context, trimmed backend.Revision) error {
	if v.absent.Len() == 0 {
		return nil
	}
	err := v.pages(ctx, backend.Revision{}, func(_ context.Context, page []goredis.XMessage) error {
		for _, m := range page {
			if e, ok, err := decodeEntry(m); err == nil && ok && e.Type == backend.Deleted {
				v.absent.Note(&e)
			}
		}
		return nil
	})
	if err != nil || v.absent.Len() == 0 {
		return err
	}
	v.at = trimmed
	return v.pages(ctx, backend.Revision{}, func(_ context.Context, page []goredis.XMessage) error {
		for _, m := range page {
			e, ok, err := decodeEntry(m)
			if err == nil && ok && v.absent.Take(e.Resource.Key) {
				v.found = append(v.found, backend.Damage{
					Part: backend.PartRecord, Key: e.Resource.Key, Revision: e.Revision,
					Problem: "the log has its changes and no deletion that can be read, and it is not stored",
				})
			}
		}
		return nil
	})
}
