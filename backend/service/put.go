package service

import (
	"context"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/query"
	"github.com/sluicegw/sluice/backend/service/row"
)

// target is where and on which condition a state is stored.
type target struct {
	kind *kind.Kind
	key  backend.Key
	uid  string
	cond backend.Condition
	// caller marks a change of what callers set.
	caller bool
}

// storeState puts a state with the index rows that follow from it.
func (s *Service) storeState(ctx context.Context, t target, st *kind.State) (*backend.Resource, error) {
	raw, err := st.Encode(t.kind)
	if err != nil {
		return nil, err
	}
	rows := t.kind.Rows.Of(st.Meta.Labels, st.Root())
	if err := row.Check(t.key, rows); err != nil {
		return nil, err
	}
	put := backend.Put{
		UID: t.uid, Caller: t.caller, ExpiresAt: st.ExpiresAt, Body: raw,
		Rows: rows, Refs: t.kind.Rows.Refs(t.key.Namespace, st.Root()), Fingerprint: t.kind.Rows.Fingerprint,
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
		return nil, failure.Of(err, key)
	}
	return got[0], nil
}

// present is the answer to a write. What was stored can be read, unless an older
// or newer gateway stored what stays; then the answer has no body.
func (s *Service) present(k *kind.Kind, stored *backend.Resource) *query.Resource {
	b, err := k.Body.Read(stored)
	if err != nil {
		s.unreadable.Note(stored, err)
	}
	return &query.Resource{Stored: stored, Body: b}
}
