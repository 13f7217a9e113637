package service

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/manifest"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/jsontree"
	"github.com/sluicegw/sluice/backend/service/kind"
)

// manifestMetadata is the metadata of a manifest. A field that the manifest lacks keeps its stored value. A null clears
// the field.
type manifestMetadata struct {
	manifest.Metadata
	manager string
}

func (m manifestMetadata) change(v *kind.Violations) metadataChange {
	cleared := func(name string) bool { return slices.Contains(m.Cleared, name) }
	pairs := func(
		name string, given map[string]string, removed []string, check func(at *failure.Path, value string),
	) pairsChange {
		out := pairsChange{all: cleared(name) || given != nil && m.manager == ""}
		for _, key := range removed {
			out.take(v, metadataPath(name).Name(key), key, nil)
		}
		for _, key := range jsontree.Keys(given) {
			at := metadataPath(name).Name(key)
			check(at, given[key])
			out.take(v, at, key, new(given[key]))
		}
		return out
	}
	out := metadataChange{
		labels:      pairs("labels", m.Labels, m.ClearedLabels, v.LabelValue),
		annotations: pairs("annotations", m.Annotations, m.ClearedAnnotations, anyValue),
		description: Optional[string]{Set: cleared("description")},
		expiresAt:   Optional[time.Time]{Set: cleared("expiresAt")},
		manager:     m.manager,
	}
	if m.Description != nil {
		out.description = Optional[string]{Set: true, Value: *m.Description}
	}
	if m.ExpiresAt != nil {
		out.expiresAt = ExpiresAt(*m.ExpiresAt)
	}
	out.check(v)
	return out
}

// Manifest returns the manifest of a stored resource. Applying it through this gateway would change nothing. It lacks
// write-only fields and unknown fields, which an apply keeps.
func (s *Service) Manifest(r *backend.Resource, format ManifestFormat) (string, error) {
	k, st, err := s.stateOf(r)
	if err != nil {
		return "", err
	}
	return writeManifest(k, st, r, k.Spec.Shown(st.Spec), format)
}

// writeManifest writes the manifest of a resource with the given spec. It modifies spec.
func writeManifest(
	k *kind.Kind, st *kind.State, r *backend.Resource, spec map[string]any, format ManifestFormat,
) (string, error) {
	doc := manifest.Document{
		APIVersion: k.APIVersion(), Kind: k.Name, SubKind: st.SubKind,
		Metadata: manifest.Metadata{Name: r.Name, Labels: st.Meta.Labels, Annotations: st.Meta.Annotations},
	}
	if err := placeSpec(k, &doc, spec); err != nil {
		return "", failure.Of(fmt.Errorf("manifest: %w", err), r.Key)
	}
	if r.Namespace != "" {
		doc.Metadata.Namespace = &r.Namespace
	}
	if st.Meta.Description != "" {
		doc.Metadata.Description = &st.Meta.Description
	}
	if k.Expires && !r.ExpiresAt.IsZero() {
		doc.Metadata.ExpiresAt = &r.ExpiresAt
	}
	write := doc.YAML
	if format == JSON {
		write = doc.JSON
	}
	out, err := write()
	if err != nil {
		return "", failure.Of(fmt.Errorf("manifest: %w", err), r.Key)
	}
	return string(out), nil
}

// SpecJSON returns the spec of a stored resource as JSON with stored names, without write-only and unknown fields.
func (s *Service) SpecJSON(r *backend.Resource) ([]byte, error) {
	return s.partJSON(r, func(k *kind.Kind, st *kind.State) map[string]any { return k.Spec.Shown(st.Spec) })
}

// StatusJSON returns the status of a stored resource as JSON with stored names, without unknown fields; nil if there is
// none.
func (s *Service) StatusJSON(r *backend.Resource) ([]byte, error) {
	return s.partJSON(r, func(k *kind.Kind, st *kind.State) map[string]any {
		status := st.Status()
		if k.Status == nil || status == nil {
			return nil
		}
		return k.Status.Project(status)
	})
}

func (s *Service) partJSON(r *backend.Resource, part func(*kind.Kind, *kind.State) map[string]any) ([]byte, error) {
	k, st, err := s.stateOf(r)
	if err != nil {
		return nil, err
	}
	tree := part(k, st)
	if tree == nil {
		return nil, nil
	}
	raw, err := json.Marshal(tree)
	if err != nil {
		return nil, failure.Of(fmt.Errorf("json: %w", err), r.Key)
	}
	return raw, nil
}

// stateOf returns the kind and the state of a stored resource.
func (s *Service) stateOf(r *backend.Resource) (*kind.Kind, *kind.State, error) {
	k, err := s.kinds.Find(r.Kind)
	if err != nil {
		return nil, nil, err
	}
	st, err := kind.StateOf(r)
	if err != nil {
		return nil, nil, failure.Of(err, r.Key)
	}
	return k, st, nil
}
