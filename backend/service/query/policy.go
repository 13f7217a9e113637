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

// policies builds the policies of a catalogue from the gateway's roles and bindings.
type policies struct {
	cfg    access.Config
	source *policy.Source
	kinds  []descriptor.Kind
	// unlimited are the rights of all callers if access control is off.
	unlimited *access.Rights

	mu sync.Mutex // guards all below
	// newest is the policy of the newest state that was requested. version is the version of this state.
	newest  *access.Policy
	version uint64
}

// of returns the policy of a state. If a later state was requested before, it returns the policy of the later state. So
// a policy may be newer than the resources that are read under it, but never older.
func (p *policies) of(state policy.RolesAndBindings) *access.Policy {
	version := state.Version()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.newest == nil || p.version < version {
		p.newest, p.version = access.NewPolicy(p.cfg, p.kinds, p.newest, state.Roles(), state.Bindings()), version
	}
	return p.newest
}

// Policy returns the policy for an operation; nil if access control is off. The policy is not older than the state that
// the operation reads. Until the roles and bindings were read, Policy returns UNAVAILABLE.
func (r *Reader) Policy(ctx context.Context) (*access.Policy, error) {
	readOutside(ctx)
	return r.policy(ctx)
}

// policy returns the result of [Reader.Policy] without recording a read. The [Basis] of an operation need not include
// the policy, because it has the key of the caller's rights.
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

// policyAfter returns the policy at a log position or a later one. The zero position means that the policy has
// everything that the store has acknowledged.
func (r *Reader) policyAfter(ctx context.Context, at backend.Position) (*access.Policy, error) {
	state, err := r.policies.source.After(ctx, at)
	if err != nil {
		return nil, err
	}
	return r.policies.of(state), nil
}

// Rights returns the rights of the caller for all reads and writes of the operation. They are the rights set by
// [access.WithRights], or otherwise the rights in the state that the operation reads.
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

// RightsToWrite returns the rights of the caller for a write. They follow from the roles and bindings in memory. The
// store is not asked for newer ones. A change of the policy through this gateway applies at once. A change through
// another gateway applies when this gateway has received it.
func (r *Reader) RightsToWrite(ctx context.Context) (*access.Rights, error) {
	if r.policies.cfg.Enabled && access.RightsFrom(ctx) == nil {
		if p := r.KnownPolicy(); p != nil {
			readOutside(ctx)
			return p.RightsOf(access.CallerFrom(ctx).Identity), nil
		}
	}
	return r.Rights(ctx)
}

// PolicySource returns the source of the roles and bindings; nil if access control is
// off.
func (r *Reader) PolicySource() *policy.Source { return r.policies.source }

// KnownPolicy returns the policy of the roles and bindings in memory; nil if they were not read yet. It does not call
// the store.
func (r *Reader) KnownPolicy() *access.Policy {
	state, _, ok := r.policies.source.Current()
	if !ok {
		return nil
	}
	return r.policies.of(state)
}

// RightsNow returns the rights of the caller in the newest state, which may be later than the state that the operation
// reads.
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

// AwaitPolicy waits until this gateway has received all roles and bindings that are stored now.
func (r *Reader) AwaitPolicy(ctx context.Context) error {
	if !r.policies.cfg.Enabled {
		return nil
	}
	_, err := r.policyAfter(ctx, backend.Position{})
	return err
}

// use returns the rights of the caller. It returns an error if the caller may not use the verb on any resource of the
// kind.
func (r *Reader) use(ctx context.Context, k *kind.Kind, v descriptor.Verb) (*access.Rights, error) {
	rights, err := r.Rights(ctx)
	if err == nil {
		err = rights.Use(k.Kind, v)
	}
	return rights, err
}
