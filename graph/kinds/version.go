package kinds

import (
	"cmp"
	"regexp"
	"strconv"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/sluicegw/sluice/backend/descriptor"
)

// apiVersionForm is a version of the API: major and minor.
var apiVersionForm = regexp.MustCompile(`^[1-9][0-9]{0,5}\.(0|[1-9][0-9]{0,5})$`)

// versions reads @since and @until.
func (l *loader) versions(out *descriptor.Field, f *ast.FieldDefinition, where string, p part) {
	out.Since, out.Until = l.apiVersion(f, "since", where), l.apiVersion(f, "until", where)
	if out.Since != "" && out.Until != "" && compareVersions(out.Since, out.Until) >= 0 {
		l.report(f.Position, "%s: since %s and until %s leave no version that has the field", where, out.Since, out.Until)
	}
	if p == inSpec && out.Required && (out.Until != "" || out.Since != "" && !strings.HasSuffix(out.Since, ".0")) {
		l.report(f.Position, "%s: within a major version no field becomes required, and none that is goes away", where)
	}
}

func (l *loader) apiVersion(f *ast.FieldDefinition, name, where string) string {
	d := l.read(f.Directives, name)
	if d == nil {
		return ""
	}
	v := d.text("version")
	if !apiVersionForm.MatchString(v) {
		l.report(d.at("version"), "%s: @%s: version %q; a version of the API like 1.2 is wanted", where, name, v)
		return ""
	}
	return v
}

// compareVersions orders versions by their numbers: 1.10 is after 1.2.
func compareVersions(a, b string) int {
	number := func(s string) int {
		n, _ := strconv.Atoi(s) // the form is checked
		return n
	}
	a1, a2, _ := strings.Cut(a, ".")
	b1, b2, _ := strings.Cut(b, ".")
	return cmp.Or(cmp.Compare(number(a1), number(b1)), cmp.Compare(number(a2), number(b2)))
}
