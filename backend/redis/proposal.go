package redis

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/storekit"
)

// proposal is a batch in the form of arguments for the script.
type proposal struct {
	shard   *shard
	batch   backend.Batch
	keys    []string
	actions []action
}

// action is an action of a batch in the form of arguments for the script. Fields that do not apply are empty.
type action struct {
	op string
	// kind and name are the tuples of which the key consists.
	kind, name []byte
	// presence, uid, revision, bindingVersion, deletion, referrers and unfinalized are the condition. referrers is the
	// prefix of the members of bound references to the key.
	presence, uid, revision, bindingVersion, deletion, referrers, unfinalized string
	// newUID is the uid of a resource that a put creates.
	newUID string
	// caller is "c" for a put with [backend.Put.Caller].
	caller string
	// finalizers is the number of finalizers that a put sets; if empty, the number does not change.
	finalizers string
	// expires and deleting are fields of the record.
	expires, deleting string
	// declared is empty for a put that keeps the references. refs, refsSize and boundSize are stored in the record.
	declared            string
	refs                []byte
	refsSize, boundSize int
	// size is the size of the resource without references and body.
	size          int
	body, bodySum []byte
	// more depends on op. For opPut it is the checksum of Put.Change, followed by Put.Change; empty without a change.
	// For opDeleteDamaged it lists all index members of the resource, whose record cannot be read. For opExpire it is
	// the expiry member that was due; the script removes it even if the resource does not exist.
	more []byte
	// created and updated are the times of a resource that was copied from another store, as in a record.
	created, updated string
}

// actionArguments is the number of arguments for an action, STRIDE in batch.lua.
const actionArguments = 25

// arguments appends the arguments for the action, in the order of action() in apply.lua.
func (a *action) arguments(args []any) []any {
	return append(args,
		a.op, a.kind, a.name,
		a.presence, a.uid, a.revision, a.bindingVersion, a.deletion, a.referrers, a.unfinalized,
		a.newUID, a.caller, a.finalizers, a.expires, a.deleting, a.declared,
		a.refs, a.refsSize, a.boundSize, a.size, a.body, a.bodySum, a.more, a.created, a.updated)
}

// The names of the operations in the script.
const (
	opCheck  = "c"
	opPut    = "p"
	opDelete = "d"
	opRebind = "b"
	// opDeleteDamaged also deletes a resource that does not decode.
	opDeleteDamaged = "x"
	// opExpire deletes an expired resource.
	opExpire = "e"
)

func newProposal(sh *shard, b backend.Batch) *proposal {
	p := &proposal{
		shard:   sh,
		batch:   b,
		keys:    make([]string, 0, shardKeys+len(b.Actions)),
		actions: make([]action, len(b.Actions)),
	}
	p.keys = append(p.keys, sh.meta, sh.members, sh.log)
	ops := [...]string{
		backend.OpCheck:  opCheck,
		backend.OpPut:    opPut,
		backend.OpDelete: opDelete,
		backend.OpRebind: opRebind,
	}
	presences := [...]string{backend.Absent: "a", backend.Present: "p"}
	for i := range b.Actions {
		a, to := &b.Actions[i], &p.actions[i]
		p.keys = append(p.keys, sh.key(a.Key))
		*to = newAction(ops[a.Op], a.Key)
		to.presence = presences[a.If.Presence]
		to.uid = escape(a.If.UID)
		to.revision = a.If.Revision.String()
		switch {
		case a.If.Deleting:
			to.deletion = "y"
		case a.If.NotDeleting:
			to.deletion = "n"
		}
		if a.If.Unreferenced {
			to.referrers = string(memberRef) + string(backend.Range{Referenced: &a.Key, BoundOnly: true}.Prefix())
		}
		if a.If.Unfinalized {
			to.unfinalized = "y"
		}
		if a.If.BindingVersion != 0 {
			to.bindingVersion = strconv.FormatUint(uint64(a.If.BindingVersion), 10)
		}
		if a.Op == backend.OpPut || a.Op == backend.OpRebind {
			to.stores(&a.Put)
		}
	}
	return p
}

