package service_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/memory"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/servicetest"
	"github.com/sluicegw/sluice/graph/kinds/kindstest"
)

// secrets is a service of the embedded catalogue.
func secrets(t *testing.T) *fixture {
	t.Helper()
	store, err := memory.Open(memory.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	s, err := service.New(service.Config{Kinds: kindstest.Kinds(t), Store: store})
	if err != nil {
		t.Fatal(err)
	}
	return &fixture{&servicetest.Fixture{Service: s, T: t, Store: store}}
}

func secretNamed() kind.Identity { return kind.Identity{Kind: "Secret", Name: "s"} }

// secretManifest is a manifest of Kubernetes with some lines besides.
func secretManifest(lines ...string) string {
	return "apiVersion: v1\nkind: Secret\nmetadata:\n  name: s\n" + strings.Join(lines, "\n") + "\n"
}

// revealed are the values of the one secret, by their keys.
func (f *fixture) revealed() map[string]string {
	f.T.Helper()
	got, err := f.Reveal(f.T.Context(), secretNamed())
	if err != nil {
		f.T.Fatal(err)
	}
	out := map[string]string{}
	for _, v := range got.Values {
		text, _ := v.Text()
		if v.Path.Text(failure.StoredNames) != "spec.data" || v.Key == nil || !v.Base64 {
			f.T.Errorf("%+v", v)
		}
		out[*v.Key] = text
	}
	return out
}

func TestWrite_StringDataGoesIntoData(t *testing.T) {
	t.Parallel()
	const both = "data: {a: MQ==, b: Mg==}\nstringData: {b: two, c: three}"
	for name, c := range map[string]struct {
		// first is applied, then second.
		first, second string
		outcome       service.Outcome
		want          map[string]string
	}{
		"data alone":                                 {"data: {a: MQ==}", "", "", map[string]string{"a": "1"}},
		"stringData alone":                           {"stringData: {a: '1'}", "", "", map[string]string{"a": "1"}},
		"stringData wins":                            {both, "", "", map[string]string{"a": "1", "b": "two", "c": "three"}},
		"the same again":                             {both, both, service.Unchanged, map[string]string{"a": "1", "b": "two", "c": "three"}},
		"the same as data":                           {"stringData: {a: '1'}", "data: {a: MQ==}", service.Unchanged, map[string]string{"a": "1"}},
		"data replaces what stringData gave":         {"stringData: {a: v, b: w}", "data: {a: MQ==}", service.Updated, map[string]string{"a": "1"}},
		"stringData keeps the other entries of data": {"data: {a: MQ==, b: Mg==}", "stringData: {b: x}", service.Updated, map[string]string{"a": "1", "b": "x"}},
		"data that is cleared is replaced":           {"data: {a: MQ==}", "data: {}\nstringData: {b: x}", service.Updated, map[string]string{"b": "x"}},
		"nothing keeps everything":                   {both, "", service.Unchanged, map[string]string{"a": "1", "b": "two", "c": "three"}},
		"null clears data":                           {both, "data: null", service.Updated, map[string]string{}},
		"null as stringData clears nothing":          {both, "stringData: null", service.Unchanged, map[string]string{"a": "1", "b": "two", "c": "three"}},
		"an empty stringData clears nothing":         {both, "stringData: {}", service.Unchanged, map[string]string{"a": "1", "b": "two", "c": "three"}},
		"values may be empty":                        {"data: {a: ''}\nstringData: {b: ''}", "", "", map[string]string{"a": "", "b": ""}},
		"values may be any text":                     {"stringData: {a: \"\\u00e9\\n\\u0000\"}", "", "", map[string]string{"a": "é\n\x00"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := secrets(t)
			if _, err := f.Writer.Apply(t.Context(), service.ApplyRequest{Manifest: secretManifest(c.first)}); err != nil {
				t.Fatal(err)
			}
			if c.outcome != "" {
				w, err := f.Writer.Apply(t.Context(), service.ApplyRequest{Manifest: secretManifest(c.second)})
				if err != nil || w.Outcome != c.outcome {
					t.Fatalf("the second is %+v, %v; want %s", w, err, c.outcome)
				}
			}
			if diff := cmp.Diff(c.want, f.revealed()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if r := f.get(backend.Key{Kind: "Secret", Namespace: "default", Name: "s"}.Sensitive()); strings.Contains(string(r.Body), "stringData") {
				t.Errorf("stringData is stored: %s", r.Body)
			}
		})
	}
}

func TestWrite_APatchOfStringDataGoesIntoData(t *testing.T) {
	for name, c := range map[string]struct {
		patch string
		want  map[string]string
	}{
		"entries are merged":            {`{"stringData":{"b":"x","c":"y"}}`, map[string]string{"a": "1", "b": "x", "c": "y"}},
		"after those of data":           {`{"stringData":{"b":"x"},"data":{"a":null,"b":"MQ==","c":"Mw=="}}`, map[string]string{"b": "x", "c": "3"}},
		"one that is null goes":         {`{"stringData":{"a":null}}`, map[string]string{"b": "2"}},
		"null changes nothing":          {`{"stringData":null}`, map[string]string{"a": "1", "b": "2"}},
		"data that is null is replaced": {`{"data":null,"stringData":{"c":"3"}}`, map[string]string{"c": "3"}},
		"what is not named stays":       {`{"immutable":false}`, map[string]string{"a": "1", "b": "2"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := secrets(t)
			w, err := f.Writer.Apply(t.Context(), service.ApplyRequest{Manifest: secretManifest("stringData: {a: '1', b: '2'}")})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.Writer.Patch(t.Context(), service.PatchRequest{Identity: secretNamed(), ExpectedRevision: w.Resource.Stored.Revision.String(), Patch: json.RawMessage(c.patch)}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, f.revealed()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestWrite_SecretsAreValidatedAsKubernetesDoes(t *testing.T) {
	t.Parallel()
	key := strings.Repeat("k", 253)
	for name, c := range map[string]struct {
		lines string
		// says is empty where it is accepted.
		says string
	}{
		"no values":                      {"type: Opaque", ""},
		"base64 with line breaks":        {"data:\n  a: |\n    TVE9\n    PQ==\n", ""},
		"no base64":                      {"data: {a: 'planted-value'}", "data: must be base64 with padding"},
		"base64 without padding":         {"data: {a: 'MQ'}", "must be base64"},
		"base64 for URLs":                {"data: {a: '__8='}", "must be base64"},
		"a value that is no text":        {"data: {a: 1}", "data: must be a string"},
		"a stringData that is no map":    {"stringData: [planted-value]", "stringData: must be a mapping"},
		"a value of a map":               {"stringData: {a: {planted-value: b}}", "stringData: must be a string"},
		"all characters of keys":         {"stringData: {-._azAZ09: x, .hidden: w, " + key + ": z}", ""},
		"a key with a slash":             {"stringData: {planted-value/b: x}", "the key must match"},
		"a key that is a folder":         {"stringData: {.: x}", "the key must match"},
		"a key that leads out":           {"stringData: {..a: x}", "the key must match"},
		"a key that is too long":         {"stringData: {" + key + "k: x}", "at most 253 characters"},
		"an empty key":                   {"stringData: {'': x}", "at least 1 characters"},
		"a type of one's own":            {"type: example.org/thing", ""},
		"TLS":                            {"type: kubernetes.io/tls\nstringData: {tls.crt: c}\ndata: {tls.key: MQ==}", ""},
		"TLS without a key":              {"type: kubernetes.io/tls\nstringData: {tls.crt: c}", "add the keys tls.crt and tls.key"},
		"basic-auth":                     {"type: kubernetes.io/basic-auth\nstringData: {password: planted-value}", ""},
		"basic-auth without anything":    {"type: kubernetes.io/basic-auth", "the key username or password"},
		"ssh-auth":                       {"type: kubernetes.io/ssh-auth\nstringData: {ssh-privatekey: x}", ""},
		"ssh-auth with an empty key":     {"type: kubernetes.io/ssh-auth\nstringData: {ssh-privatekey: ''}", "a value under the key ssh-privatekey"},
		"dockerconfigjson":               {"type: kubernetes.io/dockerconfigjson\nstringData: {.dockerconfigjson: '{}'}", ""},
		"dockerconfigjson with another":  {"type: kubernetes.io/dockerconfigjson\nstringData: {.dockercfg: '{}'}", "add the key .dockerconfigjson"},
		"dockercfg without its key":      {"type: kubernetes.io/dockercfg", "add the key .dockercfg"},
		"data in the spec of a manifest": {"spec: {data: {a: MQ==}}", "stands at the top of a manifest"},
		"a key that is unknown":          {"datta: {a: MQ==}", "datta is not a field of a manifest"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := secrets(t).Writer.Apply(t.Context(), service.ApplyRequest{Manifest: secretManifest(c.lines)})
			switch {
			case err == nil && c.says != "":
				t.Error("it is accepted")
			case err != nil && (c.says == "" || !strings.Contains(err.Error(), c.says)):
				t.Errorf("%v, want %q", err, c.says)
			case err != nil && strings.Contains(err.Error(), "planted-value"):
				t.Errorf("the error has the value: %v", err)
			}
		})
	}
}

func TestWrite_ASecretIsAtMostAMebibyteInAll(t *testing.T) {
	f := secrets(t)
	value := strings.Repeat("x", 600_000)
	if _, err := f.Writer.Apply(t.Context(), service.ApplyRequest{Manifest: secretManifest("stringData: {a: " + value + "}")}); err != nil {
		t.Fatal(err)
	}
	_, err := f.Writer.Upsert(t.Context(), service.UpsertRequest{Identity: secretNamed(), Spec: map[string]any{"stringData": map[string]any{"b": value}}})
	servicetest.WantCode(t, err, failure.CodeLimitExceeded)
}

func TestWrite_AnImmutableSecretStaysAsItIs(t *testing.T) {
	f := secrets(t)
	apply := func(lines string) (*service.Written, error) {
		return f.Writer.Apply(t.Context(), service.ApplyRequest{Manifest: secretManifest(lines)})
	}
	if _, err := apply("immutable: true\nstringData: {a: '1'}"); err != nil {
		t.Fatal(err)
	}
	for lines, says := range map[string]string{
		"immutable: true\nstringData: {a: '2'}":    "leave the values as they are",
		"immutable: true\nstringData: {b: '2'}":    "leave the values as they are",
		"immutable: true\ndata: null":              "leave the values as they are",
		"immutable: false":                         "leave immutable true",
		"stringData: {a: '1'}":                     "leave immutable true",
		"immutable: true\ntype: example.org/other": "cannot be changed to another value",
	} {
		if _, err := apply(lines); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %q", lines, err, says)
		}
	}
	for lines, outcome := range map[string]service.Outcome{"immutable: true": service.Unchanged, "immutable: true\ndata: {a: MQ==}": service.Unchanged} {
		if w, err := apply(lines); err != nil || w.Outcome != outcome {
			t.Errorf("%q: %+v, %v", lines, w, err)
		}
	}
	if w, err := f.Writer.Apply(t.Context(), service.ApplyRequest{Manifest: strings.Replace(secretManifest("immutable: true"), "name: s", "name: s\n  labels: {a: b}", 1)}); err != nil || w.Outcome != service.Updated {
		t.Errorf("a label: %+v, %v", w, err)
	}
}

func TestWrite_WithoutTheKeyAPatchOfStringDataIsRefused(t *testing.T) {
	store := memoryStore(t)
	open := func(id string) *fixture {
		s, err := service.New(service.Config{Kinds: kindstest.Kinds(t), Store: store, Keys: keysOf(t, id)})
		if err != nil {
			t.Fatal(err)
		}
		return &fixture{&servicetest.Fixture{Service: s, T: t, Store: store}}
	}
	was, f := open("a"), open("b")
	w, err := was.Writer.Apply(t.Context(), service.ApplyRequest{Manifest: secretManifest("stringData: {a: '1', b: '2'}")})
	if err != nil {
		t.Fatal(err)
	}
	patch := json.RawMessage(`{"stringData":{"b":"planted"}}`)
	_, err = f.Writer.Patch(t.Context(), service.PatchRequest{Identity: secretNamed(), ExpectedRevision: w.Resource.Stored.Revision.String(), Patch: patch})
	servicetest.WantCode(t, err, failure.CodeUnreadable)
	if diff := cmp.Diff(map[string]string{"a": "1", "b": "2"}, was.revealed()); diff != "" {
		t.Error(diff)
	}
	page, err := store.Range(t.Context(), backend.Range{Kind: "Secret", Limit: 10})
	if err != nil || strings.Contains(string(page.Resources[0].Body), `"data":`) {
		t.Errorf("the resource itself is %s, %v", page.Resources[0].Body, err)
	}
	if _, err := f.Writer.Apply(t.Context(), service.ApplyRequest{Manifest: secretManifest("data: {b: Mw==}"), IgnoreRevision: true}); err != nil {
		t.Fatalf("all of data: %v", err)
	}
	if diff := cmp.Diff(map[string]string{"b": "3"}, f.revealed()); diff != "" {
		t.Error(diff)
	}
}
