package service

import (
	"errors"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
)

// WholeManifests writes manifests with write-only values, of resources that come from a file and not from a store.
type WholeManifests struct{ kinds kind.Catalogue }

// NewWholeManifests returns the writer of manifests of some kinds.
func NewWholeManifests(kinds []descriptor.Kind) (*WholeManifests, error) {
	compiled, err := kind.Compile(kinds)
	return &WholeManifests{compiled}, err
}

// Kind returns the kind of a name, which may be one of its short names; an error that names those there are for others.
func (m *WholeManifests) Kind(name string) (*descriptor.Kind, error) {
	k, err := m.kinds.Find(name)
	if err != nil {
		return nil, err
	}
	return k.Kind, nil
}

// ErrNoKind: the catalogue does not have the kind of a resource.
var ErrNoKind = errors.New("the catalogue does not have its kind")

// Write writes the manifest that would make a resource, with all that its kind can name, and reports whether that is
// all of its spec. sensitive is the decrypted record with its sensitive values; nil for none.
func (m *WholeManifests) Write(r, sensitive *backend.Resource, format ManifestFormat) (text string, whole bool, err error) {
	k, err := m.kinds.Find(r.Kind)
	if err != nil || k.Name != r.Kind { // a stored kind can have a short name of another one
		return "", false, ErrNoKind
	}
	st, err := kind.StateOf(r)
	if err == nil {
		err = st.Unseal(k, sensitive)
	}
	if err != nil {
		return "", false, failure.Of(err, r.Key)
	}
	text, err = writeManifest(k, st, r, k.Spec.Project(st.Spec), format)
	return text, k.Spec.CanName(st.Spec), err
}