// newAction returns an action without a condition.
func newAction(op string, k backend.Key) action {
	r := backend.Resource{Key: k}
	return action{
		op:   op,
		kind: backend.AppendString(nil, k.Kind),
		name: backend.OrderTuple(k.Namespace, k.Name),
		size: r.Size(),
	}
}

// stores sets the fields for a put or a rebind.
func (a *action) stores(p *backend.Put) {
	a.newUID = escape(p.UID)
	a.expires = expiry(p.ExpiresAt)
	a.body = p.Body
	a.bodySum = appendBodySum(nil, p.Body)
	if len(p.Change) > 0 {
		a.more = appendBodySum(make([]byte, 0, bodySumBytes+len(p.Change)), p.Change)
		a.more = append(a.more, p.Change...)
	}
	if !p.CreatedAt.IsZero() {
		a.created = strconv.FormatInt(p.CreatedAt.UnixMilli(), 10)
		a.updated = strconv.FormatInt(p.UpdatedAt.UnixMilli(), 10)
	}
	if p.Deleting {
		a.deleting = deletingFlag
	}
	if p.Caller {
		a.caller = "c"
	}
	if p.Finalizers != nil {
		a.finalizers = strconv.Itoa(*p.Finalizers)
	}
	a.declared = escape(p.Declared)
	for _, ref := range p.Refs {
		n := len(ref.Key.Kind) + len(ref.Key.Namespace) + len(ref.Key.Name)
		a.refs = packed(a.refs, backend.AppendBool(ref.Key.Append(nil), ref.Bound))
		a.refsSize += n + 1
		if ref.Bound {
			a.boundSize += n
		}
	}
}

// commonArguments is the number of arguments that all batches in a run of the script share (HEAD in batch.lua).
// batchArguments is the number of arguments of a batch (BATCH). shardKeys is how many keys of a batch are keys of its
// shard.
const (
	commonArguments = 7
	batchArguments  = 4
	shardKeys       = 3
)

// arguments returns the arguments for running the script with one batch on a node. The script accepts a batch without a
// deadline at any time.
func (c *core) arguments(p *proposal, node string) []any {
	args := make([]any, 0, commonArguments+batchArguments+actionArguments*len(p.actions))
	args = append(
		args, c.epochs[p.shard.index].Load(), Format,
		c.clockArgument(node), c.bounds[0], c.bounds[1], c.bounds[2], c.bounds[3],
	)
	// The size of an entry without its resource is 64 bytes plus the actor; see [backend.Event.Size].
	args = append(
		args, c.deadlineArgument(p.batch.Deadline, node), escape(p.batch.RequestID)+"\n"+escape(p.batch.Actor),
		64+len(p.batch.Actor), len(p.actions),
	)
	for i := range p.actions {
		args = p.actions[i].arguments(args)
	}
	return args
}

// logBounds returns arguments for the script: what remains of a log when it is trimmed, and the number of entries, the
// bytes and the age in milliseconds above which it is trimmed.
func logBounds(c Config) [4]any {
	slack := 1 + float64(c.LogSlack)/float64(c.LogEntries)
	age := c.LogAge.Milliseconds()
	return [4]any{
		fmt.Sprintf("%d %d %d", c.LogEntries, c.LogBytes, age), c.LogEntries + c.LogSlack,
		int64(float64(c.LogBytes) * slack), int64(float64(age) * slack),
	}
}

