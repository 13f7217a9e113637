package service

import (
	"slices"
	"time"
	"unicode/utf8"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/body"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
)

// Limits of metadata; those of labels and annotations are Kubernetes'.
const (
	MaxDescription     = 1024
	maxLabels          = 128
	maxAnnotationBytes = 256 << 10
)

// check validates what the caller gave and returns labels and annotations as maps.
func (m Metadata) check(v *kind.Violations) (labels, annotations map[string]string) {
	if n := len(m.Labels.Value); n > 0 {
		labels = make(map[string]string, n)
	}
	if n := len(m.Annotations.Value); n > 0 {
		annotations = make(map[string]string, n)
	}
	for i, l := range m.Labels.Value {
		key, value := m.places("metadata.labels", i, l.Key)
		checkPair(v, key, l.Key, labels)
		v.LabelValue(value, l.Value)
		labels[l.Key] = l.Value
	}
	if n := len(m.Labels.Value); n > maxLabels {
		v.Add("metadata.labels", "maxItems", maxLabels, "must be at most %d, are %d", maxLabels, n)
	}
	size := 0
	for i, a := range m.Annotations.Value {
		key, _ := m.places("metadata.annotations", i, a.Key)
		checkPair(v, key, a.Key, annotations)
		annotations[a.Key] = a.Value
		size += len(a.Key) + len(a.Value)
	}
	if size > maxAnnotationBytes {
		v.Add("metadata.annotations", "maxLength", maxAnnotationBytes, "must be at most %d bytes in all, are %d", maxAnnotationBytes, size)
	}
	for i, f := range m.Finalizers.Value[:min(len(m.Finalizers.Value), backend.MaxFinalizers)] {
		at := failure.Element("metadata.finalizers", i)
		v.LabelKey(at, f)
		if slices.Contains(m.Finalizers.Value[:i], f) {
			v.Add(at, "unique", nil, "repeats the finalizer %q", failure.Shorten(f))
		}
	}
	if n := len(m.Finalizers.Value); n > backend.MaxFinalizers {
		v.Add("metadata.finalizers", "maxItems", backend.MaxFinalizers, "must be at most %d, are %d", backend.MaxFinalizers, n)
	}
	if n := utf8.RuneCountInString(m.Description.Value); n > MaxDescription {
		v.Add("metadata.description", "maxLength", MaxDescription, "must have at most %d characters, has %d", MaxDescription, n)
	}
	return labels, annotations
}

// places are the paths of a key and of its value in a list of pairs, or in a mapping.
func (m Metadata) places(path string, i int, key string) (ofKey, ofValue string) {
	if m.mapped {
		at := failure.Join(path, key)
		return at, at
	}
	at := failure.Element(path, i)
	return failure.Join(at, "key"), failure.Join(at, "value")
}

func checkPair(v *kind.Violations, at, key string, seen map[string]string) {
	v.LabelKey(at, key)
	if _, ok := seen[key]; ok {
		v.Add(at, "unique", nil, "repeats the key %q", failure.Shorten(key))
	}
}

// applyTo returns the stored metadata after the change.
func (m Metadata) applyTo(old body.Metadata, labels, annotations map[string]string) body.Metadata {
	if m.Labels.Set {
		old.Labels = labels
	}
	if m.Annotations.Set {
		old.Annotations = annotations
	}
	if m.Description.Set {
		old.Description = m.Description.Value
	}
	if m.Finalizers.Set {
		old.Finalizers = m.Finalizers.Value
	}
	return old
}

// Label is one label of a resource.
type Label struct{ Key, Value string }

// Annotation is one annotation of a resource.
type Annotation struct{ Key, Value string }

// Optional tells what was left out from what was given. The zero value was
// left out; Set with a zero Value clears.
type Optional[T any] struct {
	Set   bool
	Value T
}

// Metadata is what a caller may set besides the spec. What is left out stays as it is.
type Metadata struct {
	Labels      Optional[[]Label]
	Annotations Optional[[]Annotation]
	Description Optional[string]
	// ExpiresAt is for kinds that expire.
	ExpiresAt Optional[time.Time]
	// Finalizers hold the resource while its deletion waits. Only updates and patches set them.
	Finalizers Optional[[]string]

	// mapped says that labels and annotations were mappings, as in a manifest.
	mapped bool
}
