package document_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/graph/document"
)

const query = "{ kinds { name } }"

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func automatic(hash string) map[string]any {
	return map[string]any{"persistedQuery": map[string]any{"version": json.Number("1"), "sha256Hash": hash}}
}

func open(t testing.TB, cfg document.Config) *document.Store {
	t.Helper()
	s, err := document.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func manifest(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "manifest.json")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// resolve returns the text of a document, or the code and message of the refusal.
func resolve(s *document.Store, r document.Reference) string {
	out, err := s.Resolve(&r)
	if err != nil {
		return fmt.Sprint(err.Extensions["code"], ": ", err.Message)
	}
	return out.Query
}

func TestClientsRegisterDocumentsByTheirHash(t *testing.T) {
	s := open(t, document.Config{})
	byHash := document.Reference{Extensions: automatic(hash(query))}
	if got := resolve(s, byHash); got != "PERSISTED_QUERY_NOT_FOUND: PersistedQueryNotFound" {
		t.Errorf("before: %s", got)
	}
	r, err := s.Resolve(&document.Reference{Query: query, Extensions: automatic(hash(query))})
	if err != nil {
		t.Fatal(err)
	}
	if got := resolve(s, byHash); !strings.HasPrefix(got, "PERSISTED_QUERY_NOT_FOUND") {
		t.Errorf("registered before it proved to be valid: %s", got)
	}
	s.Remember(r)
	if got := resolve(s, byHash); got != query {
		t.Errorf("after: %s", got)
	}
	if got := resolve(s, document.Reference{DocumentID: "sha256:" + hash(query)}); got != query {
		t.Errorf("by document id: %s", got)
	}
}

func TestWhatDoesNotNameADocumentIsRefused(t *testing.T) {
	s := open(t, document.Config{})
	for _, c := range []struct {
		r    document.Reference
		want string
	}{
		{document.Reference{}, "neither a query nor a documentId"},
		{document.Reference{Query: query, Extensions: automatic(hash("{ other }"))}, "not that of the query"},
		{document.Reference{Extensions: automatic("abc")}, "64 hexadecimal digits"},
		{document.Reference{Extensions: map[string]any{"persistedQuery": "x"}}, "64 hexadecimal digits"},
		{document.Reference{DocumentID: "md5:abc"}, "sha256:<hex>"},
		{document.Reference{DocumentID: "unknown"}, "PERSISTED_QUERY_NOT_FOUND"},
	} {
		if got := resolve(s, c.r); !strings.Contains(got, c.want) {
			t.Errorf("%+v: %s", c.r, got)
		}
	}
}

func TestLargeDocumentsAreExecutedAndForgotten(t *testing.T) {
	s := open(t, document.Config{RegisteredBytes: 10})
	r, err := s.Resolve(&document.Reference{Query: query, Extensions: automatic(hash(query))})
	if err != nil || r.Query != query {
		t.Fatal(r, err)
	}
	s.Remember(r)
	if got := resolve(s, document.Reference{Extensions: automatic(hash(query))}); got == query {
		t.Error("it was registered")
	}
}

func TestTheLeastRecentlyUsedDocumentGoes(t *testing.T) {
	s := open(t, document.Config{Registered: 2})
	for _, q := range []string{"{ a }", "{ b }", "{ c }"} {
		r, err := s.Resolve(&document.Reference{Query: q, Extensions: automatic(hash(q))})
		if err != nil {
			t.Fatal(err)
		}
		s.Remember(r)
	}
	if got := resolve(s, document.Reference{DocumentID: "sha256:" + hash("{ a }")}); !strings.HasPrefix(got, "PERSISTED") {
		t.Error("the oldest is still there")
	}
	if got := resolve(s, document.Reference{DocumentID: "sha256:" + hash("{ c }")}); got != "{ c }" {
		t.Error(got)
	}
}

func TestManifestsOfTheCompilersAreTrusted(t *testing.T) {
	for name, text := range map[string]string{
		"Apollo":  `{"format":"apollo-persisted-query-manifest","version":1,"operations":[{"id":"app/1","name":"Q","type":"query","body":"` + query + `"}]}`,
		"Relay":   `{"app/1": "` + query + `"}`,
		"codegen": `{"app/1": "` + query + `", "sha256:` + hash(query) + `": "` + query + `"}`,
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, document.Config{Trusted: []string{manifest(t, text)}, TrustedOnly: true})
			for _, r := range []document.Reference{
				{DocumentID: "app/1"}, {DocumentID: "sha256:" + hash(query)}, {Extensions: automatic(hash(query))}, {Query: query},
			} {
				if got := resolve(s, r); got != query {
					t.Errorf("%+v: %s", r, got)
				}
			}
			if got := resolve(s, document.Reference{Query: "{ other }"}); !strings.HasPrefix(got, "FORBIDDEN") {
				t.Errorf("another document: %s", got)
			}
			r, err := s.Resolve(&document.Reference{Query: query, Extensions: automatic(hash(query))})
			if err != nil || r != (document.Resolved{Query: query}) {
				t.Errorf("registering while only trusted documents count: %+v %v", r, err)
			}
		})
	}
}

