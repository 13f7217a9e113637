package server_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
)

// TestVersion_KeptAnswersAreOfOneVersion asks the same document of a version and of the newest API in turns. The answer
// of one has what the other cannot name, and both are kept.
func TestVersion_KeptAnswersAreOfOneVersion(t *testing.T) {
	v := newVersioned(t)
	for i := range 60 {
		v.newest(fmt.Sprintf(`mutation { createThing(input: {name: "t-%d", spec: {price: %d, hiddenText: "hidden-text"}}) { thing { id } } }`, i, i%50))
	}
	const query = `{ things(first: 60) { totalCount nodes { id metadata { name revision } specJSON } } }`
	for round := range 5 {
		newest := v.newest(query)
		old := v.ask(v.newer, "/v1.0/graphql", query).Body.String()
		if n := strings.Count(newest, "hidden-text"); n != 60 {
			t.Fatalf("round %d: the newest API shows %d values: %.200s", round, n, newest)
		}
		if strings.Contains(old, "hidden") || !strings.Contains(old, `"totalCount":60`) {
			t.Fatalf("round %d: the version is answered %.300s", round, old)
		}
	}
}

// get sends a query to a path by GET. tag is the entity tag of an answer that the client has; "" for none.
func (v *versioned) get(path, query, tag string) *httptest.ResponseRecorder {
	v.Helper()
	r := httptest.NewRequest(http.MethodGet, path+"?query="+url.QueryEscape(query), nil)
	r.Host = "localhost"
	r.RemoteAddr = "127.0.0.1:1"
	r.Header.Set("Accept", "application/json")
	v.identify(r.Header)
	if tag != "" {
		r.Header.Set("If-None-Match", tag)
	}
	w := httptest.NewRecorder()
	v.newer.ServeHTTP(w, r)
	return w
}

// TestVersion_EntityTagsAreOfOneVersion gives the entity tag of an answer of the newest API to a version, and the other way
// round.
func TestVersion_EntityTagsAreOfOneVersion(t *testing.T) {
	v := newVersioned(t)
	v.newest(`mutation { createThing(input: {name: "a", spec: {price: 1, hiddenText: "hidden-text"}}) { thing { id } } }`)
	const query = `{ things { nodes { metadata { name } specJSON } } }`
	const newest, old = "/graphql", "/v1.0/graphql"
	tags := func() (ofNewest, ofOld string) {
		t.Helper()
		for range 3 { // executed, and kept
			first := v.get(newest, query, "")
			second := v.get(old, query, "")
			ofNewest = first.Header().Get("ETag")
			ofOld = second.Header().Get("ETag")
			if ofNewest == "" || ofOld == "" || ofNewest == ofOld || strings.Contains(second.Body.String(), "hidden") {
				t.Fatalf("%s and %s: %s", ofNewest, ofOld, second.Body)
			}
			for _, one := range []struct {
				path, tag string
				code      int
			}{
				{newest, ofNewest, http.StatusNotModified}, {old, ofOld, http.StatusNotModified},
				{newest, ofOld, http.StatusOK}, {old, ofNewest, http.StatusOK},
			} {
				if got := v.get(one.path, query, one.tag); got.Code != one.code {
					t.Fatalf("%s with %s: %d, want %d", one.path, one.tag, got.Code, one.code)
				}
			}
		}
		return ofNewest, ofOld
	}
	firstNewest, firstOld := tags()
	v.newest(`mutation { upsertThing(input: {name: "a", spec: {price: 1, hiddenText: "hidden-other"}}) { thing { id } } }`)
	secondNewest, secondOld := tags()
	if firstNewest == secondNewest || firstOld != secondOld {
		t.Errorf("after a change of what the version does not have: %s became %s, and %s became %s",
			firstNewest, secondNewest, firstOld, secondOld)
	}
	found := regexp.MustCompile(`"revision":"([^"]+)"`).FindStringSubmatch(v.newest(`{ thing(name: "a") { metadata { revision } } }`))
	if found == nil {
		t.Fatal("there is no revision")
	}
	revision := found[1]
	patch := `mutation { patchThing(input: {name: "a", expectedRevision: "` + revision + `", spec: {price: 2}}) { thing { id } } }`
	if got := v.ask(v.newer, old, patch).Body.String(); strings.Contains(got, `"errors"`) {
		t.Fatal(got)
	}
	if thirdNewest, thirdOld := tags(); thirdNewest == secondNewest || thirdOld == secondOld {
		t.Error("a change of both is not seen in both tags")
	}
}

// registered asks a path for a document that is registered by its hash, as automatic persisted queries do; with its text
// if it is to be registered.
func (v *versioned) registered(path, query string, register bool) string {
	v.Helper()
	hash := sha256.Sum256([]byte(query))
	body := map[string]any{
		"extensions": map[string]any{"persistedQuery": map[string]any{"version": 1, "sha256Hash": hex.EncodeToString(hash[:])}},
	}
	if register {
		body["query"] = query
	}
	raw, err := json.Marshal(body)
	if err != nil {
		v.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodPost, path, bytes.NewReader(raw))
	r.Host = "localhost"
	r.RemoteAddr = "127.0.0.1:1"
	r.Header.Set("Content-Type", "application/json")
	v.identify(r.Header)
	w := httptest.NewRecorder()
	v.newer.ServeHTTP(w, r)
	return w.Body.String()
}

// TestVersion_RegisteredDocumentsAreJudgedByTheVersionThatIsAsked registers documents by one version of the API, and asks
// for them by another one.
func TestVersion_RegisteredDocumentsAreJudgedByTheVersionThatIsAsked(t *testing.T) {
	v := newVersioned(t)
	v.newest(`mutation { createThing(input: {name: "a", spec: {price: 1, hiddenText: "hidden-text"}}) { thing { id } } }`)
	const newest, old, hidden = "/graphql", "/v1.0/graphql", `{ things { nodes { spec { hiddenText } } } }`
	if got := v.registered(old, hidden, true); !strings.Contains(got, "Cannot query field") || strings.Contains(got, "hidden-text") {
		t.Errorf("what the version does not have: %s", got)
	}
	if got := v.registered(newest, hidden, false); !strings.Contains(got, "PERSISTED_QUERY_NOT_FOUND") {
		t.Errorf("a document that was refused is registered: %s", got)
	}
	if got := v.registered(newest, hidden, true); !strings.Contains(got, "hidden-text") {
		t.Errorf("the newest API: %s", got)
	}
	for range 3 {
		if got := v.registered(newest, hidden, false); !strings.Contains(got, "hidden-text") {
			t.Errorf("the newest API, by the hash: %s", got)
		}
		if got := v.registered(old, hidden, false); !strings.Contains(got, "Cannot query field") || strings.Contains(got, "hidden-text") {
			t.Errorf("the version, by the hash of another: %s", got)
		}
	}
	const both = `{ things { nodes { specJSON } } }`
	if got := v.registered(old, both, true); strings.Contains(got, "hidden") || !strings.Contains(got, `"price":1`) {
		t.Errorf("the version: %s", got)
	}
	for range 3 {
		if got := v.registered(newest, both, false); !strings.Contains(got, "hidden-text") {
			t.Errorf("the newest API, by the hash of a version: %s", got)
		}
		if got := v.registered(old, both, false); strings.Contains(got, "hidden") || !strings.Contains(got, `"price":1`) {
			t.Errorf("the version, by its hash: %s", got)
		}
	}
}
