package client_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicegw/sluice/graph/client"
)

// sent is what a client sends.
type sent struct {
	Query     string
	Variables map[string]any
}

// recorder is a gateway that notes what it is sent and answers nothing.
func recorder(t *testing.T, out *[]sent, data string) *client.Client {
	t.Helper()
	return serve(t, func(w http.ResponseWriter, r *http.Request) {
		raw, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		var s sent
		if err := json.Unmarshal(raw, &s); err != nil {
			t.Error(err)
		}
		*out = append(*out, s)
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"data":%s}`, data)
	})
}

func TestDocument_WhateverIsAskedTheDocumentsAreThoseThatAreListed(t *testing.T) {
	kinds := []client.Kind{
		{Name: "Network", Singular: "network", Plural: "networks", Scope: "NAMESPACED"},
		{Name: "Shelf", Singular: "shelf", Plural: "shelves", Scope: "GLOBAL", Verbs: []string{"GET", "LIST", "DELETE"}},
	}
	var all []sent
	c := recorder(t, &all, `{"list":{"nodes":[]}}`)
	ctx := context.Background()
	drain := func(req client.ListRequest) {
		for _, err := range c.List(ctx, req) {
			if err != nil {
				t.Error(err)
			}
		}
	}
	for _, k := range kinds {
		drain(client.ListRequest{Kind: k})
		drain(client.ListRequest{Kind: k, Namespace: "a", Format: client.YAML})
		drain(client.ListRequest{Kind: k, NamesOnly: true, Selector: []client.LabelTest{{Key: "a", Operator: client.LabelExists}}, Filter: map[string]any{"name": map[string]any{"eq": "x"}}})
		for _, format := range []client.Format{"", client.JSON} {
			if _, err := c.Get(ctx, k, "a", "x", format); err != nil {
				t.Error(err)
			}
		}
		if _, err := c.Delete(ctx, client.DeleteRequest{Kind: k, Name: "x", ExpectedRevision: "r"}); err != nil {
			t.Error(err)
		}
		if _, err := c.PatchMetadata(ctx, client.MetadataPatch{Kind: k, Name: "x"}); err != nil && k.Offers("PATCH") {
			t.Error(err)
		}
		if _, err := c.UpdateStatus(ctx, client.StatusRequest{Kind: k, Name: "x"}); err != nil && k.Offers("STATUS") {
			t.Error(err)
		}
	}
	if _, err := c.Kinds(ctx); err != nil {
		t.Error(err)
	}
	if _, err := c.DescribedKinds(ctx); err != nil {
		t.Error(err)
	}
	if _, err := c.Tree(ctx, client.TreeRequest{ID: "id"}); err != nil {
		t.Error(err)
	}
	if _, err := c.Position(ctx, kinds[0], "a"); err != nil {
		t.Error(err)
	}
	if _, err := c.ControlKind(ctx, "Network", true); err != nil {
		t.Error(err)
	}
	if _, err := c.Apply(ctx, client.ApplyRequest{Manifest: "a", DryRun: true}); err != nil {
		t.Error(err)
	}
	target := client.AccessTarget{Kind: "Network", Name: "a"}
	if _, err := c.Access(ctx, target); err != nil {
		t.Error(err)
	}
	if _, err := c.AccessGrants(ctx, "GET", target); err != nil {
		t.Error(err)
	}
	if _, err := c.Allowed(ctx); err != nil {
		t.Error(err)
	}
	known := client.Documents(kinds)
	for _, s := range all {
		if !slices.Contains(known, s.Query) {
			t.Errorf("a document that is not listed:\n%s", s.Query)
		}
	}
	want := map[string]any{"and": []any{
		map[string]any{"labels": []any{map[string]any{"key": "a", "isNull": false}}}, map[string]any{"name": map[string]any{"eq": "x"}},
	}}
	if diff := cmp.Diff(want, all[2].Variables["filter"]); diff != "" {
		t.Errorf("selector and filter (-want +got):\n%s", diff)
	}
	if all[0].Variables["filter"] != nil || all[0].Variables["namespace"] != nil || all[1].Variables["namespace"] != "a" {
		t.Errorf("%v %v", all[0].Variables, all[1].Variables)
	}
}

func TestDocument_AResourceComesWhole(t *testing.T) {
	var all []sent
	c := recorder(t, &all, `{"resource":{"id":"i","kind":"Shelf","subKind":"tall","metadata":{"namespace":null,"name":"a","uid":"u","revision":"7-1","generation":3,
		"createdAt":"2026-02-03T04:05:06Z","updatedAt":"2026-02-03T04:05:07Z","expiresAt":null,"deletionRequestedAt":"2026-02-03T04:05:08Z","finalizers":["x.org/y"],"labels":[{"key":"a","value":"b"}],"annotations":[{"key":"c","value":"d"}],"description":"e"},
		"specJSON":{"width":9007199254740991,"ratio":0.5,"boards":[{"at":1,"tags":["x","y"]},{"at":2},"odd"]},
		"statusJSON":{"conditions":[5,{"type":7},{"type":"Available","status":"True","reason":"R","message":"M","lastTransitionTime":"T"}]}}}`)
	r, err := c.Get(context.Background(), client.Kind{Name: "Shelf", Scope: "GLOBAL"}, "", "a", "")
	if err != nil {
		t.Fatal(err)
	}
	m := r.Metadata
	if r.ID != "i" || r.SubKind != "tall" || m.Namespace != nil || m.UID != "u" || m.Generation != 3 || m.Description != "e" || m.Annotations[0].Value != "d" || m.UpdatedAt.Second() != 7 || m.DeletionRequestedAt.Second() != 8 || m.Finalizers[0] != "x.org/y" {
		t.Errorf("%+v", r)
	}
	want := []client.Condition{{Type: "Available", Status: "True", Reason: "R", Message: "M", LastTransitionTime: "T"}}
	if diff := cmp.Diff(want, r.Conditions()); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
	if r.Condition("Available").Message != "M" || r.Condition("Other") != (client.Condition{}) {
		t.Errorf("%+v", r.Condition("Available"))
	}
	body, err := r.Body()
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string][]any{
		"spec.width": {int64(9007199254740991)}, "spec.ratio": {0.5}, "spec.boards.at": {int64(1), int64(2)}, "spec.boards.tags": {"x", "y"},
		"spec.nothing": nil, "spec.width.more": nil, "nothing": nil, "status.conditions.reason": {"R"},
	} {
		if diff := cmp.Diff(want, client.Value(body, path)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	}
	if all[0].Variables["whole"] != true || all[0].Variables["manifest"] != false {
		t.Errorf("%v", all[0].Variables)
	}
}

func TestDocument_AKindIsFoundByEachOfItsNames(t *testing.T) {
	kinds := []client.Kind{{Name: "FloatingIP", Singular: "floatingIP", Plural: "floatingIPs", ShortNames: []string{"fip"}}}
	for _, name := range []string{"FloatingIP", "floatingip", "FLOATINGIPS", "fip", "FIP"} {
		if _, err := client.FindKind(kinds, name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"", "floating", "fips"} {
		if k, err := client.FindKind(kinds, name); err == nil {
			t.Errorf("%q is %s", name, k.Name)
		}
	}
}
