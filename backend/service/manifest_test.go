package service_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/manifest"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/servicetest"
)

const widgetManifest = `apiVersion: example.org/v1
kind: Widget
metadata:
  name: a
  labels: {app: x}
spec:
  title: A
  tags: [foo, bar]
`

func (f *fixture) apply(manifest string) (*service.Written, error) {
	return f.Writer.Apply(context.Background(), service.ApplyRequest{Manifest: manifest})
}

func TestManifest_ApplyCreatesReplacesAndLeavesAlone(t *testing.T) {
	f := setup(t)
	for _, step := range []struct {
		manifest string
		want     service.Outcome
	}{
		{widgetManifest, service.Created},
		{widgetManifest, service.Unchanged},
		{strings.Replace(widgetManifest, "title: A", "title: B", 1), service.Updated},
		{strings.Replace(widgetManifest, "title: A", "title: B\n  heavy: null", 1), service.Unchanged},
		{strings.Replace(widgetManifest, "  tags: [foo, bar]\n", "", 1), service.Updated},
	} {
		before := f.LogPosition()
		out, err := f.apply(step.manifest)
		if err != nil || out.Outcome != step.want {
			t.Fatalf("outcome %+v %v, want %s", out, err, step.want)
		}
		if (f.LogPosition() == before) != (step.want == service.Unchanged) {
			t.Errorf("%s: the store was written: %v", step.want, f.LogPosition() != before)
		}
	}
}

func TestManifest_AManifestThatWasReadAppliesUnchanged(t *testing.T) {
	f := setup(t)
	if _, err := f.apply(strings.Replace(widgetManifest, "  name: a", "  name: a\n  description: 'yes'\n  annotations: {k: \"1\"}", 1)); err != nil {
		t.Fatal(err)
	}
	for _, format := range []service.ManifestFormat{service.YAML, service.JSON} {
		text, err := f.Manifest(f.Stored("a"), format)
		if err != nil {
			t.Fatal(err)
		}
		out, err := f.apply(text)
		if err != nil || out.Outcome != service.Unchanged {
			t.Errorf("%s: %+v %v\n%s", format, out, err, text)
		}
	}
}

func TestManifest_ManifestsAreHeldToTheirForm(t *testing.T) {
	f := setup(t)
	replace := func(old, new string) string { return strings.Replace(widgetManifest, old, new, 1) }
	for name, c := range map[string]struct {
		manifest, says string
		code           failure.Code
	}{
		"empty":               {"# nothing\n", "empty", failure.CodeBadUserInput},
		"two documents":       {widgetManifest + "---\n" + widgetManifest, "2 documents", failure.CodeBadUserInput},
		"no mapping":          {"- a\n", "a mapping", failure.CodeBadUserInput},
		"broken":              {"a: [", "YAML", failure.CodeBadUserInput},
		"a key twice":         {replace("kind: Widget", "kind: Widget\nkind: Widget"), "kind", failure.CodeBadUserInput},
		"unknown kind":        {replace("kind: Widget", "kind: Port"), "known kinds: Widget, Cluster", failure.CodeBadUserInput},
		"kind in lower case":  {replace("kind: Widget", "kind: widget"), `"Widget"`, failure.CodeBadUserInput},
		"unknown version":     {replace("example.org/v1", "example.org/v2"), "example.org/v1", failure.CodeBadUserInput},
		"no version":          {replace("apiVersion: example.org/v1\n", ""), "example.org/v1", failure.CodeBadUserInput},
		"unknown key":         {replace("metadata:", "metadata:\n  nmae: b"), "metadata.nmae", failure.CodeBadUserInput},
		"number label":        {replace("{app: x}", "{app: 1}"), "metadata.labels", failure.CodeBadUserInput},
		"Boolean":             {replace("[foo, bar]", "[x, true]"), "spec.tags[1]: must be a string", failure.CodeValidationFailed},
		"Boolean label":       {replace("{app: x}", "{app: true}"), "(quote numbers and Booleans)", failure.CodeBadUserInput},
		"misspelt spec field": {replace("title: A", "titel: A"), `did you mean "title"?`, failure.CodeValidationFailed},
		"no spec":             {widgetManifest[:strings.Index(widgetManifest, "spec:")], "spec", failure.CodeBadUserInput},
		"no name":             {replace("  name: a\n", ""), "metadata.name", failure.CodeValidationFailed},
		"bomb":                {"a: &a [1,1,1,1,1,1,1,1,1]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\ng: [*f,*f,*f,*f,*f,*f,*f,*f,*f]\n", "YAML", failure.CodeBadUserInput},
		"too large":           {widgetManifest + "# " + strings.Repeat("x", manifest.MaxBytes), "bytes", failure.CodeBadUserInput},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := f.apply(c.manifest)
			e := servicetest.WantCode(t, err, c.code)
			if !strings.Contains(e.Split()[0].Message, c.says) {
				t.Errorf("message %q does not say %q", e.Split()[0].Message, c.says)
			}
		})
	}
}

