package service_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/servicetest"
)

// pairsOf reads "a=1 b-": b is nil.
func pairsOf(text string) map[string]*string {
	out := map[string]*string{}
	for _, pair := range strings.Fields(text) {
		key, value, set := strings.Cut(pair, "=")
		out[strings.TrimSuffix(key, "-")] = nil
		if set {
			out[key] = &value
		}
	}
	return out
}

// doTo makes a change of the labels and annotations of widget a, as "TOOL: PAIRS" says.
// A tool is update, patch, "nobody", or a field manager.
func (f *fixture) doTo(step string) (*service.Written, error) {
	tool, text, _ := strings.Cut(step, ": ")
	pairs := pairsOf(text)
	revision := ""
	if r := f.Stored("a"); r != nil {
		revision = r.Revision.String()
	}
	switch tool {
	case "patch":
		patch := service.Optional[[]service.PairPatch]{Set: true}
		for _, key := range slices.Sorted(maps.Keys(pairs)) {
			patch.Value = append(patch.Value, service.PairPatch{Key: key, Value: pairs[key]})
		}
		return f.Writer.Patch(f.T.Context(), service.PatchRequest{
			Identity: servicetest.Named("a"), ExpectedRevision: revision, MetadataPatch: service.MetadataPatch{Labels: patch, Annotations: patch},
		})
	case "update":
		meta := service.Metadata{Labels: service.Optional[[]service.Label]{Set: true}, Annotations: service.Optional[[]service.Annotation]{Set: true}}
		for key, value := range pairs {
			meta.Labels.Value = append(meta.Labels.Value, service.Label{Key: key, Value: *value})
			meta.Annotations.Value = append(meta.Annotations.Value, service.Annotation{Key: key, Value: *value})
		}
		return f.Writer.Update(f.T.Context(), service.UpdateRequest{Identity: servicetest.Named("a"), ExpectedRevision: revision, Metadata: meta, Spec: json.RawMessage(`{"title":"A"}`)})
	}
	manifest := "apiVersion: example.org/v1\nkind: Widget\nmetadata:\n  name: a\n"
	switch {
	case text == "null":
		manifest += "  labels: null\n  annotations: null\n"
	case text != "":
		raw, err := json.Marshal(pairs)
		if err != nil {
			f.T.Fatal(err)
		}
		manifest += fmt.Sprintf("  labels: %s\n  annotations: %s\n", raw, raw)
	}
	manager := strings.TrimPrefix(tool, "nobody")
	return f.Writer.Apply(f.T.Context(), service.ApplyRequest{Manifest: manifest + "spec: {title: A}\n", FieldManager: &manager})
}

// pairs are the labels of widget a, which the annotations must equal, and who owns them.
func (f *fixture) pairs() string {
	f.T.Helper()
	p, err := decodeBody(f.Stored("a"))
	if err != nil {
		f.T.Fatal(err)
	}
	if !maps.Equal(p.Metadata.Labels, p.Metadata.Annotations) {
		f.T.Errorf("labels %v, annotations %v", p.Metadata.Labels, p.Metadata.Annotations)
	}
	var out []string
	for _, key := range slices.Sorted(maps.Keys(p.Metadata.Labels)) {
		out = append(out, key+"="+p.Metadata.Labels[key])
	}
	for _, m := range p.Metadata.Managers {
		if !slices.Equal(m.Labels, m.Annotations) {
			f.T.Errorf("%s owns the labels %v, and the annotations %v", m.Name, m.Labels, m.Annotations)
		}
		out = append(out, m.Name+"["+strings.Join(m.Labels, " ")+"]")
	}
	return strings.Join(out, " ")
}

