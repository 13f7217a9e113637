package service

import (
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

// Write writes the manifest that would make a resource, with all that its kind can name. sensitive is the decrypted
// record with its sensitive values; nil for none.
func (m *WholeManifests) Write(r, sensitive *backend.Resource, format ManifestFormat) (string, error) {
	k, err := m.kinds.Find(r.Kind)
	if err != nil {
		return "", err
	}
	st, err := kind.StateOf(r)
	if err == nil {
		err = st.Unseal(k, sensitive)
	}
	if err != nil {
		return "", failure.Of(err, r.Key)
	}
	return writeManifest(k, st, r, k.Spec.Project(st.Spec), format)
}
