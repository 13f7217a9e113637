package kind

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/tidwall/gjson"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/body"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/jsontree"
)

// State is a resource in the form that writes work on: what the envelope and
// the body hold of it, spec and status as trees without nulls.
type State struct {
	SubKind   string
	Meta      body.Metadata
	Spec      map[string]any
	ExpiresAt time.Time
	// Sealed is what the record with the sensitive values holds, with what this
	// gateway cannot name; nil if there is none. See [State.Unseal].
	Sealed map[string]any
	// stored are the parts of the body that the state was read from, nil for one
	// whose tree is another since.
	stored struct{ spec, status []byte }
	// status is nil until it is asked for; see [State.Status].
	status map[string]any
}

// StateOf reads what is stored, with all that this gateway does not know. The state shares
// the memory of the body.
func StateOf(r *backend.Resource) (*State, error) {
	raw, err := backend.DecodeBody(r.Body)
	if err != nil {
		return nil, err
	}
	st := &State{ExpiresAt: r.ExpiresAt}
	err = jsontree.Members(raw, st.read)
	if err == nil && st.Spec == nil {
		err = fmt.Errorf("no spec")
	}
	if err != nil {
		return nil, fmt.Errorf("body: %w: %w", backend.ErrUnreadable, err)
	}
	return st, nil
}

// Waits reports whether a stored resource waits for another.
func Waits(r *backend.Resource) bool {
	raw, err := backend.DecodeBody(r.Body)
	return err == nil && gjson.GetBytes(raw, "metadata.waits.0").Exists()
}

// read reads a part of a body.
func (st *State) read(name string, m *jsontree.Member) error {
	switch name {
	case "status":
		raw, err := m.Skip()
		if err == nil && raw[0] != '{' {
			err = errPart(name)
		}
		st.stored.status = raw
		return err
	case "metadata":
		st.Meta = body.Metadata{}
		if m.IsNull() {
			return nil
		}
		return m.Members(st.readMetadata)
	case "subKind", "spec":
	default:
		return nil
	}
	value, raw, err := m.Tree()
	if err != nil {
		return err
	}
	ok := true
	if name == "subKind" {
		st.SubKind, ok = textOf(value)
	} else {
		st.Spec, ok = value.(map[string]any)
		st.stored.spec = raw
	}
	if !ok {
		return errPart(name)
	}
	return nil
}

func errPart(name string) error { return fmt.Errorf("%s is not what it should be", name) }

// Status is the tree of the status, nil if there is none.
func (st *State) Status() map[string]any {
	if st.status == nil && st.stored.status != nil {
		st.status, _ = jsontree.Parse(st.stored.status) // it was read before
	}
	return st.status
}

// textOf is a text; null is the empty one.
func textOf(v any) (string, bool) {
	text, ok := v.(string)
	return text, ok || v == nil
}

// wholeOf is a whole number; null is 0.
func wholeOf(v any) (int64, bool) {
	if v == nil {
		return 0, true
	}
	number, _ := v.(json.Number)
	n, err := number.Int64()
	return n, err == nil
}

// timeOf is a time; null is none.
func timeOf(v any) (time.Time, bool) {
	if v == nil {
		return time.Time{}, true
	}
	text, _ := v.(string)
	t, err := descriptor.ParseTime(text)
	return t, err == nil
}

// Root is the tree that paths of indexes and references begin in.
func (st *State) Root() map[string]any {
	root := map[string]any{"spec": st.Spec}
	if status := st.Status(); status != nil {
		root["status"] = status
	}
	return root
}

// SameBesides says whether two states are equal in all but the spec that writes can
// change.
func (st *State) SameBesides(o *State) bool {
	return st.SubKind == o.SubKind && st.ExpiresAt.Equal(o.ExpiresAt) && sameMetadata(st.Meta, o.Meta) && st.SameStatus(o)
}

// SameStatus says whether two states have equal statuses, or both none.
func (st *State) SameStatus(o *State) bool {
	if a, b := st.stored.status, o.stored.status; a != nil && b != nil && bytes.Equal(a, b) {
		return true
	}
	a, b := st.Status(), o.Status()
	return (a == nil) == (b == nil) && jsontree.Equal(a, b)
}

// StoredStatus is the stored form of the status, nil if there is none or it has changed.
func (st *State) StoredStatus() []byte { return st.stored.status }

// WithStoredStatus is the state with another status, in stored form.
func (st *State) WithStoredStatus(status []byte) *State {
	next := *st
	next.status, next.stored.status = nil, status
	return &next
}

// WithStatus is the state with another status.
func (st *State) WithStatus(status map[string]any) *State {
	next := *st
	next.status, next.stored.status = status, nil
	return &next
}

// WithSpec is the state with another spec.
func (st *State) WithSpec(spec map[string]any) *State {
	next := *st
	next.Spec, next.stored.spec = spec, nil
	return &next
}

// Managed is the state with other field managers.
func (st *State) Managed(by []body.Manager) *State {
	next := *st
	next.Meta.Managers = by
	return &next
}

// WithMetadata is the state with other metadata.
func (st *State) WithMetadata(meta body.Metadata) *State {
	next := *st
	next.Meta = meta
	return &next
}

// Encode returns the stored form, in one piece: what has not changed as it is stored.
func (st *State) Encode(k *Kind) ([]byte, error) {
	room := 512 + len(st.stored.spec) + len(st.stored.status)
	b := append(make([]byte, 0, room), backend.BodyJSON, '{')
	if st.SubKind != "" {
		b = append(jsontree.AppendText(append(b, `"subKind":`...), st.SubKind), ',')
	}
	b = jsontree.AppendText(append(b, `"version":`...), k.Version)
	b = appendMetadata(append(b, `,"metadata":`...), st.Meta)
	b, err := appendPart(append(b, `,"spec":`...), st.Spec, st.stored.spec)
	if err != nil {
		return nil, fmt.Errorf("spec: %w", err)
	}
	if st.status != nil || st.stored.status != nil {
		if b, err = appendPart(append(b, `,"status":`...), st.status, st.stored.status); err != nil {
			return nil, fmt.Errorf("status: %w", err)
		}
	}
	return append(b, '}'), nil
}

// appendPart appends a part of a body: as it is stored, if it is.
func appendPart(b []byte, tree map[string]any, stored []byte) ([]byte, error) {
	if stored != nil {
		return append(b, stored...), nil
	}
	return jsontree.Append(b, tree)
}
