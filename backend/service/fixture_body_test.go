package service_test

import (
	"encoding/json"
	"fmt"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/body"
)

// bodyParts are the parts of a stored body, spec and status as they stand there.
type bodyParts struct {
	SubKind  string
	Version  string
	Metadata body.Metadata
	Spec     json.RawMessage
	Status   json.RawMessage
}

// decodeBody reads the body of a stored resource apart from the code that is tested.
func decodeBody(r *backend.Resource) (*bodyParts, error) {
	raw, err := backend.DecodeBody(r.Body)
	if err != nil {
		return nil, err
	}
	p := &bodyParts{}
	if err := json.Unmarshal(raw, p); err != nil {
		return nil, fmt.Errorf("body: %w: %w", backend.ErrUnreadable, err)
	}
	return p, nil
}
