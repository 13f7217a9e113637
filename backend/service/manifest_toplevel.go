package service

import (
	"encoding/json"
	"fmt"

	"github.com/sluicegw/sluice/backend/manifest"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/jsontree"
	"github.com/sluicegw/sluice/backend/service/kind"
)

// A kind can declare that fields of its spec stand at the top level of manifests, as data does in a Secret. In the
// store and in the API these fields are ordinary fields of the spec. This file converts between the two forms.

// unknownKey returns an error if a manifest has a top-level key that the kind does not declare. k is nil if the kind is
// not known.
func unknownKey(k *kind.Kind, doc *manifest.Document) error {
	var placed map[string]string
	if k != nil {
		placed = k.Placed
	}
	for _, key := range jsontree.Keys(doc.Placed) {
		if _, ok := placed[key]; !ok {
			e := failure.BadInput("manifest", "manifest: %v", manifest.Unknown(key, jsontree.Keys(placed)))
			e.Path = key
			return e
		}
	}
	return nil
}

// manifestSpec returns the spec of a manifest, including its fields at the top level; nil if the manifest has none. The
// manifest needs no spec if all fields of the kind can stand at the top level.
func manifestSpec(k *kind.Kind, doc *manifest.Document) (any, error) {
	if len(k.Placed) == 0 {
		if doc.Spec == nil {
			return nil, nil
		}
		return doc.Spec, nil
	}
	spec := map[string]json.RawMessage{}
	if doc.Spec != nil {
		if err := json.Unmarshal(doc.Spec, &spec); err != nil {
			return doc.Spec, nil // no object: refused as it is for other kinds
		}
	}
	for _, key := range jsontree.Keys(k.Placed) {
		name := k.Placed[key]
		if _, ok := spec[name]; ok {
			return nil, failure.BadInput(
				"spec."+name,
				"spec.%s stands at the top of a manifest of kind %s, as %s",
				name,
				k.Name,
				key,
			)
		}
		if value, ok := doc.Placed[key]; ok {
			spec[name] = value
		}
	}
	return spec, nil
}

// placeSpec writes a spec into a manifest, and moves fields to the top level. If the kind has such fields and the spec
// has no others, the manifest gets no spec.
func placeSpec(k *kind.Kind, doc *manifest.Document, spec map[string]any) (err error) {
	for key, name := range k.Placed {
		value, ok := spec[name]
		if !ok {
			continue
		}
		delete(spec, name)
		if doc.Placed == nil {
			doc.Placed = map[string]json.RawMessage{}
		}
		if doc.Placed[key], err = json.Marshal(value); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
	}
	if len(spec) == 0 && len(k.Placed) > 0 {
		return nil
	}
	if doc.Spec, err = json.Marshal(spec); err != nil {
		return fmt.Errorf("spec: %w", err)
	}
	return nil
}