func TestManager_LabelsAndAnnotationsByWhoeverSetsThem(t *testing.T) {
	for name, c := range map[string]struct {
		steps []string
		want  string
	}{
		"a manifest's own":                           {[]string{"sluice: a=1 b=1"}, "a=1 b=1 sluice[a b]"},
		"what left the manifest goes":                {[]string{"sluice: a=1 b=1", "sluice: b=2"}, "b=2 sluice[b]"},
		"all that it had goes":                       {[]string{"sluice: a=1", "sluice: "}, ""},
		"a rename":                                   {[]string{"sluice: a=1", "sluice: z=1"}, "z=1 sluice[z]"},
		"the same again":                             {[]string{"sluice: a=1", "sluice: a=1"}, "a=1 sluice[a]"},
		"what a patch added stays":                   {[]string{"sluice: a=1", "patch: l=1", "sluice: a=1"}, "a=1 l=1 sluice[a]"},
		"what an update added stays":                 {[]string{"sluice: a=1", "update: a=1 l=1", "sluice: a=1"}, "a=1 l=1 sluice[a]"},
		"what a patch removed comes back":            {[]string{"sluice: a=1", "patch: a-", "sluice: a=1"}, "a=1 sluice[a]"},
		"what a patch removed has no owner":          {[]string{"sluice: a=1 b=1", "patch: a-", "patch: a=1", "sluice: b=1"}, "a=1 b=1 sluice[b]"},
		"what a patch changed has no owner":          {[]string{"sluice: a=1", "patch: a=2", "sluice: "}, "a=2"},
		"what a patch left as it is has":             {[]string{"sluice: a=1", "patch: a=1 l=1", "sluice: "}, "l=1"},
		"what a patch changed is taken back":         {[]string{"sluice: a=1", "patch: a=2", "sluice: a=1"}, "a=1 sluice[a]"},
		"what an update changed has no owner":        {[]string{"sluice: a=1 b=1", "update: a=2 b=1", "sluice: "}, "a=2"},
		"what a patch set is taken over":             {[]string{"sluice: ", "patch: l=1", "sluice: l=1", "sluice: "}, ""},
		"an update replaces all":                     {[]string{"sluice: a=1", "ci: b=1", "update: u=1"}, "u=1"},
		"a patch merges":                             {[]string{"sluice: a=1 b=1", "patch: a- c=1 absent-"}, "b=1 c=1 sluice[b]"},
		"two manifests add up":                       {[]string{"sluice: a=1", "ci: b=1"}, "a=1 b=1 ci[b] sluice[a]"},
		"each removes its own":                       {[]string{"sluice: a=1", "ci: b=1", "sluice: "}, "b=1 ci[b]"},
		"a key of two goes with the last":            {[]string{"sluice: a=1", "ci: a=1", "sluice: "}, "a=1 ci[a]"},
		"and then it goes":                           {[]string{"sluice: a=1", "ci: a=1", "sluice: ", "ci: "}, ""},
		"the last value of two holds":                {[]string{"sluice: a=1", "ci: a=2"}, "a=2 ci[a] sluice[a]"},
		"null removes everybody's":                   {[]string{"sluice: a=1", "ci: b=1", "patch: l=1", "ci: null"}, ""},
		"nobody replaces all and owns nothing":       {[]string{"sluice: a=1 b=1", "ci: c=1", "nobody: a=1 n=1"}, "a=1 n=1 sluice[a]"},
		"nobody leaves alone what is not mentioned":  {[]string{"sluice: a=1", "nobody: "}, "a=1 sluice[a]"},
		"two managers, three tools, one after other": {[]string{"sluice: a=1 b=1", "ci: b=1 c=1", "patch: l=1 c=2", "update: a=1 b=1 c=2 l=1 u=1", "sluice: a=1", "ci: c=3"}, "a=1 c=3 l=1 u=1 ci[c] sluice[a]"},
	} {
		t.Run(name, func(t *testing.T) {
			f := setup(t)
			for _, step := range c.steps {
				if _, err := f.doTo(step); err != nil {
					t.Fatalf("%s: %v", step, err)
				}
			}
			if got := f.pairs(); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			last, at := c.steps[len(c.steps)-1], f.LogPosition()
			if out, err := f.doTo(last); err != nil || out.Outcome != service.Unchanged || f.LogPosition() != at {
				t.Errorf("%q again: %+v %v", last, out, err)
			}
			text, err := f.Manifest(f.Stored("a"), service.YAML)
			if err != nil || strings.Contains(text, "sluice") {
				t.Errorf("%v\n%s", err, text)
			}
		})
	}
}

