package body

import (
	"encoding/json"
	"fmt"

	"github.com/sluicegw/sluice/backend"
)

// Parts is the JSON body that the service stores for every kind: what the
// envelope does not hold. Spec and status stay raw, so that fields unknown to
// this binary survive.
type Parts struct {
	SubKind  string          `json:"subKind,omitempty"`
	Version  string          `json:"version"`
	Metadata Metadata        `json:"metadata"`
	Spec     json.RawMessage `json:"spec"`
	Status   json.RawMessage `json:"status,omitempty"`
}

// Metadata is the part of the metadata that lives in the body.
type Metadata struct {
	// Generation counts changes of the spec, from 1.
	Generation  int64             `json:"generation"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	Description string            `json:"description,omitempty"`
}

// Decode reads the parts of a stored resource's body.
func Decode(r *backend.Resource) (*Parts, error) {
	raw, err := backend.DecodeBody(r.Body)
	if err != nil {
		return nil, err
	}
	p := &Parts{}
	if err := json.Unmarshal(raw, p); err != nil {
		return nil, fmt.Errorf("body: %w: %w", backend.ErrUnreadable, err)
	}
	return p, nil
}

// Encode returns the stored form of the body.
func (p *Parts) Encode() ([]byte, error) {
	raw, err := json.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("body: %w", err)
	}
	return backend.EncodeBody(raw), nil
}
