package query

import (
	"bytes"
	"context"
	"hash/fnv"
	"slices"
	"strings"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/body"
	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/dependency"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/query/plan"
)

// Relation says how the resources of the requested page are related to the resource of the request.
type Relation uint8

// The relations. A page has only resources that the caller may see.
const (
	// Dependencies are the resources to which the resource refers, ordered by declared reference and then by name.
	Dependencies Relation = iota + 1
	// Dependents are the resources that refer to the resource, ordered by (kind, namespace, name, path).
	Dependents
	// BlockedBy are the other resources that prevent the deletion of the resource, according to the store. They include
	// resources whose kinds or references this catalogue does not declare.
	BlockedBy
)

// Dependency is a reference between the resource of a request and another resource.
type Dependency struct {
	// Key is the key of the other resource, which may not exist.
	Key backend.Key
	// Path is the path of the reference in the kind that declares it; empty if this catalogue does not declare it.
	Path string
	// Guarded reports whether the reference, while it is bound, prevents the deletion of its target.
	Guarded bool
	// State is the state of the target; empty if it was not requested.
	State dependency.State
}

// DependencyRequest is a request for a page of the resources that are related to a resource.
type DependencyRequest struct {
	Relation Relation
	// Key is the key of the resource.
	Key backend.Key
	// None is set if the resource no longer exists. The page is then empty, and the store is not read.
	None bool
	// Body is the body of the resource. BlockedBy does not need it.
	Body          *body.Body
	First, Last   *int
	After, Before *string
	// Targets requests the states and the bodies of the targets of Dependencies.
	Targets bool
	// ChangeCursor and Ahead have the same meaning as in [ListRequest].
	ChangeCursor, Ahead bool
}

// relation is a resource and the relation that the requested resources have to it.
type relation struct {
	Relation
	// rights are the rights of the caller.
	rights *access.Rights
	key    backend.Key
	body   *body.Body
	// declared are the references that the resource's kind declares. They are set for Dependencies.
	declared []declared
	// kinds are the kinds that declare references to the resource's kind. They are set for Dependents and BlockedBy.
	kinds []*referring
}

// referring is a kind that refers to the resource's kind. The caller may read it.
type referring struct {
	*kind.Kind
	// paths are the paths of its references to the resource's kind; for BlockedBy, only of the guarded ones.
	paths []string
}

// related is an entry on a page of related resources.
type related struct {
	Dependency
	Resource
	// key is the sort key of the entry. For Dependencies, declared is the index of the declared reference.
	key      []byte
	declared int
}

// Dependencies returns a page or an error for each request. The pages are read together: one call of the store makes
// the next step of all of them, and one more call reads the targets.
func (r *Reader) Dependencies(ctx context.Context, reqs []DependencyRequest) (pages []*Page, errs []error) {
	pages, errs = make([]*Page, len(reqs)), make([]error, len(reqs))
	rights, err := r.Rights(ctx)
	if spent := budget.From(ctx).Spend(budget.Steps, budget.Scan*len(reqs)); spent != nil {
		err = spent
	}
	if err != nil {
		for i := range errs {
			errs[i] = err
		}
		return pages, errs
	}
	var scans []*dependents
	var of []int
	for i := range reqs {
		req := &reqs[i]
		p := &Page{reader: r, relation: r.relation(rights, req), Dependencies: []Dependency{}}
		want, err := p.begin(req.First, req.Last, req.After, req.Before, req.Ahead)
		if err == nil && req.ChangeCursor {
			var at backend.Position
			if at, err = r.fetch.Store.Position(ctx); err == nil {
				p.changeCursor = new(ChangeCursor(at, rights.Stamp()))
			} else {
				err = failure.Of(err, req.Key)
			}
		}
		if err != nil {
			errs[i] = err
			continue
		}
		pages[i] = p
		scans = append(scans, &dependents{relation: p.relation, Want: want})
		of = append(of, i)
	}
	if err := r.runDependents(ctx, scans); err != nil {
		for _, i := range of {
			pages[i], errs[i] = nil, err
		}
		return pages, errs
	}
	for n, sc := range scans {
		sc.finish(pages[of[n]])
	}
	if err := r.lookTargets(ctx, reqs, pages); err != nil {
		for _, i := range of {
			if reqs[i].Targets && reqs[i].Relation == Dependencies {
				pages[i], errs[i] = nil, err
			}
		}
	}
	if err := r.lookGuards(ctx, pages); err != nil {
		for _, i := range of {
			if reqs[i].Relation == Dependencies {
				pages[i], errs[i] = nil, err
			}
		}
	}
	return pages, errs
}

