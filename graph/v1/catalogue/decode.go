// Package catalogue holds the descriptors of all kinds, generated from their
// SDL, and turns stored resources into the values of package model.
package catalogue

import (
	"encoding/json"
	"fmt"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service"
)

// head is what the value of every kind begins with.
type head struct {
	id, version string
	subKind     *string
	metadata    *backend.Metadata
}

// decode reads the body of a stored resource and builds the value of its kind.
// That the spec has what its type requires is the service's to check before;
// what does not fit the Go types is [backend.ErrUnreadable].
func decode[Spec, Status any](stored *backend.Resource, build func(*head, *Spec, *Status) backend.Object) (backend.Object, error) {
	body, err := stored.DecodeBody()
	if err != nil {
		return nil, err
	}
	spec, err := part[Spec]("spec", body.Spec)
	if err != nil {
		return nil, err
	}
	if spec == nil {
		return nil, fmt.Errorf("spec is missing: %w", backend.ErrUnreadable)
	}
	status, err := part[Status]("status", body.Status)
	if err != nil {
		return nil, err
	}
	h := &head{id: service.GlobalID(stored.Key), version: body.Version, metadata: stored.APIMetadata(body)}
	if body.SubKind != "" {
		h.subKind = &body.SubKind
	}
	return build(h, spec, status), nil
}

// part reads spec or status; absent and null are nil.
func part[T any](name string, raw json.RawMessage) (*T, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	var out *T
	if err := json.Unmarshal(raw, &out); err != nil {
		return nil, fmt.Errorf("%s: %w: %w", name, backend.ErrUnreadable, err)
	}
	return out, nil
}