func TestManifest_TheNamespaceOfAManifest(t *testing.T) {
	f := setup(t)
	ctx, a, b := context.Background(), "team-a", "team-b"
	inManifest := strings.Replace(widgetManifest, "metadata:", "metadata:\n  namespace: team-a", 1)
	out, err := f.Writer.Apply(ctx, service.ApplyRequest{Manifest: inManifest, Namespace: &a})
	if err != nil || out.Resource.Stored.Namespace != a {
		t.Fatalf("%+v %v", out, err)
	}
	out, err = f.Writer.Apply(ctx, service.ApplyRequest{Manifest: widgetManifest, Namespace: &b})
	if err != nil || out.Resource.Stored.Namespace != b {
		t.Fatalf("%+v %v", out, err)
	}
	_, err = f.Writer.Apply(ctx, service.ApplyRequest{Manifest: inManifest, Namespace: &b})
	if e := servicetest.WantCode(t, err, failure.CodeBadUserInput); !strings.Contains(e.Message, a) || !strings.Contains(e.Message, b) {
		t.Errorf("message %q names both", e.Message)
	}
}

func TestManifest_TheRevisionOfAManifestIsAPrecondition(t *testing.T) {
	f := setup(t)
	with := func(r string) string {
		return strings.Replace(widgetManifest, "metadata:", "metadata:\n  revision: "+r, 1)
	}
	_, err := f.apply(with("1-1"))
	servicetest.WantCode(t, err, failure.CodeNotFound)
	out, err := f.apply(widgetManifest)
	if err != nil {
		t.Fatal(err)
	}
	r := out.Resource.Stored.Revision.String()
	if out, err = f.apply(with(r)); err != nil || out.Outcome != service.Unchanged {
		t.Fatalf("%+v %v", out, err)
	}
	_, err = f.apply(with("1-1"))
	servicetest.WantCode(t, err, failure.CodeConflict)
	if _, err = f.Writer.Apply(context.Background(), service.ApplyRequest{Manifest: with("1-1"), ExpectedRevision: &r}); err != nil {
		t.Errorf("expectedRevision goes before the manifest's: %v", err)
	}
}

func TestManifest_ADryRunSaysAndDoesNot(t *testing.T) {
	f := setup(t)
	ctx := context.Background()
	out, err := f.Writer.Apply(ctx, service.ApplyRequest{Manifest: widgetManifest, DryRun: true})
	if err != nil || out.Outcome != service.Created || !out.DryRun || f.Stored("a") != nil {
		t.Fatalf("%+v %v", out, err)
	}
	f.CreateWidget("a", `{"title":"Z"}`)
	before := f.LogPosition()
	out, err = f.Writer.Apply(ctx, service.ApplyRequest{Manifest: widgetManifest, DryRun: true})
	if err != nil || out.Outcome != service.Updated || f.LogPosition() != before {
		t.Fatalf("%+v %v", out, err)
	}
	_, err = f.Writer.Apply(ctx, service.ApplyRequest{Manifest: strings.Replace(widgetManifest, "title: A", "title: ''", 1), DryRun: true})
	servicetest.WantCode(t, err, failure.CodeValidationFailed)
}

