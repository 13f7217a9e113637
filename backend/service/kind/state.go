package kind

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tidwall/gjson"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/body"
	"github.com/sluicegw/sluice/backend/index"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/jsontree"
)

// State is a resource in the form that writes use: the contents of its envelope and body, with decoded spec and status
// and without nulls.
type State struct {
	SubKind   string
	Meta      body.Metadata
	Spec      map[string]any
	ExpiresAt time.Time
	// Sealed is the content of the sensitive record, including fields that this gateway does not know; nil if there is
	// none. See [State.Unseal].
	Sealed map[string]any
	// stored has the JSON of spec and status from which the state was read. Each is "" once the decoded form was
	// replaced.
	stored struct{ spec, status string }
	// status is the decoded status; nil until [State.Status] decodes it.
	status map[string]any
}

// StateOf decodes a stored resource, including fields that this gateway does not know. The state shares memory with the
// body.
func StateOf(r *backend.Resource) (*State, error) {
	raw, err := backend.DecodeBody(r.Body)
	if err != nil {
		return nil, err
	}
	st := &State{ExpiresAt: r.ExpiresAt}
	body, err := jsontree.Valid(textOf(raw))
	if err == nil {
		body.ForEach(func(name, part gjson.Result) bool {
			err = st.read(name.Str, part)
			return err == nil
		})
	}
	if err == nil && st.Spec == nil {
		err = errors.New("no spec")
	}
	if err != nil {
		return nil, fmt.Errorf("body: %w: %w", backend.ErrUnreadable, err)
	}
	return st, nil
}

// Waits reports whether a stored resource waits for a target.
func Waits(r *backend.Resource) bool {
	raw, err := backend.DecodeBody(r.Body)
	return err == nil && gjson.GetBytes(raw, "metadata.waits.0").Exists()
}

// read decodes one part of a body into the state.
func (st *State) read(name string, part gjson.Result) (err error) {
	switch {
	case name == "metadata":
		st.Meta = body.Metadata{}
		if err = json.Unmarshal([]byte(part.Raw), &st.Meta); err != nil {
			err = fmt.Errorf("metadata: %w", err)
		}
	case name == "subKind" && (part.Type == gjson.String || part.Type == gjson.Null):
		st.SubKind = part.Str
	case name == "spec" && part.IsObject():
		st.stored.spec = part.Raw
		st.Spec, err = jsontree.Members(part)
	case name == "status" && part.IsObject():
		st.stored.status = part.Raw
	case name == "subKind", name == "spec", name == "status":
		return fmt.Errorf("%s is not what it should be", name)
	}
	return err
}

// Status returns the decoded status; nil if there is none.
func (st *State) Status() map[string]any {
	if st.status == nil && st.stored.status != "" {
		st.status, _ = jsontree.Parse(st.stored.status) // a part of a valid body
	}
	return st.status
}

// SameBesides reports whether two states are equal apart from their specs.
func (st *State) SameBesides(o *State) bool {
	return st.SubKind == o.SubKind && st.ExpiresAt.Equal(o.ExpiresAt) && sameMetadata(st.Meta, o.Meta) &&
		st.SameStatus(o)
}

// SameStatus reports whether two states have equal statuses, or both have none.
func (st *State) SameStatus(o *State) bool {
	if a := st.stored.status; a != "" && a == o.stored.status {
		return true
	}
	a, b := st.Status(), o.Status()
	return (a == nil) == (b == nil) && jsontree.Equal(a, b)
}

// StoredStatus returns the JSON of the status. It is "" if there is no status, or if WithStatus has replaced it.
func (st *State) StoredStatus() string { return st.stored.status }

// WithStoredStatus returns a copy of the state with another status, given as JSON.
func (st *State) WithStoredStatus(status string) *State {
	next := *st
	next.status, next.stored.status = nil, status
	return &next
}

// WithStatus returns a copy of the state with another status, given as a tree.
func (st *State) WithStatus(status map[string]any) *State {
	next := *st
	next.status, next.stored.status = status, ""
	return &next
}

// WithSpec returns a copy of the state with another spec.
func (st *State) WithSpec(spec map[string]any) *State {
	next := *st
	next.Spec, next.stored.spec = spec, ""
	return &next
}

// WithMetadata returns a copy of the state with other metadata.
func (st *State) WithMetadata(meta body.Metadata) *State {
	next := *st
	next.Meta = meta
	return &next
}

// parts returns the parts of the body to be stored. For unchanged parts it returns the text that was read.
func (st *State) parts(k *Kind) ([]member, error) {
	out := make([]member, 0, 5)
	if st.SubKind != "" {
		out = append(out, member{"subKind", textOf(jsontree.AppendText(nil, st.SubKind))})
	}
	metadata, err := json.Marshal(&st.Meta)
	if err != nil {
		return nil, fmt.Errorf("metadata: %w", err)
	}
	out = append(
		out, member{"version", textOf(jsontree.AppendText(nil, k.Version))}, member{"metadata", textOf(metadata)},
	)
	add := func(name, stored string, tree map[string]any) {
		if stored == "" && tree != nil && err == nil {
			var raw []byte
			if raw, err = jsontree.Append(nil, tree); err != nil {
				err = fmt.Errorf("%s: %w", name, err)
			}
			stored = textOf(raw)
		}
		if stored != "" {
			out = append(out, member{name, stored})
		}
	}
	add("spec", st.stored.spec, st.Spec)
	add("status", st.stored.status, st.status)
	return out, err
}

// smallBody is the size in bytes up to which a body cannot have too many index rows.
const smallBody = 2 * index.MaxRows

// Put returns the put that stores the state of a resource. old is the stored resource; nil if there is none or it
// cannot be read. The store keeps the references of old unless the caller sets others in the put. Errors use the field
// names that names selects.
func (st *State) Put(
	k *Kind, key backend.Key, old *backend.Resource, names failure.FieldNames,
) (put backend.Put, err error) {
	put = backend.Put{ExpiresAt: st.ExpiresAt, Finalizers: new(len(st.Meta.Finalizers))}
	parts, err := st.parts(k)
	if err != nil {
		return put, err
	}
	put.Body = objectOf(bodyHead, parts)
	if len(put.Body) > smallBody {
		if excess := k.excessRowsOf(key, put.Body, old); excess != nil {
			return put, excess.refuse(k, names).At(key)
		}
	}
	if old != nil {
		put.UID = old.UID
		put.Deleting = old.Deleting
		put.Change = k.changeOf(old.Body, parts)
	}
	return put, nil
}

// sameMetadata reports whether the metadata that callers can set is equal. Empty and absent values are equal.
func sameMetadata(a, b body.Metadata) bool {
	return a.Description == b.Description && slices.Equal(a.Finalizers, b.Finalizers) &&
		maps.Equal(a.Labels, b.Labels) && maps.Equal(a.Annotations, b.Annotations) &&
		slices.EqualFunc(a.Managers, b.Managers, func(x, y body.Manager) bool {
			return x.Name == y.Name && slices.Equal(x.Labels, y.Labels) && slices.Equal(x.Annotations, y.Annotations)
		})
}
