package kindstest

import (
	"fmt"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/graph/kinds"
	"github.com/sluicegw/sluice/schema"
)

// Texts returns the contents of the files of the embedded catalogue, by name.
func Texts(t testing.TB) map[string]string {
	t.Helper()
	texts, err := ReadTexts()
	if err != nil {
		t.Fatal(err)
	}
	return texts
}

// ReadTexts is like [Texts], but returns an error instead of ending a test.
func ReadTexts() (map[string]string, error) {
	v1, err := fs.Sub(schema.Files, "v1")
	if err != nil {
		return nil, err
	}
	return kinds.Files(v1, "schema/v1")
}

var (
	objectHead = regexp.MustCompile(`(?m)^type \w+( [^\n]*)?\{$`)
	enumBody   = regexp.MustCompile(`(?m)^enum \w+ [^}]*\n\}`)
	// shortNames matches the beginning of the list of a kind's short names.
	shortNames = regexp.MustCompile(`shortNames: \["(\w+)"`)
	// description matches the beginning of a description of one line.
	description = regexp.MustCompile(`(?m)^( *)"([A-Z])`)
)

// hiddenKind is a kind that the embedded catalogue does not have.
const hiddenKind = `type Hidden @resource(plural: "hiddens", group: "example.org", version: "v1", scope: NAMESPACED) { spec: HiddenSpec! }
type HiddenSpec {
  networkRef: String @ref(kind: "Network", inverse: "hiddens", guarded: true) @constraint(maxLength: 253)
}
`

// Grown returns the files of a catalogue with additions that break no client of the given catalogue. It adds a kind, a
// field to most object types, a value to each enum, and a short name and a sub-kind to each kind that has short names.
// The names of the additions begin with hidden.
func Grown(texts map[string]string) map[string]string {
	out := map[string]string{"hidden.graphqls": hiddenKind}
	for name, text := range texts {
		text = objectHead.ReplaceAllStringFunc(text, func(head string) string {
			if strings.Contains(head, "@resource") || strings.Contains(head, "Properties") {
				return head
			}
			return head + "\n  hiddenField: Int"
		})
		text = shortNames.ReplaceAllString(text, `subKinds: ["Hidden"]`+"\n    "+`shortNames: ["hidden${1}", "${1}"`)
		out[name] = enumBody.ReplaceAllStringFunc(text, func(body string) string {
			return strings.TrimSuffix(body, "}") + "  HIDDEN_VALUE\n}"
		})
	}
	return out
}

// Reordered returns the same files with other descriptions, and with other names that sort in the reverse order.
func Reordered(texts map[string]string) map[string]string {
	out := map[string]string{}
	names := slices.Sorted(maps.Keys(texts))
	for i, name := range names {
		text := description.ReplaceAllString(texts[name], `${1}"Newer: ${2}`)
		out[fmt.Sprintf("f%03d.graphqls", len(names)-i)] = text
	}
	return out
}
