package transport_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/graph/transport"
)

const namedQuery = "{ kinds { name } }"

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func automatic(hash string) map[string]any {
	return map[string]any{"persistedQuery": map[string]any{"version": json.Number("1"), "sha256Hash": hash}}
}

func openNamed(t testing.TB, cfg transport.NamedDocumentsConfig) *transport.NamedDocuments {
	t.Helper()
	s, err := transport.OpenNamedDocuments(cfg)
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
func resolve(s *transport.NamedDocuments, r transport.Request) string {
	out, err := s.Resolve(&r)
	if err != nil {
		return fmt.Sprint(err.Extensions["code"], ": ", err.Message)
	}
	return out.Query
}

func TestNamed_ClientsRegisterDocumentsByTheirHash(t *testing.T) {
	s := openNamed(t, transport.NamedDocumentsConfig{})
	byHash := transport.Request{Extensions: automatic(hash(namedQuery))}
	if got := resolve(s, byHash); got != "PERSISTED_QUERY_NOT_FOUND: PersistedQueryNotFound" {
		t.Errorf("before: %s", got)
	}
	r, err := s.Resolve(&transport.Request{Query: namedQuery, Extensions: automatic(hash(namedQuery))})
	if err != nil {
		t.Fatal(err)
	}
	if got := resolve(s, byHash); !strings.HasPrefix(got, "PERSISTED_QUERY_NOT_FOUND") {
		t.Errorf("registered before it proved to be valid: %s", got)
	}
	s.Remember(r)
	if got := resolve(s, byHash); got != namedQuery {
		t.Errorf("after: %s", got)
	}
	if got := resolve(s, transport.Request{DocumentID: "sha256:" + hash(namedQuery)}); got != namedQuery {
		t.Errorf("by document id: %s", got)
	}
}

func TestNamed_WhatDoesNotNameADocumentIsRefused(t *testing.T) {
	s := openNamed(t, transport.NamedDocumentsConfig{})
	for _, c := range []struct {
		r    transport.Request
		want string
	}{
		{transport.Request{}, "neither a query nor a documentId"},
		{transport.Request{Query: namedQuery, Extensions: automatic(hash("{ other }"))}, "not that of the query"},
		{transport.Request{Extensions: automatic("abc")}, "64 hexadecimal digits"},
		{transport.Request{Extensions: map[string]any{"persistedQuery": "x"}}, "64 hexadecimal digits"},
		{transport.Request{DocumentID: "md5:abc"}, "sha256:<hex>"},
		{transport.Request{DocumentID: "unknown"}, "PERSISTED_QUERY_NOT_FOUND"},
	} {
		if got := resolve(s, c.r); !strings.Contains(got, c.want) {
			t.Errorf("%+v: %s", c.r, got)
		}
	}
}

func TestNamed_LargeDocumentsAreExecutedAndForgotten(t *testing.T) {
	s := openNamed(t, transport.NamedDocumentsConfig{})
	large := namedQuery + strings.Repeat(" ", 32<<10)
	r, err := s.Resolve(&transport.Request{Query: large, Extensions: automatic(hash(large))})
	if err != nil || r.Query != large {
		t.Fatal(r, err)
	}
	s.Remember(r)
	if got := resolve(s, transport.Request{Extensions: automatic(hash(large))}); got == large {
		t.Error("it was registered")
	}
}

func TestNamed_TheLeastRecentlyUsedDocumentGoes(t *testing.T) {
	const most = 1000
	s := openNamed(t, transport.NamedDocumentsConfig{})
	for i := range most + 1 {
		q := fmt.Sprintf("{ a%d }", i)
		r, err := s.Resolve(&transport.Request{Query: q, Extensions: automatic(hash(q))})
		if err != nil {
			t.Fatal(err)
		}
		s.Remember(r)
	}
	if got := resolve(s, transport.Request{DocumentID: "sha256:" + hash("{ a0 }")}); !strings.HasPrefix(got, "PERSISTED") {
		t.Error("the oldest is still there")
	}
	if got := resolve(s, transport.Request{DocumentID: "sha256:" + hash("{ a1000 }")}); got != "{ a1000 }" {
		t.Error(got)
	}
}

func TestNamed_ManifestsOfTheCompilersAreTrusted(t *testing.T) {
	for name, text := range map[string]string{
		"Apollo":  `{"format":"apollo-persisted-query-manifest","version":1,"operations":[{"id":"app/1","name":"Q","type":"query","body":"` + namedQuery + `"}]}`,
		"Relay":   `{"app/1": "` + namedQuery + `"}`,
		"codegen": `{"app/1": "` + namedQuery + `", "sha256:` + hash(namedQuery) + `": "` + namedQuery + `"}`,
	} {
		t.Run(name, func(t *testing.T) {
			s := openNamed(t, transport.NamedDocumentsConfig{Trusted: []string{manifest(t, text)}, TrustedOnly: true})
			for _, r := range []transport.Request{
				{DocumentID: "app/1"}, {DocumentID: "sha256:" + hash(namedQuery)}, {Extensions: automatic(hash(namedQuery))}, {Query: namedQuery},
			} {
				if got := resolve(s, r); got != namedQuery {
					t.Errorf("%+v: %s", r, got)
				}
			}
			if got := resolve(s, transport.Request{Query: "{ other }"}); !strings.HasPrefix(got, "FORBIDDEN") {
				t.Errorf("another document: %s", got)
			}
			r, err := s.Resolve(&transport.Request{Query: namedQuery, Extensions: automatic(hash(namedQuery))})
			if err != nil || r != (transport.ResolvedDocument{Query: namedQuery}) {
				t.Errorf("registering while only trusted documents count: %+v %v", r, err)
			}
		})
	}
}

func TestNamed_ManifestsThatCannotBeReadAreRefusedAtStart(t *testing.T) {
	for text, want := range map[string]string{
		`[]`:                 "not a JSON object",
		`{"operations": []}`: "has the format",
		`{"a": 1}`:           "not the text of a document",
		`{"format":"apollo-persisted-query-manifest","version":1,"operations":[{"id":"a","body":"{ a }"},{"id":"a","body":"{ b }"}]}`: "the id of another",
		`{"format":"apollo-persisted-query-manifest","version":1,"operations":[{"id":"a"}]}`:                                          "operations[0]",
	} {
		path := manifest(t, text)
		if _, err := transport.OpenNamedDocuments(transport.NamedDocumentsConfig{Trusted: []string{path}}); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", text, err)
		}
	}
	a, b := manifest(t, `{"x": "{ a }"}`), manifest(t, `{"x": "{ b }"}`)
	if _, err := transport.OpenNamedDocuments(transport.NamedDocumentsConfig{Trusted: []string{a, b}}); err == nil || !strings.Contains(err.Error(), "another document") {
		t.Errorf("two documents of one id: %v", err)
	}
	if _, err := transport.OpenNamedDocuments(transport.NamedDocumentsConfig{TrustedOnly: true}); err == nil || !strings.Contains(err.Error(), "trusted-only") {
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
		_, _ = transport.OpenNamedDocuments(transport.NamedDocumentsConfig{Trusted: []string{path}})
	})
}

func TestNamed_DocumentsThatAProgramTrustsAreTrustedBesideThoseOfManifests(t *testing.T) {
	const own = "{ kinds { plural } }"
	s := openNamed(t, transport.NamedDocumentsConfig{Trusted: []string{manifest(t, `{"a": "`+namedQuery+`"}`)}, TrustedOnly: true})
	with := s.With([]string{own})
	for _, r := range []transport.Request{{Query: own}, {DocumentID: "sha256:" + hash(own)}} {
		if got := resolve(with, r); got != own {
			t.Errorf("%+v: %s", r, got)
		}
		if got := resolve(s, r); !strings.HasPrefix(got, "FORBIDDEN") {
			t.Errorf("the store that it was made of trusts it too: %s", got)
		}
	}
	if got := resolve(with, transport.Request{Query: namedQuery}); got != namedQuery {
		t.Errorf("that of the manifest: %s", got)
	}
	if got := resolve(with, transport.Request{Query: "{ kinds { scope } }"}); !strings.HasPrefix(got, "FORBIDDEN") {
		t.Errorf("any other: %s", got)
	}
}
