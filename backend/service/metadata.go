package service

import (
	"maps"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/body"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
)

// Limits of metadata: the characters of a description, the number of labels, and the bytes of all annotations of a
// resource.
const (
	MaxDescription     = 1024
	maxLabels          = 128
	maxAnnotationBytes = 256 << 10
)

// Label is one label of a resource, such as {"team", "storage"}.
type Label struct{ Key, Value string }

// Annotation is one annotation of a resource.
type Annotation = Label

// PairPatch changes one label or annotation; a nil Value removes it.
type PairPatch struct {
	Key   string
	Value *string
}

// Optional is a value that may be absent. The zero value is absent. If Set is true and Value is zero, the stored value
// is cleared.
type Optional[T any] struct {
	Set   bool
	Value T
}

// Metadata is the metadata that a caller sets. Absent fields keep their stored values.
type Metadata struct {
	Labels      Optional[[]Label]
	Annotations Optional[[]Annotation]
	Description Optional[string]
	// ExpiresAt is accepted only for kinds whose resources expire.
	ExpiresAt Optional[time.Time]
}

// MetadataPatch is the part of a patch that changes metadata.
type MetadataPatch struct {
	// Labels and Annotations are merged by key. If Set is true and Value is nil, all labels or annotations are removed.
	Labels, Annotations Optional[[]PairPatch]
	Description         Optional[string]
	// ExpiresAt is accepted only for kinds whose resources expire.
	ExpiresAt Optional[time.Time]
	// AddFinalizers and RemoveFinalizers name finalizers to add and to remove. Adding a finalizer that exists, or
	// removing one that does not, has no effect.
	AddFinalizers, RemoveFinalizers []string
}

// metadataChange is the change of a resource's metadata by one write.
type metadataChange struct {
	labels, annotations             pairsChange
	description                     Optional[string]
	expiresAt                       Optional[time.Time]
	addFinalizers, removeFinalizers []string
	// manager is the field manager of an apply. Keys that it owns and that the manifest lacks are removed; all other
	// keys are kept. If manager is empty, the labels and annotations of the change replace all stored ones.
	manager string
}

// pairsChange changes labels or annotations.
type pairsChange struct {
	// all reports whether keys that are not in set are removed.
	all    bool
	set    map[string]string
	remove map[string]bool
}

func metadataPath(name string) *failure.Path { return failure.At("metadata").Name(name) }

// changer is a request that can change metadata.
type changer interface {
	// change checks the request, adds its violations to v, and returns the change of the metadata.
	change(v *kind.Violations) metadataChange
}

var (
	_ changer = Metadata{}
	_ changer = MetadataPatch{}
	_ changer = manifestMetadata{}
)

func (m Metadata) change(v *kind.Violations) metadataChange {
	patch := func(given Optional[[]Label]) (out Optional[[]PairPatch]) {
		for _, pair := range given.Value {
			out.Value = append(out.Value, PairPatch{pair.Key, &pair.Value})
		}
		return out
	}
	out := MetadataPatch{
		Labels:      patch(m.Labels),
		Annotations: patch(m.Annotations),
		Description: m.Description,
		ExpiresAt:   m.ExpiresAt,
	}.change(v)
	out.labels.all, out.annotations.all = m.Labels.Set, m.Annotations.Set
	return out
}

func (m MetadataPatch) change(v *kind.Violations) metadataChange {
	out := metadataChange{
		description:      m.Description,
		expiresAt:        m.ExpiresAt,
		addFinalizers:    m.AddFinalizers,
		removeFinalizers: m.RemoveFinalizers,
	}
	pairs := func(
		name string, given Optional[[]PairPatch], check func(at *failure.Path, value string),
	) (out pairsChange) {
		list := metadataPath(name)
		out.all = given.Set && given.Value == nil
		for i, p := range given.Value {
			at := list.Element(i)
			if p.Value != nil {
				check(at.Name("value"), *p.Value)
			}
			out.take(v, at.Name("key"), p.Key, p.Value)
		}
		return out
	}
	out.labels = pairs("labels", m.Labels, v.LabelValue)
	out.annotations = pairs("annotations", m.Annotations, anyValue)
	out.check(v)
	checkFinalizers(v, metadataPath("addFinalizers"), m.AddFinalizers)
	checkFinalizers(v, metadataPath("removeFinalizers"), m.RemoveFinalizers)
	for i, f := range bounded(m.RemoveFinalizers) {
		if slices.Contains(bounded(m.AddFinalizers), f) {
			v.Add(
				metadataPath("removeFinalizers").Element(i),
				"unique",
				nil,
				"the finalizer %q is to be added, too",
				failure.Shorten(f),
			)
		}
	}
	return out
}

// anyValue accepts each value. It is the check of the values of annotations.
func anyValue(at *failure.Path, value string) {}

// check validates the parts of the change that do not depend on the stored metadata.
func (c *metadataChange) check(v *kind.Violations) {
	checkTotals(v, c.labels.set, c.annotations.set)
	if n := utf8.RuneCountInString(c.description.Value); n > MaxDescription {
		v.Add(
			metadataPath("description"),
			"maxLength",
			MaxDescription,
			"must have at most %d characters, has %d",
			MaxDescription,
			n,
		)
	}
}

