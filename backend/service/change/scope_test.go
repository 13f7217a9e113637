package change_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/memory"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/change"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/query/filter"
	"github.com/sluicegw/sluice/backend/service/servicetest"
)

// Two gateways write, one with a catalogue that knows fewer fields and other indexes. What a
// filtered stream tells of the log is compared with the states that the writes left.
func TestScope_AResumedStreamTellsWhatEnteredAndLeftWhoeverWrote(t *testing.T) {
	older := servicetest.Widget()
	older.FilterableFields = []descriptor.FilterableField{{Path: "spec.heavy"}}
	older.Spec.Fields = slices.DeleteFunc(older.Spec.Fields, func(f descriptor.Field) bool { return f.Name == "tags" || f.Name == "ratio" })
	older.Spec.Rules = nil
	for seed := range uint64(20) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		store, err := memory.Open(memory.Config{})
		if err != nil {
			t.Fatal(err)
		}
		var writers []*servicetest.Fixture
		for _, k := range []descriptor.Kind{servicetest.Widget(), older} {
			s, err := service.New(service.Config{Kinds: []descriptor.Kind{k}, Store: store})
			if err != nil {
				t.Fatal(err)
			}
			writers = append(writers, &servicetest.Fixture{Service: s, T: t, Store: store})
		}
		f := writers[0]
		kinds, err := kind.Compile([]descriptor.Kind{servicetest.Widget()})
		if err != nil {
			t.Fatal(err)
		}
		begin := f.LogPosition()
		log := writeAtRandom(f, rnd, writers, 150)
		middle := log[len(log)/2].at.UpdatedAt.UTC().Format(time.RFC3339Nano)
		for _, wanted := range []map[string]any{
			{"spec": map[string]any{"weight": map[string]any{"lt": 200}}},
			{"spec": map[string]any{"tags": map[string]any{"hasAny": []any{"x"}}}},
			{"spec": map[string]any{"title": map[string]any{"eq": "B"}}},
			{"not": map[string]any{"spec": map[string]any{"title": map[string]any{"eq": "A"}}}},
			{"updatedAt": map[string]any{"lt": middle}},
			{"labels": []any{map[string]any{"key": "k", "eq": "1"}}},
		} {
			matcher, err := filter.Parse(kinds.All()[0], wanted, failure.StoredNames)
			if err != nil {
				t.Fatal(err)
			}
			keeps := func(r *backend.Resource) bool {
				b, err := kinds.All()[0].Body.Read(r)
				return err == nil && matcher.Match(filter.Of(kinds.All()[0], b))
			}
			var want []string
			for _, w := range log {
				before, after := w.before != nil && keeps(w.before), w.after != nil && keeps(w.after)
				typ := change.Modified
				switch {
				case w.unknown && after:
				case w.unknown, before && !after:
					typ = change.Deleted
				case after && !before:
					typ = change.Added
				case !after:
					continue
				}
				want = append(want, fmt.Sprintln(typ, w.at.Name, w.revision))
			}
			stream := f.StartChanges(change.Request{Kinds: []string{"Widget"}, Filter: wanted, After: &begin})
			var got []string
			for synced := false; !synced; {
				for _, c := range servicetest.Take(t, stream, 1) {
					if synced = c.Type == change.InSync; !synced {
						got = append(got, fmt.Sprintln(c.Type, c.Stored.Name, c.Revision))
					}
				}
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Fatalf("seed %d, filter %v (-want +got):\n%s", seed, wanted, d)
			}
		}
		_ = store.Close()
	}
}

// written is a write: the states that it found and left, nil for none.
type written struct {
	before, after, at *backend.Resource
	revision          string
	// unknown: the log does not tell the state before.
	unknown bool
}

// writeAtRandom makes random writes through one of the writers each, or as one that tells nothing of
// the state before.
func writeAtRandom(f *servicetest.Fixture, rnd *rand.Rand, writers []*servicetest.Fixture, n int) (log []written) {
	f.T.Helper()
	for len(log) < n {
		w := writers[rnd.IntN(len(writers))]
		name := fmt.Sprint("w", rnd.IntN(6))
		before := f.Stored(name)
		spec := map[string]any{"title": string('A' + rune(rnd.IntN(3))), "weight": 100 + 50*rnd.IntN(5)}
		if w == writers[0] {
			spec["tags"] = [][]any{{"x"}, {"y"}, {}}[rnd.IntN(3)]
		}
		one := written{before: before, at: before}
		var err error
		var out *service.Written
		labels := service.Metadata{Labels: service.Optional[[]service.Label]{Set: true, Value: []service.Label{{Key: "k", Value: fmt.Sprint(rnd.IntN(2))}}}}
		switch rnd.IntN(7) {
		case 0:
			if before == nil {
				continue
			}
			if _, err = w.Writer.Delete(f.T.Context(), service.DeleteRequest{Identity: servicetest.Named(name)}); err == nil {
				at, failed := f.Store.Position(f.T.Context())
				if failed != nil {
					f.T.Fatal(failed)
				}
				one.revision = at.Shard(0).String()
			}
		case 1:
			if before == nil {
				continue
			}
			one.unknown = true
			f.Rewrite(name, true, func(body map[string]any) {
				body["spec"].(map[string]any)["weight"] = 100 + 50*rnd.IntN(5)
			})
		case 2:
			if before == nil {
				continue
			}
			out, err = w.Writer.UpdateStatus(f.T.Context(), service.StatusRequest{Identity: servicetest.Named(name), ExpectedRevision: before.Revision.String(), Status: map[string]any{"id": fmt.Sprint(rnd.IntN(3))}})
		case 3:
			if before == nil {
				continue
			}
			out, err = w.Writer.Patch(f.T.Context(), service.PatchRequest{Identity: servicetest.Named(name), ExpectedRevision: before.Revision.String(), MetadataPatch: servicetest.Labelled("k", labels.Labels.Value[0].Value)})
		default:
			out, err = w.Writer.Upsert(f.T.Context(), service.UpsertRequest{Identity: servicetest.Named(name), Metadata: labels, Spec: spec})
		}
		var refused *failure.Error
		if errors.As(err, &refused) && refused.Code == failure.CodeValidationFailed {
			continue
		}
		if err != nil {
			f.T.Fatal(err)
		}
		if out != nil && out.Outcome == service.Unchanged {
			continue
		}
		if one.after = f.Stored(name); one.after != nil {
			one.at, one.revision = one.after, one.after.Revision.String()
		}
		log = append(log, one)
	}
	return log
}
