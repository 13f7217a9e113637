package query_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/query"
	queryplan "github.com/sluicegw/sluice/backend/service/query/plan"
	"github.com/sluicegw/sluice/backend/service/servicetest"
)

// TestAccess_ReadsAndTheirExplanationsAreTheSameWhateverIsHidden asks the same of two stores, of which one also has
// resources that the caller may not see: many, some of them expired, unreadable, or of kinds of which it may see
// nothing.
func TestAccess_ReadsAndTheirExplanationsAreTheSameWhateverIsHidden(t *testing.T) {
	t.Parallel()
	expiring := servicetest.WidgetAtSite()
	expiring.Expires = true
	other := servicetest.WidgetAtSite()
	other.Name, other.Singular, other.Plural = "Other", "other", "others"
	other.References[0].Inverse = "others"
	open := func(hidden bool, indexMemory int64) *fixture {
		store := servicetest.OpenMemory(t)
		f := guarded(t, store, indexMemory, expiring, other, servicetest.Site())
		f.Store = store
		put := func(k, namespace, name string, meta service.Metadata) {
			id := kind.Identity{Kind: k, Name: name}
			if namespace != "" {
				id.Namespace = &namespace
			}
			if _, err := f.Writer.Upsert(access.WithCaller(t.Context(), servicetest.Admin()), service.UpsertRequest{Identity: id, Spec: map[string]any{"title": "s", "weight": 100}, Metadata: meta}); err != nil {
				t.Fatal(err)
			}
		}
		put("Site", "", "s", service.Metadata{})
		for i := range 5 {
			put("Widget", "mine", fmt.Sprint("w", 2*i), service.Metadata{})
		}
		if !hidden {
			return f
		}
		put("Site", "", "t", service.Metadata{})
		labels := service.Optional[[]service.Label]{Set: true, Value: []service.Label{{Key: "app", Value: "hidden"}}}
		for i := range 40 {
			put("Other", "theirs", fmt.Sprint("o", i), service.Metadata{})
			put("Widget", []string{"a", "mine", "theirs"}[i%3], fmt.Sprint("w", 100+i), service.Metadata{Labels: labels})
			put("Widget", "a", fmt.Sprint("gone", i), service.Metadata{ExpiresAt: service.ExpiresAt(time.Now().Add(time.Hour))})
			f.Put(backend.Key{Kind: "Widget", Namespace: []string{"a", "theirs"}[i%2], Name: fmt.Sprint("damaged", i)}, backend.Put{UID: "damaged", Body: backend.EncodeBody([]byte(`7`))})
		}
		return f
	}
	rules := map[string][]access.Rule{
		"a namespace's names": {{Kinds: []string{"Widget"}, Namespaces: []string{"mine"}, Names: []string{"w0", "w2", "w4", "w6", "w8"}}},
		"names":               {{Kinds: []string{"Widget"}, Names: []string{"w0", "w2", "w4", "w6", "w8", "x"}}},
	}
	for where, indexMemory := range map[string]int64{"in memory": 0, "in the store": -1} {
		with, without := open(true, indexMemory), open(false, indexMemory)
		for what, rules := range rules {
			t.Run(what+", "+where, func(t *testing.T) {
				var answers [2][]string
				for i, f := range []*fixture{with, without} {
					for j := range rules {
						rules[j].Verbs = []descriptor.Verb{"*"}
					}
					f.Give(append(slices.Clip(rules), access.Rule{Kinds: []string{"Site"}, Verbs: []descriptor.Verb{"*"}, Names: []string{"s", "u"}})...)
					answers[i] = hiddenAnswers(t, f)
				}
				if d := cmp.Diff(answers[1], answers[0]); d != "" {
					t.Errorf("(-nothing is hidden +something is):\n%s", d)
				}
			})
		}
	}
}