// take adds the change of one key. If value is nil, the change removes the key. at is the path of the key in the
// request. A key that was taken before is a violation.
func (c *pairsChange) take(v *kind.Violations, at *failure.Path, key string, value *string) {
	v.LabelKey(at, key)
	if _, set := c.set[key]; set || c.remove[key] {
		v.Add(at, "unique", nil, "repeats the key %q", failure.Shorten(key))
	}
	if value == nil {
		if c.remove == nil {
			c.remove = map[string]bool{}
		}
		c.remove[key] = true
		return
	}
	if c.set == nil {
		c.set = map[string]string{}
	}
	c.set[key] = *value
}

// checkTotals checks the number of labels and the total size of annotations.
func checkTotals(v *kind.Violations, labels, annotations map[string]string) {
	if n := len(labels); n > maxLabels {
		v.Add(metadataPath("labels"), "maxItems", maxLabels, "must be at most %d, are %d", maxLabels, n)
	}
	size := 0
	for key, value := range annotations {
		size += len(key) + len(value)
	}
	if size > maxAnnotationBytes {
		v.Add(
			metadataPath("annotations"),
			"maxLength",
			maxAnnotationBytes,
			"must be at most %d bytes in all, are %d",
			maxAnnotationBytes,
			size,
		)
	}
}

func checkFinalizers(v *kind.Violations, list *failure.Path, names []string) {
	for i, f := range bounded(names) {
		at := list.Element(i)
		v.LabelKey(at, f)
		if slices.Contains(names[:i], f) {
			v.Add(at, "unique", nil, "repeats the finalizer %q", failure.Shorten(f))
		}
	}
	if n := len(names); n > backend.MaxFinalizers {
		v.Add(list, "maxItems", backend.MaxFinalizers, "must be at most %d, are %d", backend.MaxFinalizers, n)
	}
}

// bounded returns the first finalizers of a list, at most the number that a resource may have.
func bounded(names []string) []string { return names[:min(len(names), backend.MaxFinalizers)] }

// applyTo returns the stored metadata after the change.
func (c *metadataChange) applyTo(old body.Metadata) body.Metadata {
	next := old
	next.Labels = c.labels.applyTo(old.Labels, c.ownedAlone(old.Managers, labelKeys))
	next.Annotations = c.annotations.applyTo(old.Annotations, c.ownedAlone(old.Managers, annotationKeys))
	next.Managers = c.managers(old, next)
	if c.description.Set {
		next.Description = c.description.Value
	}
	if len(c.addFinalizers)+len(c.removeFinalizers) > 0 {
		next.Finalizers = slices.DeleteFunc(slices.Clone(old.Finalizers), func(f string) bool {
			return slices.Contains(c.removeFinalizers, f)
		})
		for _, f := range c.addFinalizers {
			if !slices.Contains(next.Finalizers, f) {
				next.Finalizers = append(next.Finalizers, f)
			}
		}
	}
	return next
}

// applyTo returns the pairs after the change. The keys in leave are removed unless they are set.
func (c *pairsChange) applyTo(old map[string]string, leave map[string]bool) map[string]string {
	if !c.all && len(c.set)+len(c.remove)+len(leave) == 0 {
		return old
	}
	next := make(map[string]string, len(c.set))
	if !c.all {
		maps.Copy(next, old)
		maps.DeleteFunc(next, func(key, _ string) bool { return c.remove[key] || leave[key] })
	}
	maps.Copy(next, c.set)
	return next
}

// releases reports whether the change only removes finalizers.
func (c *metadataChange) releases() bool {
	return len(c.removeFinalizers) > 0 && len(c.addFinalizers) == 0 && !c.description.Set && !c.expiresAt.Set &&
		!c.labels.given() && !c.annotations.given()
}

func (c *pairsChange) given() bool { return c.all || len(c.set)+len(c.remove) > 0 }

// validate checks the metadata after the change. It checks the total sizes of labels and annotations only if these have
// changed. It also checks the numbers of finalizers and field managers. It refuses a new finalizer on a resource that
// expires, and an expiry for a resource with finalizers.
func (c *metadataChange) validate(was, next *kind.State) *kind.Violations {
	var found kind.Violations
	labels, annotations := next.Meta.Labels, next.Meta.Annotations
	if maps.Equal(labels, was.Meta.Labels) {
		labels = nil
	}
	if maps.Equal(annotations, was.Meta.Annotations) {
		annotations = nil
	}
	checkTotals(&found, labels, annotations)
	if n := len(next.Meta.Finalizers); n > backend.MaxFinalizers {
		found.Add(
			metadataPath("addFinalizers"),
			"maxItems",
			backend.MaxFinalizers,
			"the resource would have %d finalizers, and has room for %d",
			n,
			backend.MaxFinalizers,
		)
	}
	if n := len(next.Meta.Managers); n > maxManagers && n > len(was.Meta.Managers) {
		found.Add(failure.At("fieldManager"), "maxItems", maxManagers, "%d field managers own labels or annotations of the resource already, as many as can", maxManagers)
	}
	isNew := func(f string) bool { return !slices.Contains(was.Meta.Finalizers, f) }
	switch {
	case next.ExpiresAt.IsZero() || len(next.Meta.Finalizers) == 0:
	case slices.ContainsFunc(next.Meta.Finalizers, isNew):
		found.Add(metadataPath("addFinalizers"), "expires", nil, "cannot be set on a resource that has expiresAt: it goes at that time whoever holds it; clear metadata.expiresAt first")
	case !next.ExpiresAt.Equal(was.ExpiresAt):
		found.Add(metadataPath("expiresAt"), "finalizers", nil, "cannot be set on a resource that has finalizers: it would go at that time although they hold it; remove metadata.finalizers first")
	}
	return &found
}
