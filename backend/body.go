package backend

import (
	"encoding/json"
	"fmt"
)

// Body is the JSON body that the service stores for every kind: what the
// envelope does not hold. Spec and status stay raw, so that fields unknown to
// this binary survive.
type Body struct {
	SubKind  string          `json:"subKind,omitempty"`
	Version  string          `json:"version"`
	Metadata BodyMetadata    `json:"metadata"`
	Spec     json.RawMessage `json:"spec"`
	Status   json.RawMessage `json:"status,omitempty"`
}

// BodyMetadata is the part of the metadata that lives in the body.
type BodyMetadata struct {
	// Generation counts changes of the spec, from 1.
	Generation  int64             `json:"generation"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	Description string            `json:"description,omitempty"`
}

// DecodeBody reads the service's body of a stored resource.
func (r *Resource) DecodeBody() (*Body, error) {
	raw, err := DecodeBody(r.Body)
	if err != nil {
		return nil, err
	}
	b := &Body{}
	if err := json.Unmarshal(raw, b); err != nil {
		return nil, fmt.Errorf("body: %w: %w", ErrUnreadable, err)
	}
	return b, nil
}

// Encode returns the stored form of the body.
func (b *Body) Encode() ([]byte, error) {
	raw, err := json.Marshal(b)
	if err != nil {
		return nil, fmt.Errorf("body: %w", err)
	}
	return EncodeBody(raw), nil
}
