package service

import (
	"errors"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
)

// WholeManifests writes the manifests of exported resources. Unlike [Service.Manifest], it includes write-only values.
type WholeManifests struct{ kinds kind.Catalogue }

// NewWholeManifests returns a WholeManifests for a catalogue of kinds. It returns an error if the catalogue does not
// compile.
func NewWholeManifests(kinds []descriptor.Kind) (*WholeManifests, error) {
	compiled, err := kind.Compile(kinds)
	return &WholeManifests{compiled}, err
}

// Kind returns the kind with a name or short name, or an error that lists the known kinds.
func (m *WholeManifests) Kind(name string) (*descriptor.Kind, error) {
	k, err := m.kinds.Find(name)
	if err != nil {
		return nil, err
	}
	return k.Kind, nil
}

// ErrNoKind means that the catalogue lacks the kind of a resource.
var ErrNoKind = errors.New("the catalogue does not have its kind")

// Write returns a manifest that would create the resource. sensitive is the decrypted record of its sensitive values;
// nil if there is none. If the stored spec has fields that the kind does not know, the manifest lacks them and whole is
// false.
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