// relation returns the resource and the relation of a request.
func (r *Reader) relation(rights *access.Rights, req *DependencyRequest) *relation {
	rel := &relation{Relation: req.Relation, rights: rights, key: req.Key, body: req.Body}
	if req.None {
		return rel
	}
	readable := func(k *kind.Kind) bool { return rights.Use(k.Kind, descriptor.VerbGet) == nil }
	if rel.Relation == Dependencies {
		for _, d := range r.declared[rel.key.Kind] {
			if k, err := r.kinds.Find(d.Kind); err == nil && readable(k) {
				rel.declared = append(rel.declared, d)
			}
		}
		return rel
	}
	for _, k := range r.kinds.All() {
		var paths []string
		for _, d := range k.References {
			if d.Kind == rel.key.Kind && (d.Guarded || rel.Relation == Dependents) && !slices.Contains(paths, d.Path) {
				paths = append(paths, d.Path)
			}
		}
		if len(paths) > 0 && readable(k) {
			slices.Sort(paths)
			rel.kinds = append(rel.kinds, &referring{k, paths})
		}
	}
	slices.SortFunc(rel.kinds, func(a, b *referring) int { return strings.Compare(a.Name, b.Name) })
	return rel
}

// cursors returns the encoding of the connection's cursors.
func (rel *relation) cursors() plan.Cursors {
	return plan.Cursors{Kind: rel.key.Kind, Hash: rel.hash, IsKey: rel.isKey}
}

// hash returns the number that identifies the connection in its cursors. The cursors of Dependencies contain indexes of
// declared references, so the hash depends on the declarations.
func (rel *relation) hash() uint32 {
	h := fnv.New32a()
	_, _ = h.Write(append(rel.key.Append(nil), byte(rel.Relation)))
	for _, d := range rel.declared {
		_, _ = h.Write(backend.AppendString(backend.AppendString(nil, d.Path), d.Kind))
	}
	return h.Sum32()
}

// isKey reports whether key has the form of a sort key of the connection. The form is (kind, namespace, name, path), or
// for Dependencies (index of the declared reference, name).
func (rel *relation) isKey(key []byte) bool {
	n := 4
	if rel.Relation == Dependencies {
		n = 2
	}
	for ; n > 0; n-- {
		var err error
		if key, err = backend.SkipElement(key); err != nil {
			return false
		}
	}
	return len(key) == 0
}

// dependencies returns the resources to which the resource refers, ordered by declared reference and name.
func (rel *relation) dependencies() (out []related) {
	for i, d := range rel.declared {
		from := len(out)
		d.eachName(rel.body, func(name string) {
			key := backend.AppendString(backend.AppendInt(nil, int64(i)), name)
			out = append(
				out,
				related{
					Dependency: Dependency{Key: d.target(rel.key.Namespace, name), Path: d.apiPath, Guarded: d.Guarded},
					key:        key,
					declared:   i,
				},
			)
		})
		if len(out)-from > 1 {
			slices.SortFunc(out[from:], func(a, b related) int { return bytes.Compare(a.key, b.key) })
			out = append(
				out[:from],
				slices.CompactFunc(out[from:], func(a, b related) bool { return string(a.key) == string(b.key) })...,
			)
		}
	}
	return out
}

