package server_test

import (
	"regexp"
	"testing"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"

	"github.com/sluicegw/sluice/graph/server"
)

var surrogate = regexp.MustCompile(`\\u[dD][89a-fA-F]`)

// FuzzSurrogates looks at what joining pairs of escapes leaves of a document.
func FuzzSurrogates(f *testing.F) {
	for _, s := range []string{
		`{ a(b: "\ud83d\ude00") }`, `{ a(b: "\ud83d") }`, `{ a(b: """\ud83d \""" """) } # "\ud83d`, "{ a(b: \"\\\\ud83d\") }\n", `"\u`, `"""`, `"\`, `#\ud83d`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, document string) {
		joined, ok := server.JoinSurrogates(document)
		if !surrogate.MatchString(document) && (!ok || joined != document) {
			t.Fatalf("%q became %q, %v", document, joined, ok)
		}
		if !ok {
			return
		}
		_, before := parser.ParseQuery(&ast.Source{Input: document})
		_, after := parser.ParseQuery(&ast.Source{Input: joined})
		if (before == nil) != (after == nil) {
			t.Fatalf("%q parsed with %v, %q with %v", document, before, joined, after)
		}
		if again, ok := server.JoinSurrogates(joined); !ok || again != joined {
			t.Fatalf("%q became %q", joined, again)
		}
	})
}
