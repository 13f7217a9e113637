package service

import (
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/body"
)

// state is a resource in the form that writes work on: what the envelope and
// the body hold of it, spec and status as trees without nulls.
type state struct {
	subKind      string
	meta         body.Metadata
	spec, status map[string]any
	expiresAt    time.Time
}

// stateOf reads what is stored, with all that this gateway does not know.
func stateOf(r *backend.Resource) (*state, error) {
	body, err := body.Decode(r)
	if err != nil {
		return nil, err
	}
	st := &state{subKind: body.SubKind, meta: body.Metadata, expiresAt: r.ExpiresAt}
	if st.spec, err = storedTree("spec", body.Spec); err != nil {
		return nil, err
	}
	if body.Status != nil {
		if st.status, err = storedTree("status", body.Status); err != nil {
			return nil, err
		}
	}
	return st, nil
}

func storedTree(part string, raw json.RawMessage) (map[string]any, error) {
	tree, err := parseTree(raw)
	if err != nil {
		return nil, fmt.Errorf("stored %s: %w: %w", part, backend.ErrUnreadable, err)
	}
	return tree, nil
}

// root is the tree that paths of indexes and references begin in.
func (st *state) root() map[string]any {
	root := map[string]any{"spec": st.spec}
	if st.status != nil {
		root["status"] = st.status
	}
	return root
}

// same says whether two states are equal in all that writes can change.
func (st *state) same(o *state) bool {
	return st.subKind == o.subKind && st.expiresAt.Equal(o.expiresAt) && sameMetadata(st.meta, o.meta) &&
		equal(st.spec, o.spec) && (st.status == nil) == (o.status == nil) && equal(st.status, o.status)
}

// encode returns the stored form.
func (st *state) encode(k *kind) ([]byte, error) {
	b := &body.Parts{SubKind: st.subKind, Version: k.Version, Metadata: st.meta}
	var err error
	if b.Spec, err = json.Marshal(st.spec); err != nil {
		return nil, fmt.Errorf("spec: %w", err)
	}
	if st.status != nil {
		if b.Status, err = json.Marshal(st.status); err != nil {
			return nil, fmt.Errorf("status: %w", err)
		}
	}
	return b.Encode()
}

// sameMetadata compares what a caller may set; empty is the same as absent.
func sameMetadata(a, b body.Metadata) bool {
	return a.Description == b.Description && maps.Equal(a.Labels, b.Labels) && maps.Equal(a.Annotations, b.Annotations)
}
