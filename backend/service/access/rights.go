package access

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"sync"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/failure"
)

// Rights are the rights of a caller under one policy. They are safe for concurrent use.
type Rights struct {
	all    bool
	grants []grant
	key    func() string
	stamp  func() string
	scopes sync.Map // of *Scope by scopeKey
}

// Unlimited returns the rights of callers who may do everything: administrators, or all callers if there is no access
// control.
func Unlimited() *Rights { return &Rights{all: true} }

func newRights(grants []grant) *Rights {
	r := &Rights{grants: grants}
	r.key = sync.OnceValue(func() string {
		return textOf(grants, func(g *grant) string { return fmt.Sprint(g.kinds.text(), " ", g.verbs) })
	})
	r.stamp = sync.OnceValue(func() string { return stampOf(grants) })
	return r
}

type rightsKey struct{}

// WithRights returns a context in which all reads and writes use the given rights. Streams use it to read all parts of
// an event with the same rights.
func WithRights(ctx context.Context, r *Rights) context.Context {
	return context.WithValue(ctx, rightsKey{}, r)
}

// RightsFrom returns the rights set by [WithRights]; nil if there are none.
func RightsFrom(ctx context.Context) *Rights {
	r, _ := ctx.Value(rightsKey{}).(*Rights)
	return r
}

// All reports whether the caller may do everything.
func (r *Rights) All() bool { return r.all }

// Key returns a text that is equal only for equal rights. Callers with equal keys see the same resources. Unlimited
// rights have an empty key.
func (r *Rights) Key() string {
	if r.all {
		return ""
	}
	return r.key()
}

// textOf returns a text that represents grants, independent of their order. on returns the text for what a grant gives.
// textOf adds the namespaces and names to which the grant applies. It leaves out grants for which on returns "".
func textOf(grants []grant, on func(*grant) string) string {
	var each []string
	for i := range grants {
		g := &grants[i]
		if what := on(g); what != "" {
			each = append(each, fmt.Sprintf("%s %s %s", what, g.namespaces.text(), g.names.text()))
		}
	}
	slices.Sort(each)
	return "rights " + strings.Join(slices.Compact(each), ";")
}

// Stamp returns eight characters that identify what the caller may watch and see; empty for unlimited rights. Cursors
// contain the stamp, so it must be the same on all gateways, even if their catalogues differ. Therefore a built-in role
// is represented by its name and not by its kinds.
func (r *Rights) Stamp() string {
	if r.all {
		return ""
	}
	return r.stamp()
}

func stampOf(grants []grant) string {
	seen := setOf(descriptor.VerbGet, descriptor.VerbWatch)
	h := fnv.New32a()
	_, _ = h.Write([]byte(textOf(grants, func(g *grant) string {
		kinds := g.builtIn
		if kinds == "" {
			kinds = g.kinds.text()
		}
		if g.verbs&seen == 0 {
			return ""
		}
		return fmt.Sprint(kinds, " ", g.verbs&seen)
	})))
	return fmt.Sprintf("%08x", h.Sum32())
}

func (n nameSet) text() string {
	if n == nil {
		return Wildcard
	}
	return strings.Join(sorted(n), ",")
}

type scopeKey struct {
	kind  string
	verbs verbs
}

// Scope returns the resources of a kind on which the caller has all of the given verbs.
func (r *Rights) Scope(k *descriptor.Kind, of ...descriptor.Verb) *Scope {
	if r.all {
		return Everything()
	}
	key := scopeKey{k.Name, setOf(of...)}
	if known, ok := r.scopes.Load(key); ok {
		return known.(*Scope)
	}
	out := Everything()
	for _, v := range of {
		out = out.And(r.scope(k.Name, k.Scope == descriptor.Global, v))
	}
	r.scopes.Store(key, out)
	return out
}

// scope returns the resources of a kind on which the caller has a verb. If kind is empty, only grants for all kinds
// count.
func (r *Rights) scope(kind string, global bool, v descriptor.Verb) *Scope {
	var b builder
	for i := range r.grants {
		g := &r.grants[i]
		if g.verbs&bit(v) != 0 && (g.kinds == nil || kind != "" && g.kinds.has(kind)) {
			g.addTo(&b, global)
		}
	}
	return b.scope()
}

