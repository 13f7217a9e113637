package service

import (
	"slices"

	"github.com/sluicegw/sluice/backend"
)

// guards asks, beside the steps of scans, for resources whose rows another
// definition made: in the same call, so from the same state of the store, so that
// what another gateway writes meanwhile never misleads.
type guards struct{ definitions []*definitionOfRows }

// add makes sure that a definition is asked for, if a scan relies on its rows, or
// if the hint says not to: so the hint is taken back.
func (g *guards) add(d *definitionOfRows, relied bool) {
	if (relied || d.stale.Load()) && !slices.Contains(g.definitions, d) {
		g.definitions = append(g.definitions, d)
	}
}

// ranges are empty where all rows are of this gateway's definition.
func (g *guards) ranges() (out []backend.Range) {
	for _, d := range g.definitions {
		for _, r := range d.others() {
			r.Limit = 1
			out = append(out, r)
		}
	}
	return out
}

// note takes the answers and returns the definitions that do not hold for all
// resources of their kinds.
func (g *guards) note(pages []backend.Page) (stale []*definitionOfRows) {
	for i, d := range g.definitions {
		found := len(pages[2*i].Resources)+len(pages[2*i+1].Resources) > 0
		if found {
			stale = append(stale, d)
		}
		d.stale.Store(found)
	}
	return stale
}

// others are the two ranges of the resources with another fingerprint.
func (d *definitionOfRows) others() [2]backend.Range {
	own := backend.AppendStringPrefix(nil, d.fingerprint)
	r := backend.Range{Kind: d.kind, Index: backend.DefinitionIndex}
	below, above := r, r
	below.End, above.Start = own, backend.StringPrefixEnd(own)
	return [2]backend.Range{below, above}
}

// refs are the references of a resource, each once, by its body.
func (d *definitionOfRows) refs(namespace string, root map[string]any) []backend.Ref {
	var out []backend.Ref
	seen := map[backend.Key]bool{}
	for _, r := range d.references {
		d.index(r.Path).walk(root, 0, func(v any) {
			name, _ := v.(string)
			key := backend.Key{Kind: r.Kind, Namespace: namespace, Name: name}
			if name == "" || len(name) > maxIndexBytes/2 || seen[key] || len(out) == backend.MaxRefs {
				return
			}
			seen[key] = true
			out = append(out, backend.Ref{Key: key})
		})
	}
	return out
}
