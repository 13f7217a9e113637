package service_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/servicetest"
)

// A write keeps the bytes of what it does not change, and its log entry tells the state
// before.
func TestUpdate_WhatAWriteKeepsIsWhatItWouldHaveMade(t *testing.T) {
	f := setup(t)
	rnd := rand.New(rand.NewPCG(1, 2))
	begin, err := f.Store.Position(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r := f.CreateWidget("a", `{"title":"A"}`).Resource.Stored
	kept, id := 0, ""
	for step := range 300 {
		revision := r.Revision.String()
		var out *service.Written
		var err error
		switch rnd.IntN(4) {
		case 0:
			conditions := []any{}
			for i := range rnd.IntN(3) {
				conditions = append(conditions, map[string]any{"type": fmt.Sprint("t", i), "status": fmt.Sprint(rnd.IntN(2))})
			}
			id = fmt.Sprint("<id&", rnd.IntN(3))
			status := map[string]any{"id": id, "conditions": conditions, "future": "ü"}
			out, err = f.Writer.UpdateStatus(t.Context(), service.StatusRequest{Identity: servicetest.Named("a"), ExpectedRevision: revision, Status: status})
		case 1:
			out, err = f.UpdateWidget("a", revision, fmt.Sprintf(`{"title":"%c","weight":%d,"tags":["%c"],"ratio":%d.50}`, 'A'+rune(rnd.IntN(3)), 100+rnd.IntN(3), 'a'+rune(rnd.IntN(3)), 1+rnd.IntN(2)))
		case 2:
			out, err = f.patch("a", revision, fmt.Sprintf(`{"weight":null,"tags":["%d","<>"],"parts":[{"slot":"s%d"}]}`, rnd.IntN(2), rnd.IntN(2)))
		default:
			labels := service.Optional[[]service.Label]{Set: true, Value: []service.Label{{Key: "k", Value: fmt.Sprint(rnd.IntN(3))}}}
			out, err = f.Writer.Update(t.Context(), service.UpdateRequest{Identity: servicetest.Named("a"), ExpectedRevision: revision, Metadata: service.Metadata{Labels: labels}, Spec: servicetest.Raw(`{"title":"L"}`)})
		}
		if err != nil {
			t.Fatalf("step %d: %v", step, err)
		}
		r = out.Resource.Stored
		st, err := kind.StateOf(r)
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := st.Status()["id"].(string); got != id {
			t.Fatalf("step %d: status %q, want %q", step, got, id)
		}
		for part, tree := range map[string]map[string]any{"spec": st.Spec, "status": st.Status()} {
			text, err := json.Marshal(tree)
			if err != nil {
				t.Fatal(err)
			}
			if tree != nil && !strings.Contains(string(r.Body), `"`+part+`":`+string(text)) {
				t.Fatalf("step %d: %s %s is not in %s", step, part, text, r.Body)
			}
		}
		if out.Outcome == service.Updated && st.Status() != nil {
			kept++
		}
	}
	if kept < 100 {
		t.Errorf("only %d writes had something to keep", kept)
	}
	f.tellsStatesBefore(begin)
}

// tellsStatesBefore checks that each change after a position tells the state that the one
// before it left.
func (f *fixture) tellsStatesBefore(from backend.Position) {
	f.T.Helper()
	w, err := f.Store.Watch(f.T.Context(), backend.Watch{From: from})
	if err != nil {
		f.T.Fatal(err)
	}
	defer w.Close()
	left := map[backend.Key]*backend.Resource{}
	changes := 0
	for {
		d, err := w.Next(f.T.Context())
		if err != nil {
			f.T.Fatal(err)
		}
		for i := range d.Events {
			e := &d.Events[i]
			was, known := kind.Before(e)
			want := left[e.Resource.Key]
			if e.Type != backend.Modified {
				left[e.Resource.Key] = e.Resource
				continue
			}
			if !known || was.Revision != want.Revision || !was.UpdatedAt.Equal(want.UpdatedAt) || was.Deleting != want.Deleting {
				f.T.Fatalf("%s: %v, want the state of %s", e.Revision, was, want.Revision)
			}
			if d := cmp.Diff(treeOf(f.T, want), treeOf(f.T, was)); d != "" {
				f.T.Fatalf("%s: %s", e.Revision, d)
			}
			changes++
			left[e.Resource.Key] = e.Resource
		}
		if d.CaughtUp {
			break
		}
	}
	if changes == 0 {
		f.T.Error("no change has the state before it")
	}
}

// treeOf is the body of a stored resource.
func treeOf(t testing.TB, r *backend.Resource) (out map[string]any) {
	t.Helper()
	raw, err := backend.DecodeBody(r.Body)
	if err == nil {
		err = json.Unmarshal(raw, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}
