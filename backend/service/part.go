package service

import (
	"encoding/json"
	"fmt"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
)

// SpecJSON is the spec of a stored resource, with all that its kind can name and
// that is shown, in stored form.
func (s *Service) SpecJSON(r *backend.Resource) ([]byte, error) {
	return s.partJSON(r, func(k *kind.Kind, st *kind.State) map[string]any { return k.Spec.Shown(st.Spec) })
}

// StatusJSON is the status of a stored resource, with all that its kind can name, in
// stored form; nil if there is none.
func (s *Service) StatusJSON(r *backend.Resource) ([]byte, error) {
	return s.partJSON(r, func(k *kind.Kind, st *kind.State) map[string]any {
		status := st.Status()
		if k.Status == nil || status == nil {
			return nil
		}
		return k.Status.Project(status)
	})
}

func (s *Service) partJSON(r *backend.Resource, part func(*kind.Kind, *kind.State) map[string]any) ([]byte, error) {
	k, err := s.kinds.Find(r.Kind)
	if err != nil {
		return nil, err
	}
	st, err := kind.StateOf(r)
	if err != nil {
		return nil, failure.Of(err, r.Key)
	}
	tree := part(k, st)
	if tree == nil {
		return nil, nil
	}
	raw, err := json.Marshal(tree)
	if err != nil {
		return nil, failure.Of(fmt.Errorf("json: %w", err), r.Key)
	}
	return raw, nil
}
