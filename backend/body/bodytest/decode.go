// Package bodytest reads stored bodies apart from the code that it tests.
package bodytest

import (
	"encoding/json"
	"fmt"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/body"
)

// Parts are those of a stored body, spec and status as they stand there.
type Parts struct {
	SubKind  string
	Version  string
	Metadata body.Metadata
	Spec     json.RawMessage
	Status   json.RawMessage
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
