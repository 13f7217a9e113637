package kind

import (
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/body"
	"github.com/sluicegw/sluice/backend/service/jsontree"
)

// State is a resource in the form that writes work on: what the envelope and
// the body hold of it, spec and status as trees without nulls.
type State struct {
	SubKind      string
	Meta         body.Metadata
	Spec, Status map[string]any
	ExpiresAt    time.Time
	// Sealed is what the record with the sensitive values holds, with what this
	// gateway cannot name; nil if there is none. See [State.Unseal].
	Sealed map[string]any
}

// StateOf reads what is stored, with all that this gateway does not know.
func StateOf(r *backend.Resource) (*State, error) {
	body, err := body.Decode(r)
	if err != nil {
		return nil, err
	}
	st := &State{SubKind: body.SubKind, Meta: body.Metadata, ExpiresAt: r.ExpiresAt}
	if st.Spec, err = storedTree("spec", body.Spec); err != nil {
		return nil, err
	}
	if body.Status != nil {
		if st.Status, err = storedTree("status", body.Status); err != nil {
			return nil, err
		}
	}
	return st, nil
}

func storedTree(part string, raw json.RawMessage) (map[string]any, error) {
	tree, err := jsontree.Parse(raw)
	if err != nil {
		return nil, fmt.Errorf("stored %s: %w: %w", part, backend.ErrUnreadable, err)
	}
	return tree, nil
}

// Root is the tree that paths of indexes and references begin in.
func (st *State) Root() map[string]any {
	root := map[string]any{"spec": st.Spec}
	if st.Status != nil {
		root["status"] = st.Status
	}
	return root
}

// Same says whether two states are equal in all that writes can change.
func (st *State) Same(o *State) bool {
	return st.SubKind == o.SubKind && st.ExpiresAt.Equal(o.ExpiresAt) && sameMetadata(st.Meta, o.Meta) &&
		jsontree.Equal(st.Spec, o.Spec) && (st.Status == nil) == (o.Status == nil) && jsontree.Equal(st.Status, o.Status)
}

// Encode returns the stored form.
func (st *State) Encode(k *Kind) ([]byte, error) {
	b := &body.Parts{SubKind: st.SubKind, Version: k.Version, Metadata: st.Meta}
	var err error
	if b.Spec, err = json.Marshal(st.Spec); err != nil {
		return nil, fmt.Errorf("spec: %w", err)
	}
	if st.Status != nil {
		if b.Status, err = json.Marshal(st.Status); err != nil {
			return nil, fmt.Errorf("status: %w", err)
		}
	}
	return b.Encode()
}

// sameMetadata compares what a caller may set; empty is the same as absent.
func sameMetadata(a, b body.Metadata) bool {
	return a.Description == b.Description && maps.Equal(a.Labels, b.Labels) && maps.Equal(a.Annotations, b.Annotations)
}
