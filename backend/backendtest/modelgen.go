package backendtest

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sluicegw/sluice/backend"
)

// The kinds, namespaces and names of the random histories. There are few, so that actions
// often have the same key.
func modelKinds() []string      { return []string{"Net", "Net\x00", "_lease"} }
func modelNamespaces() []string { return []string{"", "a", "a\x00", "b"} }
func modelNames() []string      { return []string{"x", "x\x00", "x\xff", "xx", "\xff", "y", "z", "é"} }

// modelKeys returns all keys of the histories.
func modelKeys() (keys []backend.Key) {
	for _, kind := range modelKinds() {
		for _, namespace := range modelNamespaces() {
			for _, name := range modelNames() {
				keys = append(keys, backend.Key{Kind: kind, Namespace: namespace, Name: name})
			}
		}
	}
	return keys
}

func (m *model) pick(from []string) string { return from[m.rnd.IntN(len(from))] }

func (m *model) chance(percent int) bool { return m.rnd.IntN(100) < percent }

func (m *model) key() backend.Key {
	return backend.Key{Kind: m.pick(modelKinds()), Namespace: m.pick(modelNamespaces()), Name: m.pick(modelNames())}
}

// randomKeys returns the keys for a read, in random order or in the order in which they
// are stored.
func (m *model) randomKeys() []backend.Key {
	keys := make([]backend.Key, m.rnd.IntN(6))
	for i := range keys {
		keys[i] = m.key()
	}
	if m.chance(50) {
		return keys
	}
	all := modelKeys()
	slices.SortFunc(all, func(a, b backend.Key) int { return bytes.Compare(a.Append(nil), b.Append(nil)) })
	begin := m.rnd.IntN(len(all))
	return append(keys, all[begin:min(begin+m.rnd.IntN(12), len(all))]...)
}

func (m *model) condition() backend.Condition {
	var c backend.Condition
	if m.chance(15) {
		return backend.Condition{Presence: backend.Absent}
	}
	if m.chance(10) {
		c.Presence = backend.Present
	}
	if m.chance(10) {
		c.UID = fmt.Sprint("uid-", m.rnd.IntN(4))
	}
	if m.chance(20) && len(m.revisions) > 0 {
		c.Revision = m.revisions[len(m.revisions)-1-m.rnd.IntN(min(len(m.revisions), 20))]
	}
	if m.chance(10) {
		c.BindingVersion = 1 + m.rnd.Uint32N(3)
	}
	c.Unreferenced = m.chance(25)
	c.Unfinalized = m.chance(20)
	switch m.rnd.IntN(10) {
	case 0:
		c.Deleting = true
	case 1:
		c.NotDeleting = true
	}
	return c
}

func (m *model) put(namespace string) backend.Put {
	p := backend.Put{
		UID: fmt.Sprint("uid-", m.rnd.IntN(4)), Deleting: m.chance(20), Caller: m.chance(50),
		Body: backend.EncodeBody(fmt.Appendf(nil, "%d %0*d", m.step, m.rnd.IntN(500), 0)),
	}
	if m.chance(30) {
		p.Finalizers = new(m.rnd.IntN(3))
	}
	if m.chance(1) {
		p.Finalizers = new(backend.MaxFinalizers + m.rnd.IntN(2))
	}
	p.Refs, p.Declared = m.refs(namespace)
	if m.chance(30) {
		p.ExpiresAt = m.clock.Now().Add(time.Duration(m.rnd.IntN(20_000)-2_000) * time.Millisecond)
	}
	return p
}

// refs returns random references with the fingerprint of their declarations. Some are
// invalid: the same key twice, a key in another namespace, or no fingerprint.
func (m *model) refs(namespace string) (refs []backend.Ref, declared string) {
	if m.chance(40) {
		return nil, ""
	}
	if !m.chance(1) {
		declared = fmt.Sprint("d", m.rnd.IntN(3))
	}
	for range m.rnd.IntN(3) {
		ref := backend.Ref{
			Key:   backend.Key{Kind: m.pick(modelKinds()), Namespace: namespace, Name: m.pick(modelNames())},
			Bound: m.chance(30),
		}
		switch {
		case m.chance(1):
			ref.Key.Namespace = m.pick(modelNamespaces())
		case m.chance(25): // of a GLOBAL kind
			ref.Key.Namespace = ""
		}
		refs = append(refs, ref)
	}
	return refs, declared
}