// outcome converts the reply of the script to a result or an error.
func (s *Store) outcome(p *proposal, reply []any) (backend.Result, error) {
	switch word := text(reply, 0); word {
	case "ok":
		res, err := s.result(p, reply)
		if err != nil {
			// The batch was applied, but the reply cannot be decoded.
			return res, fmt.Errorf("apply: %w: %w", backend.ErrUnknown, err)
		}
		return res, nil
	case "deadline":
		return backend.Result{}, backend.ErrDeadline
	case "condition":
		return backend.Result{}, p.conditionError(reply)
	case "unreadable":
		return backend.Result{}, storekit.Unreadable(
			p.batch.Actions[p.action(text(reply, 1))].Key, backend.ErrUnreadable,
		)
	case "error":
		return backend.Result{}, fmt.Errorf("apply: %w: %.200s", backend.ErrUnavailable, text(reply, 1))
	case "unknown":
		return backend.Result{}, fmt.Errorf(
			"apply: refused midway: %w: %w: %.200s", backend.ErrUnknown, backend.ErrFormat, text(reply, 1),
		)
	case "format":
		return backend.Result{}, backend.FormatErrorf("apply: %s", otherFormat(text(reply, 1)))
	default:
		return backend.Result{}, fmt.Errorf("apply: unknown answer %.20q: %w", word, backend.ErrUnknown)
	}
}

// action parses the number of an action in a reply. Scripts count from 1.
func (p *proposal) action(number string) int {
	n, _ := strconv.Atoi(number)
	return n - 1
}

func (p *proposal) conditionError(reply []any) error {
	i := p.action(text(reply, 1))
	ce := &backend.ConditionError{Action: i, Key: p.batch.Actions[i].Key}
	word, known := text(reply, 2), false
	ce.Err, known = map[string]error{
		"absent": backend.ErrNotFound, "exists": backend.ErrExists, "conflict": backend.ErrConflict, "deleting": backend.ErrDeleting,
		"notdeleting": backend.ErrNotDeleting, "referenced": backend.ErrReferenced, "finalized": backend.ErrFinalized,
	}[word]
	if !known {
		return fmt.Errorf("apply: unknown condition %.20q: %w", word, backend.ErrUnavailable)
	}
	if record := text(reply, 3); record != "" {
		var err error
		if ce.Current, err = decodeRecord(ce.Key, record); err != nil {
			return storekit.Unreadable(ce.Key, err)
		}
	}
	return ce
}

// result decodes the result of a batch that was applied.
func (s *Store) result(p *proposal, reply []any) (backend.Result, error) {
	n := len(p.batch.Actions)
	res := backend.Result{Resources: make([]*backend.Resource, n), Revisions: make([]backend.Revision, n)}
	for i := range p.batch.Actions {
		a, said := &p.batch.Actions[i], text(reply, i+2)
		var err error
		switch a.Op {
		case backend.OpPut:
			if res.Resources[i], err = putResult(a, said); err == nil {
				res.Revisions[i] = res.Resources[i].Revision
			}
		case backend.OpDelete:
			id, record, _ := strings.Cut(said, "\n")
			if res.Revisions[i], err = backend.ParseRevision(id); err == nil && record != "" {
				res.Resources[i], err = decodeLogged(typeDeleted, a.Key, record, "")
			} else if err == nil {
				res.Resources[i] = &backend.Resource{Key: a.Key}
			}
		case backend.OpCheck:
			if said != "" { // a record that does not decode is left out; a read reports it
				res.Resources[i], _ = decodeRecord(a.Key, said)
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
	head, err := backend.ParseRevision(text(reply, 1))
	if err != nil {
		return backend.Result{}, err
	}
	s.core.noteHead(p.shard.index, head)
	heads := make([]backend.Revision, len(s.core.shards))
	heads[p.shard.index] = head
	res.Position = backend.NewPosition(heads...)
	return res, nil
}

// putResult returns the resource that a put has stored. said is its record without the body, from the reply of the
// script.
func putResult(a *backend.Action, said string) (*backend.Resource, error) {
	h, err := parseHeader(said)
	if err != nil {
		return nil, err
	}
	r := h.resource(a.Key, a.Put.Body)
	r.Refs = a.Put.Refs
	if a.Put.Declared == "" {
		r.Refs, err = decodeRefs(h.refs)
	}
	return r, err
}