func TestManifest_ACreateByManifestNeverReplaces(t *testing.T) {
	f := setup(t)
	req := service.ApplyRequest{Manifest: widgetManifest, CreateOnly: true}
	for _, dry := range []bool{true, false} {
		req.DryRun = dry
		if out, err := f.Writer.Apply(context.Background(), req); err != nil || out.Outcome != service.Created {
			t.Fatalf("%+v %v", out, err)
		}
	}
	for _, dry := range []bool{true, false} {
		req.DryRun = dry
		_, err := f.Writer.Apply(context.Background(), req)
		servicetest.WantCode(t, err, failure.CodeAlreadyExists)
	}
}

func TestManifest_ACreateByManifestHasNoRevisionToExpect(t *testing.T) {
	f := setup(t)
	revision := "1-1"
	_, err := f.Writer.Apply(context.Background(), service.ApplyRequest{Manifest: widgetManifest, CreateOnly: true, ExpectedRevision: &revision})
	servicetest.WantCode(t, err, failure.CodeBadUserInput)
	exported := strings.Replace(widgetManifest, "metadata:\n", "metadata:\n  revision: 1-1\n", 1)
	if out, err := f.Writer.Apply(context.Background(), service.ApplyRequest{Manifest: exported, CreateOnly: true}); err != nil || out.Outcome != service.Created {
		t.Errorf("of an exported manifest: %+v %v", out, err)
	}
}

func TestManifest_ManyAppliesOfOneAbsentResourceCreateItOnce(t *testing.T) {
	f := setup(t)
	var mu sync.Mutex
	count := map[service.Outcome]int{}
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			out, err := f.apply(widgetManifest)
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			count[out.Outcome]++
		})
	}
	wg.Wait()
	if count[service.Created] != 1 || count[service.Unchanged] != 15 {
		t.Errorf("outcomes %v", count)
	}
}

func FuzzManifest(f *testing.F) {
	f.Add(widgetManifest)
	f.Add("{\"apiVersion\":\"example.org/v1\",\"kind\":\"Widget\",\"metadata\":{\"name\":\"a\"},\"spec\":{\"weight\":1e999}}")
	f.Add("--- a\n---\n...")
	f.Fuzz(func(t *testing.T, text string) {
		fix := setup(t)
		out, err := fix.apply(text)
		if err != nil {
			return
		}
		again, err := fix.Manifest(out.Resource.Stored, service.YAML)
		if err != nil {
			t.Fatal(err)
		}
		if out, err = fix.apply(again); err != nil || out.Outcome != service.Unchanged {
			t.Fatalf("what was read does not apply UNCHANGED: %v %v\n%s", out, err, again)
		}
	})
}

