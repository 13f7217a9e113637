package query_test

import (
	"slices"
	"testing"
	"time"

	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/query"
	"github.com/sluicegw/sluice/backend/service/servicetest"
)

// TestList_FindsWhatWaits: resources that wait for others, and deletions that wait for referrers, in memory and from
// the store.
func TestList_FindsWhatWaits(t *testing.T) {
	for how, indexMemory := range map[string]int64{"store": -1, "memory": 0} {
		t.Run(how, func(t *testing.T) {
			store := servicetest.OpenMemory(t)
			svc, err := service.New(service.Config{Kinds: servicetest.Building(), Store: store, IndexMemory: indexMemory})
			if err != nil {
				t.Fatal(err)
			}
			f := &fixture{&servicetest.Fixture{Service: svc, T: t, Store: store}}
			f.ServeIndexed()
			for _, r := range []struct {
				of, name string
				spec     map[string]any
			}{
				{"Room", "r", map[string]any{}},
				{"Door", "bound", map[string]any{"roomRef": "r"}},
				{"Door", "waits", map[string]any{"roomRef": "gone"}},
			} {
				req := service.CreateRequest{Identity: kind.Identity{Kind: r.of, Name: r.name}, Spec: r.spec}
				if _, err := f.Writer.Create(t.Context(), req); err != nil {
					t.Fatal(err)
				}
			}
			out, err := f.Writer.Delete(t.Context(), service.DeleteRequest{Identity: kind.Identity{Kind: "Room", Name: "r"}})
			if err != nil || out.Deletion != service.Pending {
				t.Fatal(out, err)
			}
			is := func(null bool) map[string]any {
				return map[string]any{"deletionRequestedAt": map[string]any{"isNull": null}}
			}
			waiting := map[string]any{"conditions": []any{map[string]any{"type": "Progressing", "reason": map[string]any{"eq": "Waiting"}}}}
			since := map[string]any{"deletionRequestedAt": map[string]any{"gte": time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)}}
			before := map[string]any{"deletionRequestedAt": map[string]any{"lt": time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)}}
			for _, c := range []struct {
				of     string
				filter map[string]any
				want   []string
			}{
				{"Door", waiting, []string{"waits"}},
				{"Room", waiting, nil},
				{"Guest", waiting, nil}, // it has no conditions
				{"Room", is(false), []string{"r"}},
				{"Room", is(true), nil},
				{"Door", is(true), []string{"bound", "waits"}},
				{"Room", since, []string{"r"}},
				{"Room", before, nil},
			} {
				p, err := f.Reader.List(t.Context(), query.ListRequest{Kind: c.of, Filter: c.filter})
				if err != nil {
					t.Fatal(c.of, c.filter, err)
				}
				if got := servicetest.PageNames(p); !slices.Equal(got, c.want) {
					t.Errorf("%s %v: %q, want %q", c.of, c.filter, got, c.want)
				}
			}
			if oldest := f.OldestDeletion(); oldest.IsZero() != (indexMemory < 0) {
				t.Errorf("the oldest deletion was requested at %v", oldest)
			}
			inMemory := min(int(indexMemory)+1, 1)
			now := f.Now()
			if n, hour := f.DeletionsBefore(now.Add(time.Second)), f.DeletionsBefore(now.Add(-time.Hour)); n != inMemory || hour != 0 {
				t.Errorf("%d deletions wait, %d of them for an hour", n, hour)
			}
			n, oldest := f.Waiting()
			if n != inMemory || oldest.IsZero() != (indexMemory < 0) || oldest.After(now) {
				t.Errorf("%d resources wait, since %v", n, oldest)
			}
		})
	}
}
