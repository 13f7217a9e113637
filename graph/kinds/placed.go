package kinds

import (
	"slices"
	"strings"
)

// manifestKeys returns the top-level keys that all manifests can have.
func manifestKeys() []string {
	return []string{"apiVersion", "version", "kind", "subKind", "metadata", "spec", "status"}
}

// placed checks @manifest, which places a field of a spec at the top of manifests.
func (l *loader) placed(kinds []Kind) {
	for i := range kinds {
		seen := names{}
		l.places(&kinds[i], kinds[i].Spec, &place{path: "spec"}, func(p *place) {
			d := l.read(p.ast.Directives, "manifest")
			if d == nil {
				return
			}
			where, at := p.owner.Name+"."+p.ast.Name, d.text("at")
			switch {
			case strings.Count(p.path, ".") > 1:
				l.report(d.Position, "%s: @manifest is for what stands directly in a spec; %s of kind %s does not", where, p.path, p.kind.Name)
			case !pluralForm.MatchString(at) || len(at) > maxKindName:
				l.report(d.at("at"), "%s: at %q: at most %d letters and digits that begin with a lower case letter are wanted", where, at, maxKindName)
			case slices.Contains(manifestKeys(), at):
				l.report(d.at("at"), "%s: at %q: every manifest has a key of that name", where, at)
			default:
				if other := seen.add(at, p.path); other != "" {
					l.report(d.at("at"), "%s: at %q: %s stands there too", where, at, other)
				}
			}
		})
	}
}