func TestManifest_NullInAManifestClears(t *testing.T) {
	k := servicetest.Widget()
	k.Expires = true
	f := setupKinds(t, k)
	manifest := func(meta string) string {
		return "apiVersion: example.org/v1\nkind: Widget\nmetadata:\n  name: a\n" + meta + "spec: {title: A}\n"
	}
	full := "  labels: {x: v}\n  annotations: {k: w}\n  description: d\n  expiresAt: 2999-01-02T03:04:05.678Z\n"
	for _, step := range []struct {
		meta    string
		outcome service.Outcome
		want    string
	}{
		{full, service.Created, "map[x:v] map[k:w] d 2999-01-02T03:04:05.678Z"},
		{"", service.Updated, "map[] map[] d 2999-01-02T03:04:05.678Z"}, // labels and annotations were its own
		{full, service.Updated, "map[x:v] map[k:w] d 2999-01-02T03:04:05.678Z"},
		{"  labels: null\n  annotations: {k: w}\n", service.Updated, "map[] map[k:w] d 2999-01-02T03:04:05.678Z"},
		{"  annotations: null\n  description:\n", service.Updated, "map[] map[]  2999-01-02T03:04:05.678Z"},
		{"  expiresAt: ~\n", service.Updated, "map[] map[]  0001-01-01T00:00:00Z"},
		{"  labels: null\n  annotations: null\n  description: null\n  expiresAt: null\n", service.Unchanged, "map[] map[]  0001-01-01T00:00:00Z"},
	} {
		out, err := f.apply(manifest(step.meta))
		if err != nil || out.Outcome != step.outcome {
			t.Fatalf("%s: %+v %v, want %s", step.meta, out, err, step.outcome)
		}
		r := f.Stored("a")
		body, err := decodeBody(r)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(body.Metadata.Labels, body.Metadata.Annotations, " ", body.Metadata.Description, " ", r.ExpiresAt.Format(time.RFC3339Nano)); got != step.want {
			t.Errorf("%s: %s, want %s", step.meta, got, step.want)
		}
	}
	_, err := f.apply(manifest("  expiresAt: tomorrow\n"))
	if e := servicetest.WantCode(t, err, failure.CodeBadUserInput); !strings.Contains(e.Message, "RFC 3339") {
		t.Errorf("message %q", e.Message)
	}
	_, err = f.apply(manifest("  expiresAt: 1999-01-01T00:00:00Z\n"))
	servicetest.WantCode(t, err, failure.CodeValidationFailed)
}

