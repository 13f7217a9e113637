package service

import (
	"context"

	"github.com/sluicegw/sluice/backend"
)

// target is where and on which condition a state is stored.
type target struct {
	kind *kind
	key  backend.Key
	uid  string
	cond backend.Condition
	// caller marks a change of what callers set.
	caller bool
}

// storeState puts a state with the index rows that follow from it.
func (s *Service) storeState(ctx context.Context, t target, st *state) (*backend.Resource, error) {
	raw, err := st.encode(t.kind)
	if err != nil {
		return nil, err
	}
	rows := t.kind.rows.rows(st.meta.Labels, st.root())
	if err := checkRows(t.key, rows); err != nil {
		return nil, err
	}
	put := backend.Put{
		UID: t.uid, Caller: t.caller, ExpiresAt: st.expiresAt, Body: raw,
		Rows: rows, Refs: t.kind.rows.refs(t.key.Namespace, st.root()), Fingerprint: t.kind.rows.fingerprint,
	}
	res, err := s.apply(ctx, backend.Action{Key: t.key, If: t.cond, Op: backend.OpPut, Put: put})
	if err != nil {
		return nil, err
	}
	return res.Resources[0], nil
}

// stored is what the store has under a key, nil for nothing.
func (s *Service) stored(ctx context.Context, key backend.Key) (*backend.Resource, error) {
	got, err := s.cfg.Store.Get(ctx, key)
	if err != nil {
		return nil, translate(err, key)
	}
	return got[0], nil
}

// present is the answer to a write. What was stored can be read, unless an older
// or newer gateway stored what stays; then the answer has no body.
func (s *Service) present(k *kind, stored *backend.Resource) *Resource {
	b, err := k.body.Read(stored)
	if err != nil {
		s.unreadable.note(stored, err)
	}
	return &Resource{Stored: stored, Body: b}
}