// hiddenAnswers are answers and explanations of all reads, but for revisions.
func hiddenAnswers(t *testing.T, f *fixture) (out []string) {
	u := servicetest.As("token:u")
	note := func(what string, ask func(ctx context.Context) string) {
		ctx, reads := queryplan.WithExplanation(t.Context())
		ctx, _ = query.WithSnapshot(ctx)
		answer := ask(ctx)
		out = append(out, fmt.Sprintf("%s: %s; %+v", what, answer, reads.Reads()))
	}
	mine, theirs, none := new("mine"), new("theirs"), new("none")
	filters := map[string]any{
		"none": nil, "title": map[string]any{"spec": map[string]any{"title": map[string]any{"eq": "s"}}}, "weight": map[string]any{"spec": map[string]any{"weight": map[string]any{"gte": 100}}},
		"label": map[string]any{"labels": []any{map[string]any{"key": "app", "eq": "hidden"}}}, "name": map[string]any{"name": map[string]any{"in": []any{"w0", "w100", "damaged1", "gone1"}}},
		"namespace": map[string]any{"namespace": map[string]any{"in": []any{"mine", "a"}}}, "not": map[string]any{"not": map[string]any{"spec": map[string]any{"title": map[string]any{"eq": "x"}}}},
		"names": map[string]any{"name": map[string]any{"gte": "w1"}}, "range": map[string]any{"namespace": map[string]any{"gte": "b"}},
	}
	page := func(ctx context.Context, p *query.Page) string {
		text := ""
		for i, e := range p.Edges {
			text += e.Resource.Stored.Namespace + "/" + e.Resource.Stored.Name + " " + fmt.Sprint(len(p.Cursor(i))) + ","
		}
		n, err := p.TotalCount(ctx)
		next, err2 := p.PageInfo().HasNextPage(ctx)
		before, err3 := p.PageInfo().HasPreviousPage(ctx)
		return fmt.Sprint(text, n, next, before, err, err2, err3)
	}
	for _, name := range []string{"none", "title", "weight", "label", "name", "namespace", "not", "names", "range"} {
		for _, namespace := range []*string{nil, mine, theirs, none} {
			for _, by := range []queryplan.Order{nil, {{Field: "spec.weight", Descending: true}}, {{Field: "name"}}} {
				for _, size := range [][2]*int{{new(2), nil}, {nil, new(2)}, {new(0), nil}, {new(100), nil}} {
					for _, total := range []bool{false, true} {
						req := query.ListRequest{Kind: "Widget", Namespace: namespace, Filter: filters[name], OrderBy: by, First: size[0], Last: size[1], Total: total, Ahead: total}
						note(text([]any{name, namespace, by, size, total}), func(ctx context.Context) string {
							p, err := f.Reader.List(access.WithCaller(ctx, u), req)
							if err != nil {
								return err.Error()
							}
							return page(ctx, p)
						})
					}
				}
			}
			note("summary "+name+text(namespace), func(ctx context.Context) string {
				s, err := f.Reader.Summary(access.WithCaller(ctx, u), query.SummaryRequest{Kind: "Widget", Namespace: namespace, Filter: filters[name], By: []string{"spec.title"}})
				return text(s) + fmt.Sprint(err)
			})
		}
	}
	for _, by := range []string{"spec.title", "namespace", "labels.app", "spec.weight"} {
		note("summary by "+by, func(ctx context.Context) string {
			s, err := f.Reader.Summary(access.WithCaller(ctx, u), query.SummaryRequest{Kind: "Widget", By: []string{by}})
			return text(s) + fmt.Sprint(err)
		})
	}
	note("namespaces", func(ctx context.Context) string {
		p, err := f.Reader.Namespaces(access.WithCaller(ctx, u), nil, nil)
		if err != nil {
			return err.Error()
		}
		n, err := p.TotalCount(access.WithCaller(ctx, u))
		return fmt.Sprint(p.Namespaces, n, err)
	})
	for _, name := range []string{"w0", "w100", "damaged0", "gone1"} {
		for _, namespace := range []string{"mine", "theirs", "a"} {
			note("get "+namespace+"/"+name, func(ctx context.Context) string {
				r, err := f.Reader.Get(access.WithCaller(ctx, u), servicetest.WidgetIn(namespace, name))
				found, err2 := f.Reader.Lookup(access.WithCaller(ctx, u), []backend.Key{{Kind: "Widget", Namespace: namespace, Name: name}, {Kind: "Site", Name: "t"}, {Kind: "Other", Namespace: "theirs", Name: "o1"}})
				_, err3 := f.Writer.Delete(access.WithCaller(ctx, u), service.DeleteRequest{Identity: servicetest.WidgetIn(namespace, name), DryRun: true, ExpectedRevision: new("1-1")})
				return fmt.Sprint(r != nil, len(found), err, err2, err3 != nil)
			})
		}
	}
	site, err := f.Reader.Get(access.WithCaller(t.Context(), u), kind.Identity{Kind: "Site", Name: "s"})
	if err != nil {
		t.Fatal(err)
	}
	for _, relation := range []query.Relation{query.Dependencies, query.Dependents, query.BlockedBy} {
		for _, first := range []int{0, 2, 100} {
			note(fmt.Sprint("relation ", relation, first), func(ctx context.Context) string {
				pages, errs := f.Reader.Dependencies(access.WithCaller(ctx, u), []query.DependencyRequest{{Relation: relation, Key: site.Stored.Key, Body: site.Body, First: &first, Ahead: true}})
				if errs[0] != nil {
					return errs[0].Error()
				}
				return page(ctx, pages[0])
			})
		}
	}
	return out
}

// TestAccess_GrantsCostTheirReader has bindings that one caller may see and another not.
func TestAccess_GrantsCostTheirReader(t *testing.T) {
	f := guarded(t, servicetest.OpenMemory(t), 0, servicetest.Widget())
	for i := range 40 {
		f.Bind(fmt.Sprint("b", i), access.Binding{Roles: []string{access.Viewer}, Users: []string{"token:x"}, Namespaces: []string{"a"}})
	}
	ask := func(c access.Caller) (int, error) {
		ctx := budget.With(t.Context(), budget.New(budget.Limits{budget.Steps: budget.Scan + 30*budget.Binding}))
		grants, err := f.Reader.Grants(access.WithCaller(ctx, c), descriptor.VerbGet, query.AccessTarget{Kind: new("Widget")})
		return len(grants), err
	}
	if n, err := ask(servicetest.As("token:u")); n != 0 || err != nil {
		t.Errorf("a caller who sees none: %d %v", n, err)
	}
	if _, err := ask(servicetest.Admin()); !errors.As(err, new(*budget.ExceededError)) {
		t.Errorf("a caller who sees all: %v", err)
	}
}