// May reports whether the caller has a verb that belongs to no kind, such as EXPORT.
func (r *Rights) May(v descriptor.Verb) bool { return r.all || r.scope("", true, v).All() }

// Use returns an error if the kind does not offer a verb, or if the caller may not use the verb on any resource of the
// kind. It does not check GET, which a caller also needs to see the resources.
func (r *Rights) Use(k *descriptor.Kind, v descriptor.Verb) error {
	if err := Offers(k, v); err != nil {
		return err
	}
	if !r.all && r.Scope(k, v).Empty() {
		return forbidden(backend.Key{Kind: k.Name}, v)
	}
	return nil
}

// UseAll returns an error if the kind does not offer a verb, or if the caller may not use the verb on all resources of
// the kind.
func (r *Rights) UseAll(k *descriptor.Kind, v descriptor.Verb) error {
	err := r.Use(k, v)
	if err == nil && !r.Scope(k, v).All() {
		err = forbidden(backend.Key{Kind: k.Name}, v)
	}
	return err
}

// Authorize returns an error if the caller may not use a verb on a resource. Every verb except CREATE also needs GET,
// so that an answer never reveals a resource that the caller may not see. The result does not depend on stored
// resources.
func (r *Rights) Authorize(k *descriptor.Kind, v descriptor.Verb, key backend.Key) error {
	if err := About(r.Use(k, v), key); err != nil || r.all {
		return err
	}
	if !r.Scope(k, v).Has(key.Namespace, key.Name) {
		return forbidden(key, v)
	}
	if v != descriptor.VerbCreate && !r.Sees(k, key) {
		return forbidden(key, descriptor.VerbGet)
	}
	return nil
}

// Sees reports whether the caller may GET a resource. Callers must treat a resource that is not seen as absent.
func (r *Rights) Sees(k *descriptor.Kind, key backend.Key) bool {
	return r.all || r.Scope(k, descriptor.VerbGet).Has(key.Namespace, key.Name)
}

// Verbs returns the verbs that the caller may use on a resource, in the order of [Verbs]. These are verbs that the kind
// offers, and ESCALATE for kinds that give rights. All verbs except CREATE also need GET. CONTROL applies to a whole
// kind, so Verbs returns it only if the caller has it on all resources.
func (r *Rights) Verbs(k *descriptor.Kind, key backend.Key) []descriptor.Verb {
	return r.verbs(k, func(s *Scope) bool { return s.Has(key.Namespace, key.Name) })
}

// VerbsIn returns the verbs that the caller may use on at least some resources of a namespace.
func (r *Rights) VerbsIn(k *descriptor.Kind, namespace string) []descriptor.Verb {
	return r.verbs(k, func(s *Scope) bool { return s.Touches(namespace) })
}

// UsableVerbs returns the verbs that the caller may use on at least some resources of a
// kind.
func (r *Rights) UsableVerbs(k *descriptor.Kind) []descriptor.Verb {
	return r.verbs(k, func(s *Scope) bool { return !s.Empty() })
}

func (r *Rights) verbs(k *descriptor.Kind, in func(*Scope) bool) (out []descriptor.Verb) {
	for _, v := range Verbs() {
		var ok bool
		switch {
		case !offered(k, v):
		case v == descriptor.VerbControl:
			ok = r.Scope(k, v).All()
		case v == descriptor.VerbCreate:
			ok = in(r.Scope(k, v))
		default:
			ok = in(r.Scope(k, v, descriptor.VerbGet))
		}
		if ok {
			out = append(out, v)
		}
	}
	return out
}

// About adds the requested resource to a FORBIDDEN error of [Rights.Use], for the audit log and the caller. key may
// have only a kind.
func About(err error, key backend.Key) error {
	if known, ok := errors.AsType[*failure.Error](err); ok && known.Code == failure.CodeForbidden {
		return known.At(key)
	}
	return err
}

func forbidden(key backend.Key, v descriptor.Verb) error {
	on := "kind " + key.Kind
	if key.Name != "" {
		on = failure.Describe(backend.Key{
			Kind:      key.Kind,
			Namespace: failure.Shorten(key.Namespace),
			Name:      failure.Shorten(key.Name),
		})
	}
	err := &failure.Error{Code: failure.CodeForbidden, Verb: string(v), Message: fmt.Sprintf("%s: you do not have the verb %s; an administrator can give it by an AccessBinding", on, v)}
	return err.At(key)
}