func TestManifestsThatCannotBeReadAreRefusedAtStart(t *testing.T) {
	for text, want := range map[string]string{
		`[]`:                 "not a JSON object",
		`{"operations": []}`: "has the format",
		`{"a": 1}`:           "not the text of a document",
		`{"format":"apollo-persisted-query-manifest","version":1,"operations":[{"id":"a","body":"{ a }"},{"id":"a","body":"{ b }"}]}`: "the id of another",
		`{"format":"apollo-persisted-query-manifest","version":1,"operations":[{"id":"a"}]}`:                                          "operations[0]",
	} {
		path := manifest(t, text)
		if _, err := document.Open(document.Config{Trusted: []string{path}}); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", text, err)
		}
	}
	a, b := manifest(t, `{"x": "{ a }"}`), manifest(t, `{"x": "{ b }"}`)
	if _, err := document.Open(document.Config{Trusted: []string{a, b}}); err == nil || !strings.Contains(err.Error(), "another document") {
		t.Errorf("two documents of one id: %v", err)
	}
	if _, err := document.Open(document.Config{TrustedOnly: true, Registered: -1}); err == nil || !strings.Contains(err.Error(), "trusted-only") || !strings.Contains(err.Error(), "registered-documents") {
		t.Errorf("configuration: %v", err)
	}
}

func FuzzManifest(f *testing.F) {
	f.Add([]byte(`{"a": "{ b }"}`))
	f.Add([]byte(`{"format":"apollo-persisted-query-manifest","version":1,"operations":[{"id":"a","body":"{ b }"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "m.json")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		_, _ = document.Open(document.Config{Trusted: []string{path}})
	})
}

func TestDocumentsThatAProgramTrustsAreTrustedBesideThoseOfManifests(t *testing.T) {
	const own = "{ kinds { plural } }"
	s := open(t, document.Config{Trusted: []string{manifest(t, `{"a": "`+query+`"}`)}, TrustedOnly: true})
	with := s.With([]string{own})
	for _, r := range []document.Reference{{Query: own}, {DocumentID: "sha256:" + hash(own)}} {
		if got := resolve(with, r); got != own {
			t.Errorf("%+v: %s", r, got)
		}
		if got := resolve(s, r); !strings.HasPrefix(got, "FORBIDDEN") {
			t.Errorf("the store that it was made of trusts it too: %s", got)
		}
	}
	if got := resolve(with, document.Reference{Query: query}); got != query {
		t.Errorf("that of the manifest: %s", got)
	}
	if got := resolve(with, document.Reference{Query: "{ kinds { scope } }"}); !strings.HasPrefix(got, "FORBIDDEN") {
		t.Errorf("any other: %s", got)
	}
}