// lookTargets reads the targets for the pages whose requests have Targets.
func (r *Reader) lookTargets(ctx context.Context, reqs []DependencyRequest, pages []*Page) error {
	var keys []backend.Key
	at := map[backend.Key]int{}
	var withTargets []*Page
	for i, p := range pages {
		if p == nil || !reqs[i].Targets || reqs[i].Relation != Dependencies {
			continue
		}
		withTargets = append(withTargets, p)
		for _, d := range p.Dependencies {
			if _, ok := at[d.Key]; !ok {
				at[d.Key] = len(keys)
				keys = append(keys, d.Key)
			}
		}
	}
	if len(keys) == 0 {
		return nil
	}
	found, err := r.Lookup(ctx, keys)
	if err != nil {
		return err
	}
	for _, p := range withTargets {
		for n := range p.Dependencies {
			d := &p.Dependencies[n]
			target := found[at[d.Key]]
			if target != nil {
				p.Edges[n].Resource = *target
			}
			d.State = DependencyState(&Resource{Body: p.relation.body}, target, d.Key)
		}
	}
	return nil
}

// lookGuards corrects Guarded on pages of Dependencies. This is necessary for resources whose stored references were
// derived from the declarations of another catalogue. The references are read from the store, because the index does
// not follow rebinds of references.
func (r *Reader) lookGuards(ctx context.Context, pages []*Page) error {
	var resources []*Resource
	for _, p := range pages {
		if p != nil && p.relation.Relation == Dependencies && p.relation.body != nil && len(p.Dependencies) > 0 {
			resources = append(resources, &Resource{Stored: p.relation.body.Stored, Body: p.relation.body})
		}
	}
	guards, err := r.Guards(ctx, resources)
	if err != nil || len(guards) == 0 {
		return err
	}
	for _, p := range pages {
		if p == nil || p.relation.Relation != Dependencies {
			continue
		}
		for n := range p.Dependencies {
			d := &p.Dependencies[n]
			d.Guarded = guards.HasGuard(p.relation.key, d.Key, d.Guarded)
		}
	}
	return nil
}

// Guards maps keys to stored resources with their references. It has only resources whose references were derived from
// the declarations of another catalogue.
type Guards map[backend.Key]*backend.Resource

// Guards reads the resources whose references were derived from the declarations of another catalogue. If there are
// none, it does not call the store.
func (r *Reader) Guards(ctx context.Context, resources []*Resource) (Guards, error) {
	var keys []backend.Key
	for _, res := range resources {
		if res != nil && r.foreign(res.Stored) {
			keys = append(keys, res.Stored.Key)
		}
	}
	out := Guards{}
	for len(keys) > 0 {
		got, err := r.fetch.Store.Get(ctx, keys[:min(len(keys), backend.MaxKeys)]...)
		if err != nil {
			return nil, failure.Of(err, keys[0])
		}
		for _, stored := range got {
			if stored != nil && r.foreign(stored) {
				out[stored.Key] = stored
			}
		}
		keys = keys[len(got):]
	}
	return out, nil
}

// foreign reports whether the stored references of a resource were derived from other declarations than those of its
// kind. It returns false for a resource that was read without its references.
func (r *Reader) foreign(stored *backend.Resource) bool {
	k, err := r.kinds.Find(stored.Kind)
	return err == nil && stored.Declared != "" && stored.Declared != k.Declared
}

// HasGuard reports whether a resource guards a target. The argument of is the key of the resource. If g has the
// resource, its stored references decide. Otherwise the result is the argument declared: whether the declarations of
// this catalogue guard the target.
func (g Guards) HasGuard(of, target backend.Key, declared bool) bool {
	stored := g[of]
	if stored == nil {
		return declared
	}
	return slices.ContainsFunc(stored.Refs, func(ref backend.Ref) bool { return ref.Key == target && ref.Bound })
}

// waitsFor reports whether the resource with the body b waits for the resource with a key.
func waitsFor(b *body.Body, key backend.Key) bool {
	metadata := b.At(body.Root, body.SlotMetadata)
	if metadata.IsZero() {
		return false
	}
	name := dependency.Name(key)
	for raw := range b.Scalars(b.At(b.Object(metadata), body.SlotWaits)) {
		if body.Text(raw) == name {
			return true
		}
	}
	return false
}

// DependencyState returns the state of the target of a reference. key is the key of the target. target is nil if the
// target does not exist or cannot be read.
func DependencyState(referrer, target *Resource, key backend.Key) dependency.State {
	var stored *backend.Resource
	if target != nil {
		stored = target.Stored
	}
	return dependency.StateOf(waitsFor(referrer.Body, key), stored)
}
