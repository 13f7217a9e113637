package service

import (
	"cmp"
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/sluicegw/sluice/backend/body"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
)

// A field manager is the name under which a client applies manifests, such as the name of a pipeline, an operator or a
// person. For each field manager, a resource records which labels and annotations its last manifest had. So an apply
// can remove the keys that its own manifest no longer has, and keep keys that others have set:
//
//	manifest before   manifest now    stored before             stored after
//	a, b              a               a, b, c (by a patch)      a, c
//
// If several field managers have a key in their manifests, the key is removed when none of the manifests has it any
// more.

// Limits of field managers.
const (
	// DefaultFieldManager is the field manager of a request that names none.
	DefaultFieldManager = "sluice"
	maxManagers         = 16
	maxManagerLength    = 64
)

func checkManager(v *kind.Violations, name string) {
	if n := utf8.RuneCountInString(name); n > maxManagerLength {
		v.Add(
			failure.At("fieldManager"),
			"maxLength",
			maxManagerLength,
			"must have at most %d characters, has %d",
			maxManagerLength,
			n,
		)
	}
}

func labelKeys(m body.Manager) []string      { return m.Labels }
func annotationKeys(m body.Manager) []string { return m.Annotations }

// ownedAlone returns the keys that only the manager of the change owns.
func (c *metadataChange) ownedAlone(managers []body.Manager, keys func(body.Manager) []string) map[string]bool {
	at := slices.IndexFunc(managers, func(m body.Manager) bool { return c.manager != "" && m.Name == c.manager })
	if at < 0 {
		return nil
	}
	out := map[string]bool{}
	for _, key := range keys(managers[at]) {
		out[key] = true
	}
	for i, m := range managers {
		if i != at {
			for _, key := range keys(m) {
				delete(out, key)
			}
		}
	}
	return out
}

// managers returns the managers after the change, with the keys that they own. A removed key has no owner. A key also
// loses its owners if a request other than an apply changes its value.
func (c *metadataChange) managers(old, next body.Metadata) (out []body.Manager) {
	stay := func(keys []string, was, now map[string]string) []string {
		return slices.DeleteFunc(slices.Clone(keys), func(key string) bool {
			value, ok := now[key]
			return !ok || c.manager == "" && value != was[key]
		})
	}
	for _, m := range old.Managers {
		if m.Name == c.manager {
			continue
		}
		m.Labels = stay(m.Labels, old.Labels, next.Labels)
		m.Annotations = stay(m.Annotations, old.Annotations, next.Annotations)
		if len(m.Labels)+len(m.Annotations) > 0 {
			out = append(out, m)
		}
	}
	if c.manager != "" && len(c.labels.set)+len(c.annotations.set) > 0 {
		out = append(out, body.Manager{
			Name:        c.manager,
			Labels:      slices.Sorted(maps.Keys(c.labels.set)),
			Annotations: slices.Sorted(maps.Keys(c.annotations.set)),
		})
	}
	slices.SortFunc(out, func(a, b body.Manager) int { return cmp.Compare(a.Name, b.Name) })
	return out
}
