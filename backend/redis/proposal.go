package redis

import (
	"fmt"
	"strconv"
	"time"

	"github.com/sluicegw/sluice/backend"
)

// proposal is a batch as the script takes it.
type proposal struct {
	shard   *shard
	batch   backend.Batch
	keys    []string
	actions []action
}

// action is an action of a batch as the script takes it. What does not apply is
// empty.
type action struct {
	op string
	// kind and name are the tuples that make the key.
	kind, name []byte
	// presence, uid, revision, deleting, referrers, unfinalized and passes are the
	// condition; referrers is what the members of bound references to the key begin with.
	presence, uid, revision, deleting, referrers, unfinalized, passes string
	// newUID is that of a resource that a put creates.
	newUID string
	// finalizers is how many a put sets; empty leaves them as they are.
	finalizers string
	derived
	body []byte
	// members of the index to remove where the script cannot derive them: those of
	// a resource that does not decode, packed like entries, or the one of an expiry
	// whose resource is gone.
	members []byte
}

// actionArguments is the number of arguments of one action, STRIDE in batch.lua.
const actionArguments = 22

// arguments are in the order of action() in apply.lua.
func (a *action) arguments(args []any) []any {
	return append(args, a.op, a.kind, a.name, a.presence, a.uid, a.revision, a.deleting, a.referrers, a.unfinalized, a.newUID, a.finalizers,
		a.entries, a.caller, a.fields, a.size, a.body, a.members, a.passes, a.rowsSize, a.declared, a.refs, a.refsSize)
}

// The operations as the script calls them.
const (
	opCheck   = "c"
	opPut     = "p"
	opDelete  = "d"
	opReindex = "r"
	opRebind  = "b"
	// opDeleteDamaged also deletes a resource that does not decode.
	opDeleteDamaged = "x"
	// opExpire deletes what is expired.
	opExpire = "e"
)

func op(d backend.Op) string {
	switch d {
	case backend.OpPut:
		return opPut
	case backend.OpDelete:
		return opDelete
	case backend.OpReindex:
		return opReindex
	case backend.OpRebind:
		return opRebind
	}
	return opCheck
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

func newProposal(sh *shard, b backend.Batch) *proposal {
	p := &proposal{shard: sh, batch: b, keys: make([]string, 0, 3+len(b.Actions)), actions: make([]action, len(b.Actions))}
	p.keys = append(p.keys, sh.meta, sh.rows, sh.log)
	for i := range b.Actions {
		a, to := &b.Actions[i], &p.actions[i]
		p.keys = append(p.keys, sh.key(a.Key))
		*to = action{
			op: op(a.Op), kind: backend.AppendString(nil, a.Key.Kind), name: backend.OrderTuple(a.Key.Namespace, a.Key.Name),
			presence: presence(a.If.Presence), uid: escape(a.If.UID), revision: a.If.Revision.String(),
			newUID: escape(a.Put.UID), body: a.Put.Body,
		}
		switch {
		case a.If.Deleting:
			to.deleting = "y"
		case a.If.NotDeleting:
			to.deleting = "n"
		}
		if a.If.Unreferenced {
			to.referrers = string(entryRef) + string(backend.Range{Referenced: &a.Key, BoundOnly: true}.Prefix())
		}
		if a.If.Unfinalized {
			to.unfinalized = "y"
		}
		if a.If.Passes != 0 {
			to.passes = strconv.FormatUint(uint64(a.If.Passes), 10)
		}
		if n := a.Put.Finalizers; n != nil {
			to.finalizers = strconv.Itoa(*n)
		}
		if a.Op == backend.OpPut || a.Op == backend.OpReindex || a.Op == backend.OpRebind {
			to.derived = derive(a)
		}
	}
	return p
}

// derived is what the script needs for a put, a reindex or a rebind, besides the body.
type derived struct {
	entries []byte
	caller  string // "c" if the caller made it
	fields  []byte // the expiry and whether the deletion was requested
	// size counts everything except the references.
	size, rowsSize int
	// declared is empty for a put that leaves the references as they are.
	declared string
	refs     []byte // entries of references
	refsSize int
}

func derive(a *backend.Action) derived {
	r := backend.Resource{Key: a.Key, Rows: a.Put.Rows, Body: a.Put.Body}
	r.Fingerprint, r.Deleting = a.Put.Fingerprint, a.Put.Deleting
	size := r.Size()
	r.Refs = a.Put.Refs
	if !a.Put.ExpiresAt.IsZero() {
		r.ExpiresAt = a.Put.ExpiresAt.UTC().Truncate(time.Millisecond)
	}
	d := derived{
		entries: appendEntries(nil, &r), size: size, rowsSize: rowsSize(r.Rows),
		declared: escape(a.Put.Declared), refs: refEntries(&r), refsSize: r.Size() - size,
	}
	if a.Put.Caller {
		d.caller = "c"
	}
	d.fields = append(append(make([]byte, 0, 16), millis(r.ExpiresAt)...), '\n')
	if r.Deleting {
		d.fields = append(d.fields, deletingFlag...)
	}
	return d
}

// batchArguments is the number of arguments of a batch, HEAD in batch.lua.
const batchArguments = 9

// head is what a script is told of a batch besides its actions.
type head struct {
	shard *shard
	// deadline and clock are in microseconds; an empty clock is the server's.
	deadline, clock string
	request         string
}

// arguments of a batch and its actions.
func (c *core) arguments(h head, actions []action) []any {
	args := append(make([]any, 0, batchArguments+actionArguments*len(actions)), c.epochs[h.shard.index].Load(), Format,
		h.deadline, h.clock, h.request, c.bounds[0], c.bounds[1], c.bounds[2], c.bounds[3])
	for i := range actions {
		args = actions[i].arguments(args)
	}
	return args
}

// logBounds are arguments of the script: what a log keeps when it is trimmed, and
// the limits of entries, bytes and age in milliseconds beyond which it is trimmed.
func logBounds(c Config) [4]any {
	slack := 1 + float64(c.LogSlack)/float64(c.LogEntries)
	age := c.LogAge.Milliseconds()
	return [4]any{fmt.Sprintf("%d %d %d", c.LogEntries, c.LogBytes, age), c.LogEntries + c.LogSlack, int64(float64(c.LogBytes) * slack), int64(float64(age) * slack)}
}