func TestManager_AnApplyThatOnlyTakesOverLabelsChangesNothing(t *testing.T) {
	f := setup(t)
	if _, err := f.Writer.Create(t.Context(), service.CreateRequest{
		Identity: servicetest.Named("a"), Spec: json.RawMessage(`{"title":"A"}`), Metadata: service.Metadata{Labels: service.Optional[[]service.Label]{Set: true, Value: []service.Label{{Key: "a", Value: "1"}}}},
	}); err != nil {
		t.Fatal(err)
	}
	before := f.Stored("a")
	text, err := f.Manifest(before, service.YAML)
	if err != nil {
		t.Fatal(err)
	}
	out, err := f.apply(text)
	if after := f.Stored("a"); err != nil || out.Outcome != service.Unchanged || after.SpecRevision != before.SpecRevision {
		t.Fatalf("%+v %v", out, err)
	}
	if _, err := f.UpdateWidget("a", before.Revision.String(), `{"title":"B"}`); err != nil {
		t.Errorf("it counts as a change of the spec: %v", err)
	}
}

func TestManager_FieldManagersAreBounded(t *testing.T) {
	f := setup(t)
	for i := range 16 {
		if _, err := f.doTo(fmt.Sprintf("m%d: k%d=1", i, i)); err != nil {
			t.Fatal(err)
		}
	}
	for step, says := range map[string]string{
		"m16: l=1":                     "fieldManager: 16 field managers own labels",
		strings.Repeat("é", 65) + ": ": "fieldManager: must have at most 64 characters",
	} {
		if _, err := f.doTo(step); servicetest.CodeOf(err) != failure.CodeValidationFailed || !strings.HasPrefix(err.Error(), says) {
			t.Errorf("%s: %v", step, err)
		}
	}
	for _, step := range []string{"m16: ", "patch: l=1", "m3: ", "m16: l=1", strings.Repeat("é", 64) + ": "} {
		if _, err := f.doTo(step); err != nil {
			t.Errorf("%s: %v", step, err)
		}
	}
}

func TestManager_APatchKeepsTheLimitsOfLabelsAndAnnotations(t *testing.T) {
	f := setup(t)
	var most []string
	for i := range 128 {
		most = append(most, fmt.Sprintf("k%d=1", i))
	}
	if _, err := f.doTo("sluice: " + strings.Join(most, " ")); err != nil {
		t.Fatal(err)
	}
	for step, says := range map[string]string{
		"patch: one=1": "metadata.labels: must be at most 128, are 129", "patch: -x=1": "metadata.labels[0].key: ", "patch: a=-": "metadata.labels[0].value: ",
	} {
		if _, err := f.doTo(step); servicetest.CodeOf(err) != failure.CodeValidationFailed || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", step, err)
		}
	}
	if _, err := f.doTo("patch: one=1 k0-"); err != nil {
		t.Error(err)
	}
	large := strings.Repeat("x", 200<<10)
	patch := func(key string) error {
		one := service.MetadataPatch{Annotations: service.Optional[[]service.PairPatch]{Set: true, Value: []service.PairPatch{{Key: key, Value: &large}}}}
		_, err := f.Writer.Patch(t.Context(), service.PatchRequest{Identity: servicetest.Named("a"), ExpectedRevision: f.Stored("a").Revision.String(), MetadataPatch: one})
		return err
	}
	if err := patch("large"); err != nil {
		t.Error(err)
	}
	if err := patch("larger"); servicetest.CodeOf(err) != failure.CodeValidationFailed || !strings.HasPrefix(err.Error(), "metadata.annotations: must be at most 262144 bytes") {
		t.Errorf("annotations of 400 KiB: %v", err)
	}
	twice := service.MetadataPatch{Labels: service.Optional[[]service.PairPatch]{Set: true, Value: []service.PairPatch{{Key: "k"}, {Key: "k"}}}}
	if _, err := f.Writer.Patch(t.Context(), service.PatchRequest{Identity: servicetest.Named("a"), MetadataPatch: twice, ExpectedRevision: f.Stored("a").Revision.String()}); servicetest.CodeOf(err) != failure.CodeValidationFailed {
		t.Errorf("a key twice: %v", err)
	}
}
