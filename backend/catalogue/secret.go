package catalogue

import (
	"maps"
	"slices"

	"github.com/sluicegw/sluice/backend/descriptor"
)

// uncovered returns a difference for each secret that a catalogue would show, except for those in reported. The newest
// catalogue alone is not enough to find them: the @writeOnly field may have been removed for a while, or an earlier
// catalogue, to which the gateway returns, may be older than the @writeOnly.
func uncovered(secrets map[string][]string, to Outline, reported []Difference) []Difference {
	var out []Difference
	for _, kind := range slices.Sorted(maps.Keys(secrets)) {
		for _, path := range secrets[kind] {
			known := slices.ContainsFunc(
				reported, func(c Difference) bool { return c.shown && c.Kind == kind && c.Path == path },
			)
			if !known && to.Kinds[kind].shows(path) {
				out = append(out, Difference{Kind: kind, Path: path, What: "was @writeOnly in an earlier catalogue and is not: what is stored would be shown", Severity: BreaksStored})
			}
		}
	}
	return out
}

// remember returns the secrets that the record must have after a catalogue was accepted.
func remember(secrets map[string][]string, accepted Outline) map[string][]string {
	out := map[string][]string{}
	for kind, paths := range secrets {
		for _, path := range paths {
			if !accepted.Kinds[kind].shows(path) {
				out[kind] = append(out[kind], path)
			}
		}
	}
	for kind, k := range accepted.Kinds {
		for path, f := range k.Fields {
			if f.WriteOnly && !slices.Contains(out[kind], path) {
				out[kind] = append(out[kind], path)
			}
		}
	}
	for _, paths := range out {
		slices.Sort(paths)
	}
	return out
}

// Hides reports whether the outline has a @writeOnly field that is not @writeOnly in shown.
func (o Outline) Hides(shown Outline) bool {
	for name, k := range o.Kinds {
		for path, f := range k.Fields {
			if f.WriteOnly && shown.Kinds[name].shows(path) {
				return true
			}
		}
	}
	return false
}

// shows reports whether callers can read the stored value at a path.
func (k KindOutline) shows(path string) bool {
	for i := range len(path) + 1 {
		if i < len(path) && path[i] != '.' {
			continue
		}
		switch f, ok := k.Fields[path[:i]]; {
		case !ok || f.WriteOnly:
			return false
		case f.Type != descriptor.TypeObject: // it is shown with everything in it
			return true
		}
	}
	return true
}
