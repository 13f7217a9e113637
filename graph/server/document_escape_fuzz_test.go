package server_test

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/lexer"

	"github.com/sluicegw/sluice/graph/server"
)

var (
	surrogate   = regexp.MustCompile(`\\u[dD][89a-fA-F]`)
	replacement = regexp.MustCompile(`\x{FFFD}|\\u(?i:fffd|\{0*fffd\})`)
)

// FuzzSurrogates looks for halves of surrogate pairs that the parser would replace.
func FuzzSurrogates(f *testing.F) {
	for _, s := range []string{
		`{ a(b: "\ud83d\ude00") }`, `{ a(b: "\ud83d") }`, `{ a(b: """\ud83d \""" """) } # "\ud83d`, "{ a(b: \"\\\\ud83d\") }\n", `"\u`, `"""`, `"\`, `#\ud83d`,
		`"\ude00\ud83d"`, "\"\ufffd\" \"\\ud83d\\ude00\"", "\ufeff\"\u00e4\\ud83d\"", `"\u{d83d}"`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, document string) {
		if !utf8.ValidString(document) {
			return // it is no request
		}
		half := server.HasHalf(document)
		if half && !surrogate.MatchString(document) {
			t.Fatalf("%q is refused", document)
		}
		if half || replacement.MatchString(document) {
			return
		}
		l := lexer.New(&ast.Source{Input: document})
		for {
			token, err := l.ReadToken()
			if err != nil || token.Kind == lexer.EOF {
				return
			}
			if token.Kind == lexer.String && strings.ContainsRune(token.Value, utf8.RuneError) {
				t.Fatalf("%q of %q has half a character", token.Value, document)
			}
		}
	})
}
