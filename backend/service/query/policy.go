package query

import (
	"context"
	"sync"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/index"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
)

// policies makes the policies of states of the index. The kinds that give rights are always in memory.
type policies struct {
	cfg   access.Config
	kinds []descriptor.Kind
	// unlimited are everybody's rights if access control is off.
	unlimited *access.Rights

	mu sync.Mutex // guards all below
	// newest is the policy of the newest state that was asked for, of this version.
	newest  *access.Policy
	version uint64
}

// of returns the policy of a state of the two kinds, or a newer one: resources may be read that are older than the
// policy, never newer ones.
func (p *policies) of(roles, bindings *index.Kind) *access.Policy {
	version := max(roles.Version(), bindings.Version())
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.newest == nil || p.version < version {
		p.newest, p.version = access.NewPolicy(p.cfg, p.kinds, p.newest, bodiesOf(roles), bodiesOf(bindings)), version
	}
	return p.newest
}

// bodiesOf returns the JSON of the bodies of a kind that can be read, by name.
func bodiesOf(k *index.Kind) map[string][]byte {
	out := map[string][]byte{}
	k.Scan(index.Run{}, false, func(_ string, e *index.Entry) bool {
		if body, err := backend.DecodeBody(e.Resource.Body); err == nil && e.Err == nil {
			out[e.Resource.Name] = body
		}
		return true
	})
	return out
}

// Policy returns the policy that holds for an operation, nil if access control is off. Until the roles and
// bindings are known, it is UNAVAILABLE.
func (r *Reader) Policy(ctx context.Context) (*access.Policy, error) {
	if !r.policies.cfg.Enabled {
		return nil, nil
	}
	view := r.view(ctx)
	for _, name := range []string{access.BindingKind, access.RoleKind} {
		if _, ok := view.Kind(name); ok {
			continue
		}
		k, err := r.kinds.Find(name)
		if err != nil {
			return nil, err
		}
		if view, _, err = r.await(ctx, view, k); err != nil {
			return nil, err
		}
	}
	roles, bindings, ok := rightsIn(view)
	if !ok {
		return nil, &failure.Error{Code: failure.CodeUnavailable, Retryable: true, RetryAfter: 1, Message: "the gateway does not know yet who may do what; try again"}
	}
	return r.policies.of(roles, bindings), nil
}

// Rights returns what a caller may do, for all reads and writes of the operation: by the state that the operation
// reads, or as [access.WithRights] has fixed it.
func (r *Reader) Rights(ctx context.Context, c access.Caller) (*access.Rights, error) {
	if !r.policies.cfg.Enabled {
		return r.policies.unlimited, nil
	}
	if fixed := access.RightsFrom(ctx); fixed != nil {
		return fixed, nil
	}
	m, _ := ctx.Value(momentKey{}).(*Moment)
	if known := m.knownRights(); known != nil {
		return known, nil
	}
	p, err := r.Policy(ctx)
	if err != nil {
		return nil, err
	}
	rights := p.RightsOf(c.Identity)
	m.keepRights(rights)
	return rights, nil
}

// RightsToWrite returns what a caller may do, for a write: by the state that the index has now, without asking how new that
// is. A change of the policy at another gateway holds once this one has heard of it, and at this gateway at once.
func (r *Reader) RightsToWrite(ctx context.Context, c access.Caller) (*access.Rights, error) {
	if r.policies.cfg.Enabled && access.RightsFrom(ctx) == nil {
		if p := r.KnownPolicy(); p != nil {
			return p.RightsOf(c.Identity), nil
		}
	}
	return r.Rights(ctx, c)
}

// Judges reports whether access control is on.
func (r *Reader) Judges() bool { return r.policies.cfg.Enabled }

// PolicyVersion returns a number that grows with each change of the policy, as the index has it now; 0 while the policy is
// not known. It asks nobody.
func (r *Reader) PolicyVersion() uint64 {
	roles, bindings, ok := rightsIn(r.index.Current())
	if !ok {
		return 0
	}
	return max(roles.Version(), bindings.Version())
}

// PolicyChange returns a channel that is closed when the policy changes from now on. Access control is on.
func (r *Reader) PolicyChange() <-chan struct{} { return r.index.Repinned() }

// KnownPolicy returns the policy as the index has it now, nil while it is not known. It asks nobody.
func (r *Reader) KnownPolicy() *access.Policy {
	roles, bindings, ok := rightsIn(r.index.Current())
	if !ok {
		return nil
	}
	return r.policies.of(roles, bindings)
}

// rightsIn returns the two kinds that give rights as one state has them: a policy mixed of two states would be
// taken for the newer one. ok is false if the state does not have both.
func rightsIn(view index.View) (roles, bindings *index.Kind, ok bool) {
	roles, hasRoles := view.Kind(access.RoleKind)
	bindings, hasBindings := view.Kind(access.BindingKind)
	return roles, bindings, hasRoles && hasBindings
}

// RightsNow is Rights by the newest state, not the state of the operation.
func (r *Reader) RightsNow(ctx context.Context, c access.Caller) (*access.Rights, error) {
	p, err := r.Policy(context.WithValue(ctx, momentKey{}, nil))
	if err != nil {
		return nil, err
	}
	if p == nil {
		return r.policies.unlimited, nil
	}
	return p.RightsOf(c.Identity), nil
}

// use returns the caller's rights, if they have a verb on some resources of a kind.
func (r *Reader) use(ctx context.Context, c access.Caller, k *kind.Kind, v descriptor.Verb) (*access.Rights, error) {
	rights, err := r.Rights(ctx, c)
	if err == nil {
		err = rights.Use(k.Kind, v)
	}
	return rights, err
}
