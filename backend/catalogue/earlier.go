package catalogue

import (
	"context"
	"slices"
)

// earlierBreaking returns the breaking changes compared to catalogues that were accepted before the newest one. They
// matter because the newest catalogue may lack a kind or field whose values are still stored.
func (g Gate) earlierBreaking(ctx context.Context, hashes []string, newest, to Outline) ([]Difference, error) {
	var out []Difference
	for _, hash := range hashes[:max(len(hashes)-1, 0)] {
		earlier, err := g.outline(ctx, hash)
		if err != nil {
			return nil, err
		}
		for _, c := range Breaking(Diff(earlier, to)) {
			// These changes are reported by uncovered, or by the comparison with newest, or when the field was removed.
			if c.shown || newest.has(c.Kind, c.Path) || !to.has(c.Kind, c.Path) {
				continue
			}
			if earlier.has(c.Kind, c.Path) {
				c.What = "was in an earlier catalogue: it " + c.What
			}
			if !slices.Contains(out, c) {
				out = append(out, c)
			}
		}
	}
	return out, nil
}

// has reports whether the outline has a kind, and the field at a path of it unless the path is empty.
func (o Outline) has(kind, path string) bool {
	k, ok := o.Kinds[kind]
	if ok && path != "" {
		_, ok = k.Fields[path]
	}
	return ok
}
