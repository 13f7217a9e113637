package query_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/dependency"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/query"
	"github.com/sluicegw/sluice/backend/service/servicetest"
)

// windows adds to the building a kind that refers to another by several paths, and one
// that nobody may read.
func windows() []descriptor.Kind {
	kinds := servicetest.Building()
	door := kinds[2]
	add := func(name string, hidden bool, refs ...descriptor.Reference) {
		w := door
		w.Name, w.Singular, w.Plural, w.References = name, name+"x", name+"xs", refs
		w.Spec = &descriptor.Shape{Name: name + "Spec"}
		for _, r := range refs {
			f := door.Spec.Fields[1]
			f.Name, f.List = r.Path[len("spec."):], false
			if f.Name == "viewRefs" {
				f.List, f.ListType, f.Constraint.MaxItems = true, descriptor.ListSet, new(100)
			}
			w.Spec.Fields = append(w.Spec.Fields, f)
		}
		if hidden {
			w.Verbs = []descriptor.Verb{descriptor.VerbCreate, descriptor.VerbDelete}
		}
		kinds = append(kinds, w)
	}
	add("Window", false,
		descriptor.Reference{Path: "spec.viewRefs", Kind: "Room", Field: "views"},
		descriptor.Reference{Path: "spec.roomRef", Kind: "Room", Field: "room", Guarded: true},
		descriptor.Reference{Path: "spec.behindRef", Kind: "Room", Field: "behind", Guarded: true})
	add("Alarm", true, descriptor.Reference{Path: "spec.roomRef", Kind: "Room", Field: "room", Guarded: true})
	return kinds
}

// dependencyText describes a dependency in a line.
func dependencyText(key backend.Key, path string, guarded bool, state dependency.State) string {
	return fmt.Sprintf("%s/%s %s %v %s", key.Kind, key.Name, path, guarded, state)
}

// reference is one as the stored trees have it.
type reference struct {
	from, to backend.Key
	path     string
	declared int
	guarded  bool
	state    dependency.State
}

// references are all that the store has, by the trees of what is stored.
func referencesOf(h *servicetest.House) (out []reference) {
	h.T.Helper()
	for _, k := range h.Kinds() {
		page, err := h.Store.Range(h.T.Context(), backend.Range{Kind: k.Name, Limit: backend.MaxLimit})
		if err != nil {
			h.T.Fatal(err)
		}
		for _, r := range page.Resources {
			st, err := kind.StateOf(r)
			if err != nil {
				h.T.Fatal(err)
			}
			for n, d := range k.References {
				var names []any
				switch v := st.Spec[d.Path[len("spec."):]].(type) {
				case []any:
					names = v
				case string:
					names = []any{v}
				}
				for _, name := range names {
					to := backend.Key{Kind: d.Kind, Namespace: "default", Name: name.(string)}
					ref := reference{from: r.Key, to: to, path: d.Path, declared: n, guarded: d.Guarded, state: dependency.Bound}
					target := h.Get(to.Kind, to.Name)
					switch waited := slices.Contains(st.Meta.Waits, to.Kind+"/"+to.Name); {
					case target == nil:
						ref.state = dependency.Missing
					case waited && target.Deleting:
						ref.state = dependency.Deleting
					case waited:
						ref.state = dependency.NotReady
					}
					out = append(out, ref)
				}
			}
		}
	}
	return out
}

// related is what a page of everything should have.
func related(of backend.Key, r query.Relation, refs []reference) (out []string) {
	var list []reference
	for _, ref := range refs {
		switch {
		case ref.from.Kind == "Alarm" && (r != query.BlockedBy || ref.to != of): // which nobody may read
		case r == query.Dependencies && ref.from == of,
			r == query.Dependents && ref.to == of,
			r > query.Dependents && ref.to == of && ref.guarded && ref.state == dependency.Bound && ref.from != of:
			list = append(list, ref)
		}
	}
	slices.SortFunc(list, func(a, b reference) int {
		if r == query.Dependencies {
			return cmp.Or(cmp.Compare(a.declared, b.declared), cmp.Compare(a.to.Name, b.to.Name))
		}
		return cmp.Or(cmp.Compare(a.from.Kind, b.from.Kind), cmp.Compare(a.from.Name, b.from.Name), cmp.Compare(a.path, b.path))
	})
	for _, ref := range list {
		switch r {
		case query.Dependencies:
			out = append(out, dependencyText(ref.to, ref.path, ref.guarded, ref.state))
		default:
			if ref.from.Kind == "Alarm" { // whose references nobody may read
				ref.path = ""
			}
			out = append(out, dependencyText(ref.from, ref.path, ref.guarded, ref.state))
		}
	}
	return slices.Compact(out)
}

// pageOf are the places of a page, as texts.
func pageOf(p *query.Page) (out []string) {
	for i := range p.Edges {
		d := p.Dependencies[i]
		text := dependencyText(d.Key, d.Path, d.Guarded, d.State)
		if there := p.Edges[i].Resource.Stored != nil; there == (d.State == dependency.Missing || d.State == dependency.Unreadable || d.Key.Kind == "Alarm") {
			text += " and its resource does not fit"
		}
		out = append(out, text)
	}
	return out
}