func TestApply_ANullLabelOrAnnotationIsCleared(t *testing.T) {
	f := setupKinds(t, servicetest.Widget())
	apply := func(meta string) *service.Written {
		t.Helper()
		out, err := f.apply("apiVersion: example.org/v1\nkind: Widget\nmetadata: {name: a, " + meta + "}\nspec: {title: A}\n")
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	apply("labels: {mine: a}")
	other := "apiVersion: example.org/v1\nkind: Widget\nmetadata: {name: a, labels: {other: b, stays: c}, annotations: {note: d}}\nspec: {title: A}\n"
	if _, err := f.Writer.Apply(context.Background(), service.ApplyRequest{Manifest: other, FieldManager: new("other")}); err != nil {
		t.Fatal(err)
	}
	out := apply("labels: {mine: null, other: , absent: ~}, annotations: {note: null}")
	body, err := decodeBody(f.Stored("a"))
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprintf("%s %v %v", out.Outcome, body.Metadata.Labels, body.Metadata.Annotations); got != "UPDATED map[stays:c] map[]" {
		t.Errorf("got %s", got)
	}
	_, err = f.apply("apiVersion: example.org/v1\nkind: Widget\nmetadata: {name: a, labels: {'not a key': null}}\nspec: {title: A}\n")
	servicetest.WantCode(t, err, failure.CodeValidationFailed)
}

func TestApply_ANumberOfYAML11IsExplained(t *testing.T) {
	f := setupKinds(t, freeWidget())
	for number, want := range map[string]string{
		"1_000": "must be a number; digits with _ or 0b are a text in YAML 1.2: quote it or write 1000",
		"0b11":  "must be a number; digits with _ or 0b are a text in YAML 1.2: quote it or write 3",
		"1:30":  "must be a number",
	} {
		_, err := f.apply("apiVersion: example.org/v1\nkind: Widget\nmetadata: {name: a}\nspec: {number: " + number + "}\n")
		e := servicetest.WantCode(t, err, failure.CodeValidationFailed)
		if len(e.Violations) != 1 || e.Violations[0].Message != want {
			t.Errorf("%s: %+v, want %s", number, e.Violations, want)
		}
	}
	if _, err := f.apply("apiVersion: example.org/v1\nkind: Widget\nmetadata: {name: a}\nspec: {number: 01500, text: 1_000}\n"); err != nil {
		t.Error(err)
	}
}

func TestManifest_ADumpKeepsTheExpiry(t *testing.T) {
	k := servicetest.Widget()
	k.Expires = true
	f := setupKinds(t, k)
	until := time.Now().Add(time.Hour)
	out, err := f.Writer.Create(t.Context(), service.CreateRequest{Identity: servicetest.Named("a"), Spec: json.RawMessage(`{"title":"A"}`), Metadata: service.Metadata{ExpiresAt: service.Optional[time.Time]{Set: true, Value: until}}})
	if err != nil {
		t.Fatal(err)
	}
	text, err := f.Manifest(out.Resource.Stored, service.YAML)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Writer.Delete(t.Context(), service.DeleteRequest{Identity: servicetest.Named("a")}); err != nil {
		t.Fatal(err)
	}
	if _, err := f.apply(text); err != nil {
		t.Fatal(err)
	}
	if got := f.Stored("a").ExpiresAt; !got.Equal(until.Truncate(time.Millisecond)) {
		t.Errorf("expires at %v, want %v\n%s", got, until, text)
	}
}

func TestManifest_AnApplyAsksForTheVerbThatItIs(t *testing.T) {
	create := "create"
	for name, c := range map[string]struct {
		verbs   []descriptor.Verb
		accepts map[string]bool
	}{
		"CREATE alone":      {[]descriptor.Verb{descriptor.VerbCreate}, map[string]bool{create: true, "apply of what is absent": true, "apply of what is there and equal": true}},
		"UPSERT alone":      {[]descriptor.Verb{descriptor.VerbUpsert}, map[string]bool{"apply of what is absent": true, "apply of what is there": true, "apply of what is there and equal": true}},
		"UPDATE alone":      {[]descriptor.Verb{descriptor.VerbUpdate}, map[string]bool{"apply of what is there": true, "apply of what is there and equal": true}},
		"CREATE and UPDATE": {[]descriptor.Verb{descriptor.VerbCreate, descriptor.VerbUpdate}, map[string]bool{create: true, "apply of what is absent": true, "apply of what is there": true, "apply of what is there and equal": true}},
		"neither":           {[]descriptor.Verb{descriptor.VerbGet}, nil},
	} {
		for step, req := range map[string]service.ApplyRequest{
			create:                               {Manifest: widgetManifest, CreateOnly: true},
			"apply of what is absent":            {Manifest: widgetManifest},
			"apply of what is there":             {Manifest: strings.Replace(widgetManifest, "title: A", "title: B", 1)},
			"apply of what is there and invalid": {Manifest: strings.Replace(widgetManifest, "title: A", "nothing: B", 1)},
			"apply of what is there and equal":   {Manifest: widgetManifest},
		} {
			t.Run(name+": "+step, func(t *testing.T) {
				f := setup(t)
				if strings.Contains(step, "there") {
					if _, err := f.apply(widgetManifest); err != nil {
						t.Fatal(err)
					}
				}
				k := servicetest.Widget()
				k.Verbs = c.verbs
				s, err := service.New(service.Config{Kinds: []descriptor.Kind{k}, Store: f.Store})
				if err != nil {
					t.Fatal(err)
				}
				out, err := s.Writer.Apply(t.Context(), req)
				if c.accepts[step] && err != nil {
					t.Error(err)
				}
				if c.accepts[step] && strings.Contains(step, "equal") && (out.Outcome != service.Unchanged || out.DryRun) {
					t.Errorf("%+v, want UNCHANGED", out)
				}
				updates := slices.Contains(c.verbs, descriptor.VerbUpdate) || slices.Contains(c.verbs, descriptor.VerbUpsert)
				if updates && strings.Contains(step, "invalid") {
					servicetest.WantCode(t, err, failure.CodeValidationFailed)
				} else if !c.accepts[step] {
					if e := servicetest.WantCode(t, err, failure.CodeBadUserInput); !strings.Contains(e.Message, "does not offer") {
						t.Errorf("message %q", e.Message)
					}
				}
			})
		}
	}
}