// change adds a random [backend.Put.Change] to a put. The condition of the put mostly gets
// the revision of the live resource.
func (m *model) change(a *backend.Action) {
	a.Put.Change = make([]byte, m.rnd.IntN(300))
	if m.chance(1) {
		a.Put.Change = make([]byte, backend.MaxChange+m.rnd.IntN(2))
	}
	for i := range a.Put.Change {
		a.Put.Change[i] = byte(m.rnd.Uint32())
	}
	if m.chance(2) {
		return
	}
	a.If = backend.Condition{Revision: backend.Revision{Epoch: 1, Seq: 1}}
	if rs, err := m.stores[1].Get(m.Context(), a.Key); err == nil && rs[0] != nil {
		a.If.Revision = rs[0].Revision
	}
}

// rebind returns a rebind, mostly for the revision and the binding version of the live
// resource.
func (m *model) rebind(k backend.Key) backend.Action {
	a := backend.Action{
		Key: k,
		Op:  backend.OpRebind,
		If:  backend.Condition{Revision: backend.Revision{Epoch: 1, Seq: 1}, BindingVersion: 1},
	}
	a.Put.Refs, a.Put.Declared = m.refs(k.Namespace)
	if rs, err := m.stores[1].Get(m.Context(), k); err == nil && rs[0] != nil {
		a.If.Revision = rs[0].Revision
		if !m.chance(10) {
			a.If.BindingVersion = rs[0].BindingVersion
		}
	}
	return a
}

// batch returns a random batch, which is mostly valid and whose conditions often hold.
func (m *model) batch() backend.Batch {
	b := backend.Batch{
		RequestID: fmt.Sprint("request-", m.step),
		Deadline:  m.clock.Now().Add(time.Duration(m.rnd.IntN(5000)-100) * time.Millisecond),
	}
	if m.chance(60) {
		b.Actor = fmt.Sprint("actor-", m.rnd.IntN(3))
	}
	if m.chance(1) {
		b.Actor = strings.Repeat("a", backend.MaxActor+m.rnd.IntN(2))
	}
	namespace := m.pick(modelNamespaces())
	used := map[backend.Key]bool{}
	for range 1 + m.rnd.IntN(5) {
		k := m.key()
		if !m.chance(1) {
			k.Namespace = namespace
		}
		if used[k] && !m.chance(2) {
			continue
		}
		used[k] = true
		a := backend.Action{Key: k, Op: backend.OpPut}
		switch n := m.rnd.IntN(100); {
		case n < 15:
			a.Op = backend.OpCheck
			if m.chance(25) { // of a GLOBAL kind
				a.Key.Namespace = ""
			}
		case n < 30:
			a.Op = backend.OpDelete
		case n < 40:
			b.Actions = append(b.Actions, m.rebind(k))
			continue
		default:
			a.Put = m.put(namespace)
		}
		if a.Op == backend.OpCheck || m.chance(30) {
			a.If = m.condition()
		} else if a.Op == backend.OpPut && m.chance(50) {
			m.change(&a)
		}
		if a.Op == backend.OpPut && a.If.Presence == backend.Absent && m.chance(50) {
			a.Put.CreatedAt = m.clock.Now().Add(-time.Duration(m.rnd.IntN(20_000)) * time.Millisecond)
			a.Put.UpdatedAt = m.clock.Now()
		}
		b.Actions = append(b.Actions, a)
	}
	return b
}

func (m *model) bound() []byte {
	var b []byte
	if m.chance(30) {
		return nil
	}
	if m.chance(70) {
		b = append(b, backend.OrderTuple(m.pick(modelNamespaces()), m.pick(modelNames()))...)
	}
	switch m.rnd.IntN(4) {
	case 0:
		b = backend.Successor(b)
	case 1:
		b = backend.PrefixEnd(b)
	case 2:
		b = backend.StringPrefixEnd(backend.AppendStringPrefix(b, m.pick(modelNames())))
	}
	return b
}

func (m *model) randomRange() backend.Range {
	r := backend.Range{
		Kind:    m.pick(modelKinds()),
		Reverse: m.chance(50),
		Limit:   1 + m.rnd.IntN(12),
		Count:   m.chance(15),
		Bare:    m.chance(50),
	}
	r.Deleting = m.chance(35)
	if m.chance(40) {
		r.Namespace = m.pick(modelNamespaces())
	}
	if m.chance(15) {
		return m.referenceRange(r)
	}
	r.Start, r.End = m.bound(), m.bound()
	r.KeysOnly = !r.Deleting && m.chance(20)
	return r
}

func (m *model) referenceRange(r backend.Range) backend.Range {
	k := m.key()
	r.Referenced = &k
	r.BoundOnly = m.chance(30)
	r.Deleting = m.chance(2)
	if m.chance(60) {
		r.Kind = ""
	}
	if m.chance(30) {
		r.Start = m.key().Append(nil)
	}
	if m.chance(30) {
		r.End = backend.Successor(m.key().Append(nil))
	}
	return r
}