func TestDependencies_PagesAreThoseOfTheStoredReferences(t *testing.T) {
	onEachStore(t, func(t *testing.T, plain *servicetest.House) {
		svc, err := service.New(service.Config{Kinds: windows(), Store: plain.Store, RetryTimeout: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		h := &servicetest.House{Service: svc, T: t, Store: plain.Store}
		rnd := rand.New(rand.NewPCG(rand.Uint64(), 7))
		room := func() string { return fmt.Sprint("r", rnd.IntN(5)) }
		for i := range 3 {
			h.Create("Room", fmt.Sprint("r", i), `{}`)
		}
		h.Create("Guest", "g", `{}`)
		for i := range 12 {
			h.Create("Door", fmt.Sprint("d", i), fmt.Sprintf(`{"roomRef":%q}`, room()))
			spec := map[string]any{"viewRefs": []string{"r4", "r0", "r2"}[rnd.IntN(3):], "roomRef": room()}
			if rnd.IntN(2) == 0 {
				spec["behindRef"] = room()
			}
			raw, _ := json.Marshal(spec)
			h.Create("Window", fmt.Sprint("w", i), string(raw))
			h.Create("Key", fmt.Sprint("k", i), fmt.Sprintf(`{"doorRefs":["d%d","d3","dx"],"guestRef":"g","keyRef":"k%d"}`, 4+rnd.IntN(6), i))
		}
		h.Create("Alarm", "a", `{"roomRef":"r0"}`)
		if got := h.Delete("Room", "r1"); got == service.Pending {
			h.Create("Door", "late", `{"roomRef":"r1"}`)
		}
		all := referencesOf(h)
		var requests []query.DependencyRequest
		var wanted [][]string
		for _, key := range []backend.Key{{Kind: "Room", Name: "r0"}, {Kind: "Room", Name: "r1"}, {Kind: "Room", Name: "r2"}, {Kind: "Door", Name: "d3"}, {Kind: "Window", Name: "w1"}, {Kind: "Key", Name: "k2"}, {Kind: "Guest", Name: "g"}} {
			key.Namespace = "default"
			found, err := h.Reader.Lookup(t.Context(), []backend.Key{key})
			if err != nil || found[0] == nil {
				continue // r1 has gone at once
			}
			for _, relation := range []query.Relation{query.Dependencies, query.Dependents, query.BlockedBy} {
				requests = append(requests, query.DependencyRequest{Relation: relation, Key: key, Body: found[0].Body, Targets: true})
				wanted = append(wanted, related(key, relation, all))
			}
		}
		for _, size := range []int{0, 1, 2, 3, 7, 1000} {
			for _, backward := range []bool{false, true} {
				for _, ahead := range []bool{false, true} {
					w := walk{size: size, backward: backward, ahead: ahead}
					w.check(h, requests, wanted)
				}
			}
		}
	})
}

// walk is how connections are read page by page.
type walk struct {
	size            int
	backward, ahead bool
}

// check reads connections to their ends, all together, and compares them with what is wanted.
func (w walk) check(h *servicetest.House, requests []query.DependencyRequest, wanted [][]string) {
	t := h.T
	t.Helper()
	reqs := slices.Clone(requests)
	left := slices.Clone(wanted)
	for i := range reqs {
		reqs[i].Ahead = w.ahead
		if w.backward {
			reqs[i].Last = new(w.size)
		} else {
			reqs[i].First = new(w.size)
		}
	}
	for range 100 {
		pages, errs := h.Reader.Dependencies(t.Context(), reqs)
		open := false
		for i, p := range pages {
			if errs[i] != nil {
				t.Fatal(errs[i])
			}
			n := min(w.size, len(left[i]))
			want, rest := left[i][:n], left[i][n:]
			if w.backward {
				want, rest = left[i][len(left[i])-n:], left[i][:len(left[i])-n]
			}
			what := fmt.Sprintf("%v of %s, %d, backward %v, ahead %v", reqs[i].Relation, reqs[i].Key, w.size, w.backward, w.ahead)
			if got := pageOf(p); !slices.Equal(got, want) {
				t.Fatalf("%s\ngot  %q\nwant %q", what, got, want)
			}
			more := p.PageInfo().HasNextPage
			before := p.PageInfo().HasPreviousPage
			if w.backward {
				more, before = before, more
			}
			if got, err := more(t.Context()); err != nil || got != (len(rest) > 0) {
				t.Fatalf("%s: goes on %v, %v, want %v", what, got, err, len(rest) > 0)
			}
			if got, err := before(t.Context()); n > 0 && (err != nil || got != (len(left[i]) < len(wanted[i]))) {
				t.Fatalf("%s: has something before it %v, %v", what, got, err)
			}
			if got, err := p.TotalCount(t.Context()); err != nil || got != len(wanted[i]) {
				t.Fatalf("%s: %d in all, %v, want %d", what, got, err, len(wanted[i]))
			}
			left[i] = rest
			if n == 0 {
				continue
			}
			open = open || len(rest) > 0
			if w.backward {
				reqs[i].Before = p.PageInfo().StartCursor()
			} else {
				reqs[i].After = p.PageInfo().EndCursor()
			}
		}
		if !open {
			return
		}
	}
	t.Fatal("the pages have no end")
}

func TestDependencies_CursorsAreThoseOfOneConnection(t *testing.T) {
	onEachStore(t, func(t *testing.T, h *servicetest.House) {
		h.Create("Room", "r", `{}`)
		h.Create("Room", "s", `{}`)
		h.Create("Door", "d", `{"roomRef":"r"}`)
		r, err := h.Reader.Lookup(t.Context(), []backend.Key{{Kind: "Room", Namespace: "default", Name: "r"}, {Kind: "Room", Namespace: "default", Name: "s"}})
		if err != nil {
			t.Fatal(err)
		}
		ask := func(relation query.Relation, of *query.Resource, with func(*query.DependencyRequest)) (*query.Page, error) {
			req := query.DependencyRequest{Relation: relation, Key: of.Stored.Key, Body: of.Body, Targets: true}
			if with != nil {
				with(&req)
			}
			pages, errs := h.Reader.Dependencies(t.Context(), []query.DependencyRequest{req})
			return pages[0], errs[0]
		}
		p, err := ask(query.Dependents, r[0], nil)
		if err != nil {
			t.Fatal(err)
		}
		cursor := p.Cursor(0)
		after := func(req *query.DependencyRequest) { req.After = &cursor }
		if p, err := ask(query.Dependents, r[0], after); err != nil || len(p.Edges) != 0 {
			t.Errorf("behind the last: %v", err)
		}
		for what, err := range map[string]error{
			"another relation": second(ask(query.BlockedBy, r[0], after)), "another resource": second(ask(query.Dependents, r[1], after)),
			"no cursor": second(ask(query.Dependents, r[0], func(req *query.DependencyRequest) { req.Before = new("rubbish") })),
		} {
			if servicetest.CodeOf(err) != failure.CodeCursorInvalid {
				t.Errorf("%s: %v", what, err)
			}
		}
		for what, with := range map[string]func(*query.DependencyRequest){
			"both":     func(req *query.DependencyRequest) { req.First, req.Last = new(1), new(1) },
			"negative": func(req *query.DependencyRequest) { req.Last = new(-1) },
			"too many": func(req *query.DependencyRequest) { req.First = new(query.MaxPage + 1) },
		} {
			if err := second(ask(query.Dependents, r[0], with)); servicetest.CodeOf(err) != failure.CodeBadUserInput {
				t.Errorf("%s: %v", what, err)
			}
		}
	})
}

func second[T any](_ T, err error) error { return err }

func TestDependencies_DependentsThatCannotBeReadAreNamed(t *testing.T) {
	onEachStore(t, func(t *testing.T, h *servicetest.House) {
		h.Create("Room", "r", `{}`)
		for i := range 5 {
			h.Create("Door", fmt.Sprint("d", i), `{"roomRef":"r"}`)
		}
		damaged := h.Get("Door", "d2")
		_, err := h.Store.Apply(t.Context(), backend.Batch{RequestID: "damage", Deadline: time.Now().Add(time.Minute), Actions: []backend.Action{{
			Key: damaged.Key, Op: backend.OpPut, Put: backend.Put{UID: damaged.UID, Body: backend.EncodeBody([]byte(`{"spec":7}`))},
		}}})
		if err != nil {
			t.Fatal(err)
		}
		room, err := h.Reader.Lookup(t.Context(), []backend.Key{{Kind: "Room", Namespace: "default", Name: "r"}})
		if err != nil {
			t.Fatal(err)
		}
		for _, relation := range []query.Relation{query.Dependents, query.BlockedBy} {
			pages, errs := h.Reader.Dependencies(t.Context(), []query.DependencyRequest{{Relation: relation, Key: room[0].Stored.Key, Body: room[0].Body, First: new(3), Ahead: true}})
			if errs[0] != nil {
				t.Fatalf("%v: %v", relation, errs[0])
			}
			want := []string{
				dependencyText(backend.Key{Kind: "Door", Namespace: "default", Name: "d0"}, "spec.roomRef", true, dependency.Bound),
				dependencyText(backend.Key{Kind: "Door", Namespace: "default", Name: "d1"}, "spec.roomRef", true, dependency.Bound),
				dependencyText(damaged.Key, "", true, dependency.Unreadable),
			}
			if got := pageOf(pages[0]); !slices.Equal(got, want) {
				t.Errorf("%v: %q, want %q", relation, got, want)
			}
			if n, err := pages[0].TotalCount(t.Context()); n != 5 || err != nil {
				t.Errorf("%v: %d in all, %v", relation, n, err)
			}
		}
	})
}
