package query

import (
	"context"
	"sync"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/policy"
)

// policies makes the policies of a catalogue's kinds from the roles and bindings of the gateway.
type policies struct {
	cfg    access.Config
	source *policy.Source
	kinds  []descriptor.Kind
	// unlimited are everybody's rights if access control is off.
	unlimited *access.Rights

	mu sync.Mutex // guards all below
	// newest is the policy of the newest state that was asked for, of this version.
	newest  *access.Policy
	version uint64
}

// of returns the policy of a state of the roles and bindings, or a newer one: resources may be read that are older
// than the policy, never newer ones.
func (p *policies) of(state policy.RolesAndBindings) *access.Policy {
	version := state.Version()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.newest == nil || p.version < version {
		p.newest, p.version = access.NewPolicy(p.cfg, p.kinds, p.newest, state.Roles(), state.Bindings()), version
	}
	return p.newest
}

// Policy returns the policy that holds for an operation, nil if access control is off: it is no older than the state
// that the operation reads. Until the roles and bindings are known, it is UNAVAILABLE.
func (r *Reader) Policy(ctx context.Context) (*access.Policy, error) {
	readOutside(ctx)
	return r.policy(ctx)
}

// policy is [Reader.Policy] for the rights of the caller. It records nothing: whoever compares what operations have
// read compares their rights, too.
func (r *Reader) policy(ctx context.Context) (*access.Policy, error) {
	if !r.policies.cfg.Enabled {
		return nil, nil
	}
	view := r.view(ctx)
	if view.Err != nil { // the store does not answer, and is not asked again
		return nil, failure.Of(view.Err, backend.Key{})
	}
	return r.policyAfter(ctx, view.Barrier())
}

// policyAfter returns the policy of a position or later; zero stands for all that the store has acknowledged.
func (r *Reader) policyAfter(ctx context.Context, at backend.Position) (*access.Policy, error) {
	state, err := r.policies.source.After(ctx, at)
	if err != nil {
		return nil, err
	}
	return r.policies.of(state), nil
}

// Rights returns what a caller may do, for all reads and writes of the operation: by the state that the operation
// reads, or as [access.WithRights] has fixed it.
func (r *Reader) Rights(ctx context.Context) (*access.Rights, error) {
	if !r.policies.cfg.Enabled {
		return r.policies.unlimited, nil
	}
	if fixed := access.RightsFrom(ctx); fixed != nil {
		return fixed, nil
	}
	m, _ := ctx.Value(snapshotKey{}).(*Snapshot)
	if known := m.knownRights(); known != nil {
		return known, nil
	}
	p, err := r.policy(ctx)
	if err != nil {
		return nil, err
	}
	rights := p.RightsOf(access.CallerFrom(ctx).Identity)
	m.keepRights(rights)
	return rights, nil
}

// RightsToWrite returns what a caller may do, for a write: by the state that the index has now, without asking how
// new that is. A change of the policy at another gateway holds once this one has heard of it, and at this gateway at
// once.
func (r *Reader) RightsToWrite(ctx context.Context) (*access.Rights, error) {
	if r.policies.cfg.Enabled && access.RightsFrom(ctx) == nil {
		if p := r.KnownPolicy(); p != nil {
			readOutside(ctx)
			return p.RightsOf(access.CallerFrom(ctx).Identity), nil
		}
	}
	return r.Rights(ctx)
}

// PolicySource returns the roles and bindings; nil if access control is off.
func (r *Reader) PolicySource() *policy.Source { return r.policies.source }

// KnownPolicy returns the policy as it is known now, nil while it is not. It asks nobody.
func (r *Reader) KnownPolicy() *access.Policy {
	state, _, ok := r.policies.source.Current()
	if !ok {
		return nil
	}
	return r.policies.of(state)
}

// RightsNow is Rights by the newest state, not the state of the operation.
func (r *Reader) RightsNow(ctx context.Context) (*access.Rights, error) {
	if !r.policies.cfg.Enabled {
		return r.policies.unlimited, nil
	}
	readOutside(ctx)
	p, err := r.policyAfter(ctx, backend.Position{})
	if err != nil {
		return nil, err
	}
	return p.RightsOf(access.CallerFrom(ctx).Identity), nil
}

// AwaitPolicy waits until this gateway knows the roles and bindings that are stored now.
func (r *Reader) AwaitPolicy(ctx context.Context) error {
	if !r.policies.cfg.Enabled {
		return nil
	}
	_, err := r.policyAfter(ctx, backend.Position{})
	return err
}

// use returns the caller's rights, if they have a verb on some resources of a kind.
func (r *Reader) use(ctx context.Context, k *kind.Kind, v descriptor.Verb) (*access.Rights, error) {
	rights, err := r.Rights(ctx)
	if err == nil {
		err = rights.Use(k.Kind, v)
	}
	return rights, err
}
