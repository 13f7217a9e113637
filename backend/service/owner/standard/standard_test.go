package standard_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/owner"
	"github.com/sluicegw/sluice/backend/service/owner/standard"
	"github.com/sluicegw/sluice/backend/service/owner/standard/standardtest"
)

// libraryConfig is the service of Google's proposals.
func libraryConfig(t testing.TB) standardtest.Config {
	return standardtest.Config{
		Descriptors: standardtest.Compile(t, nil, standardtest.LibraryFile),
		Services:    []string{"example.library.v1.Library", "google.longrunning.Operations"},
		Message:     "example.library.v1.Book",
		Name:        "name",
		Tag:         "etag",
		UID:         "uid",
		Collection:  "books",
		MaxPage:     5,
	}
}

func bookKey(name string) backend.Key {
	return backend.Key{Kind: "Book", Namespace: "novels", Name: name}
}

// write writes a resource, which must have an outcome.
func (w *world) write(t *testing.T, request owner.Write, want owner.Outcome) owner.Answer {
	t.Helper()
	a, err := w.client.Write(t.Context(), request)
	if err != nil || a.Outcome != want {
		t.Fatalf("%v %q %v %v, want %v", a.Outcome, a.Message, a.Violations, err, want)
	}
	return a
}

func TestClient_ABookOfGooglesProposalsKeepsThePromises(t *testing.T) {
	w := newWorld(t, libraryConfig(t), "", nil)
	for name, r := range broken(t, w, true) {
		if r.Status == "FAILED" {
			t.Errorf("%s: %s", name, r.Detail)
		}
	}
}

func TestClient_NamesAreMadeOfNamespacesAndChangesByMasks(t *testing.T) {
	cfg := libraryConfig(t)
	cfg.SlowOperations = true
	w := newWorld(t, cfg, "", nil)
	book := owner.Resource{
		Key: bookKey("emma"), Spec: []byte(`{"title":"Emma","pages":474,"cover":{"color":"red"}}`), WriteID: "w1",
		Labels: map[string]string{"a": "b"},
	}
	a := w.write(t, owner.Write{Resource: book, IfAbsent: true}, owner.Done)
	if got := w.server.Show("shelves/novels/books/emma"); got == nil {
		t.Fatal("it is not there under its whole name")
	}
	w.server.Put("shelves/novels/books/emma", func(m protoreflect.Message) {
		cover, weight := standardtest.Field(m, "cover.weight")
		cover.Set(weight, protoreflect.ValueOfInt32(300))
		standardtest.SetText(m, "secret", "s3")
	})
	w.write(t, owner.Write{Resource: book, IfTag: a.Resource.Tag}, owner.Conflict)
	got, err := w.client.Get(t.Context(), []backend.Key{bookKey("emma"), bookKey("none")})
	if err != nil || got[0].Resource == nil || got[1].Resource != nil {
		t.Fatal(got, err)
	}
	book.Spec = []byte(`{"title":"Emma II","pages":474,"cover":{"color":"blue"}}`)
	a = w.write(t, owner.Write{Resource: book, IfTag: got[0].Resource.Tag, IfUID: got[0].Resource.UID}, owner.Done)
	if want := `{"cover":{"color":"blue"},"pages":474,"title":"Emma II"}`; string(a.Resource.Spec) != want {
		t.Errorf("%s, want %s", a.Resource.Spec, want)
	}
	kept := w.server.Show("shelves/novels/books/emma")
	cover, weight := standardtest.Field(kept, "cover.weight")
	_, secret := standardtest.Field(kept, "secret")
	if cover.Get(weight).Int() != 300 || kept.Get(secret).String() != "s3" {
		t.Errorf("what the kind does not have was changed: %v", kept)
	}
	w.write(t, owner.Write{Resource: book, IfTag: a.Resource.Tag, IfUID: "other"}, owner.Conflict)
}

func TestClient_ErrorsAreOutcomes(t *testing.T) {
	var next atomic.Pointer[connect.Error]
	cfg := libraryConfig(t)
	cfg.Before = func(_ context.Context, method string) error {
		if e := next.Load(); e != nil && !strings.HasPrefix(method, "Get") {
			return e
		}
		return nil
	}
	w := newWorld(t, cfg, "", nil)
	book := owner.Resource{Key: bookKey("emma"), Spec: []byte(`{"title":"Emma"}`)}
	is := w.write(t, owner.Write{Resource: book, IfAbsent: true}, owner.Done).Resource
	other := book
	other.Spec = []byte(`{"title":"Other"}`)
	for code, want := range map[connect.Code]owner.Outcome{
		connect.CodeInvalidArgument: owner.Invalid, connect.CodeOutOfRange: owner.Invalid,
		connect.CodePermissionDenied: owner.Forbidden, connect.CodeUnauthenticated: owner.Forbidden,
		connect.CodeNotFound: owner.Absent, connect.CodeFailedPrecondition: owner.Refused, connect.CodeAborted: owner.Refused,
	} {
		next.Store(connect.NewError(code, errors.New("because")))
		w.write(t, owner.Write{Resource: other, IfTag: is.Tag}, want)
	}
	for code, want := range map[connect.Code]error{
		connect.CodeResourceExhausted: owner.ErrNotSent, connect.CodeUnimplemented: owner.ErrUnimplemented,
		connect.CodeInternal: nil, connect.CodeUnavailable: nil,
	} {
		next.Store(connect.NewError(code, errors.New("because")))
		_, err := w.client.Write(t.Context(), owner.Write{Resource: other, IfTag: is.Tag})
		if err == nil || want != nil && !errors.Is(err, want) || want == nil && errors.Is(err, owner.ErrNotSent) {
			t.Errorf("%v: %v", code, err)
		}
	}
	next.Store(connect.NewError(connect.CodeNotFound, errors.New("no such shelf")))
	created := owner.Write{Resource: owner.Resource{Key: bookKey("new"), Spec: book.Spec}, IfAbsent: true}
	if a := w.write(t, created, owner.Refused); a.Message != "no such shelf" {
		t.Errorf("%+v", a)
	}
	next.Store(nil)
	long := created
	long.Resource.Spec = []byte(`{"title": 7, "pages": "x", "nothing": 1, "cover": []}`)
	var paths []string
	for _, v := range w.write(t, long, owner.Invalid).Violations {
		paths = append(paths, v.Path)
	}
	if diff := cmp.Diff([]string{"spec.nothing", "spec.title", "spec.pages", "spec.cover"}, paths); diff != "" {
		t.Error(diff)
	}
}

func TestClient_AListHasAllInPagesThatEnd(t *testing.T) {
	w := newWorld(t, libraryConfig(t), "", nil)
	const many = 23
	for i := range many {
		w.server.Put("shelves/novels/books/b"+string(rune('a'+i)), nil)
	}
	w.server.Put("odd/name", nil)
	seen, bad := 0, 0
	for token := ""; ; {
		page, err := w.client.List(t.Context(), "Book", token, 4)
		if err != nil {
			t.Fatal(err)
		}
		seen += len(page.Resources)
		bad += len(page.Unreadable)
		if token = page.Next; token == "" {
			break
		}
	}
	if seen != many || bad != 1 {
		t.Errorf("%d resources, %d unreadable", seen, bad)
	}
	for _, token := range []string{"x", "0", "7.1:", "-1.0:a", "0.-3:"} {
		if _, err := w.client.List(t.Context(), "Book", token, 4); !errors.Is(err, owner.ErrNotSent) {
			t.Errorf("%q: %v", token, err)
		}
	}
}

func TestClient_AllTypesAreKeptAsTheyAre(t *testing.T) {
	w := newWorld(t, fooConfig(t), "", nil)
	const spec = `{"bar":"a<b","baz":-5,"big":9007199254740991,"count":0,"every":"1h30m","extras":{"k":"v"},` +
		`"flags":[{"key":-1,"value":true},{"key":2,"value":false}],"huge":7,"maybe":"","mode":"MODE_SAFE",` +
		`"modes":["MODE_UNSPECIFIED","MODE_FAST"],"named":[{"key":"n","value":{"width":3}}],"note":"","qux":true,` +
		`"ratio":0.1,"raw":"AAE=","right":{"depth":0,"width":2},"share":0.1,"since":"2030-01-02T03:04:05.5Z",` +
		`"size":{"width":1},"sizes":[{},{"depth":4}],"tags":["a","a"],"tree":{"leaf":"x"}}`
	r := owner.Resource{Key: backend.Key{Kind: "Foo", Name: "a"}, Spec: []byte(spec)}
	a := w.write(t, owner.Write{Resource: r, IfAbsent: true}, owner.Done)
	if string(a.Resource.Spec) != spec {
		t.Error(cmp.Diff(spec, string(a.Resource.Spec)))
	}
	if want := `{"attempts":0,"teleportHost":"host-1"}`; string(a.Resource.Status) != want {
		t.Errorf("%s, want %s", a.Resource.Status, want)
	}
	for path, value := range map[string]string{
		"spec.left": `{"left":"l","right":{}}`, "spec.right": `{"left":"l","right":{}}`, "spec.mode": `{"mode":"OTHER"}`,
		"spec.big": `{"big":1e300}`, "spec.raw": `{"raw":"*"}`, "spec.since": `{"since":"now"}`,
		"spec.every": `{"every":"x"}`, "spec.flags[1].key": `{"flags":[{"key":1,"value":true},{"key":1,"value":true}]}`,
		"spec.sizes[0]": `{"sizes":[1]}`, "spec.huge": `{"huge":-1}`, "spec.share": `{"share":1e300}`,
	} {
		r.Spec = []byte(value)
		refusal, err := w.client.Write(t.Context(), owner.Write{Resource: r, IfTag: a.Resource.Tag})
		if err != nil || refusal.Outcome != owner.Invalid {
			t.Errorf("%s: %v %v", value, refusal.Outcome, err)
			continue
		}
		if path != "spec.left" && refusal.Violations[0].Path != path {
			t.Errorf("%s: %+v, want %s", value, refusal.Violations, path)
		}
	}
	w.server.Put("a", func(m protoreflect.Message) {
		at, f := standardtest.Field(m, "spec.big")
		at.Set(f, protoreflect.ValueOfInt64(1<<60))
	})
	got, err := w.client.Get(t.Context(), []backend.Key{r.Key})
	if err != nil || !strings.Contains(got[0].Unreadable, "2^53") {
		t.Errorf("%+v %v", got, err)
	}
}

// watching is the mapping of a Foo whose changes are streamed, as Teleport's events are.
func watching(t *testing.T) *standard.Mapping {
	t.Helper()
	m, err := standard.ParseMapping([]byte(`
kinds:
  Foo:
    text: [big]
    watch:
      method: teleport.foo.v1.FooWatchService.WatchFoos
      answer: foo
      header: header
      headerName: metadata.name
      headerIs: {kind: foo}
      set: {kind: foo}
`))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestChanges_AStreamOfEventsIsFollowed(t *testing.T) {
	cfg := fooConfig(t)
	cfg.Services = append(cfg.Services, "teleport.foo.v1.FooWatchService")
	w := newWorld(t, cfg, "", watching(t))
	for name, r := range broken(t, w, true) {
		if r.Status == "FAILED" || strings.HasPrefix(name, "changes") && r.Status != "ok" {
			t.Errorf("%s is %s: %s", name, r.Status, r.Detail)
		}
	}
	at, err := w.client.Changes(t.Context(), "", 0)
	if err != nil || at.Expired {
		t.Fatal(at, err)
	}
	w.server.EndStreams()
	next := at
	for !next.Expired { // what the kit has deleted may be told yet
		next, err = w.client.Changes(t.Context(), next.Position, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
	}
	if next, err = w.client.Changes(t.Context(), "", 0); err != nil || next.Expired || next.Position == at.Position {
		t.Errorf("%+v %v", next, err)
	}
	w.server.Put("x", nil)
	changes, err := w.client.Changes(t.Context(), next.Position, time.Minute)
	if err != nil || len(changes.Keys) != 1 || changes.Keys[0].Name != "x" {
		t.Errorf("%+v %v", changes, err)
	}
}

func TestChanges_AStreamThatIsRefusedIsComparedInstead(t *testing.T) {
	for code, refuses := range map[connect.Code]bool{
		connect.CodeUnimplemented: true, connect.CodePermissionDenied: true, connect.CodeUnauthenticated: true,
		connect.CodeInvalidArgument: true, connect.CodeNotFound: true, connect.CodeFailedPrecondition: true,
		connect.CodeInternal: true, connect.CodeUnavailable: false, connect.CodeResourceExhausted: false,
		0: false, // a proxy answers, since the service of the stream is not served
	} {
		cfg := fooConfig(t)
		if code != 0 {
			cfg.Services = append(cfg.Services, "teleport.foo.v1.FooWatchService")
		}
		cfg.Before = func(_ context.Context, method string) error {
			if method == "WatchFoos" {
				return refused(code, "no stream")
			}
			return nil
		}
		w := newWorld(t, cfg, "", watching(t))
		for range 2 {
			_, err := w.client.Changes(t.Context(), "", 0)
			if err == nil || errors.Is(err, owner.ErrUnimplemented) != refuses {
				t.Errorf("%v: %v", code, err)
			}
		}
		d, err := w.client.Describe(t.Context())
		if err != nil || d.Kinds[0].Changes == refuses {
			t.Errorf("%v: %+v %v", code, d, err)
		}
	}
}

func TestParseMapping_SaysWhatIsWrong(t *testing.T) {
	d, err := standard.ReadDescriptors(standardtest.Compile(t, nil, standardtest.FooFile))
	if err != nil {
		t.Fatal(err)
	}
	for text, says := range map[string]string{
		`kinds: {Foo: {nmae: x}}`:                         `unknown field "nmae"`,
		`kinds: {Foo: {tag: metadata.nothing}}`:           `kinds.Foo: tag: the message teleport.header.v1.Metadata has no field "nothing"`,
		`kinds: {Foo: {tag: spec.baz}}`:                   `tag: the field spec.baz of teleport.foo.v1.Foo is no text`,
		`kinds: {Foo: {list: {method: "-"}}}`:             `list: the service teleport.foo.v1.FooService has no such method`,
		`kinds: {Foo: {get: {method: X}}}`:                `get.method: the service teleport.foo.v1.FooService has no method "X"`,
		`kinds: {Foo: {pattern: "{name}/x"}}`:             `pattern:`,
		`kinds: {Bar: {}}`:                                `no method Get or List of the API answers a Bar; there are Foo`,
		`kinds: {Foo: {update: {operation: true}}}`:       `update.operation: the answer of UpdateFoo is no google.longrunning.Operation`,
		`kinds: {Foo: {create: {set: {nothing: 1}}}}`:     `create.set:`,
		`kinds: {Foo: {list: {answer: next_page_token}}}`: `list.answer:`,
		`kinds: {}`:                 `the mapping has no kinds`,
		`kinds: {Foo: {spec: "-"}}`: `spec: a kind must have a spec`,
		`kinds: {Foo: {watch: {method: UpdateFoo}}}`:             `watch.method:`,
		`kinds: {Foo: {message: teleport.foo.v1.Nothing}}`:       `message and service say which one is meant`,
		`kinds: {Foo: {name: spec.tags.x}}`:                      `the field tags is no message`,
		`kinds: {Foo: {spec: metadata.labels}}`:                  `spec: the field metadata.labels`,
		`kinds: {Foo: {get: {method: teleport.foo.v1.Nil.Get}}}`: `the descriptors have no service`,
	} {
		m, err := standard.ParseMapping([]byte(text))
		if err == nil {
			_, err = standard.New(standard.Config{Descriptors: d, Mapping: m})
		}
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %s", text, err, says)
		}
	}
}

func TestCatalogue_HasTheLimitsThatTheAPIDeclares(t *testing.T) {
	w := newWorld(t, libraryConfig(t), "", nil)
	for _, line := range []string{
		`title: String! @constraint(minLength: 1, maxLength: 80)`,
		`isbn: String @constraint(maxLength: 20, pattern: "^[-0-9X]*$") @immutable`,
		`pages: Int! @constraint(min: 0, max: 9999) @default(value: 0)`,
		`authors: [String!] @list(type: ATOMIC) @constraint(maxItems: 5, maxLength: 60)`,
		`scope: NAMESPACED`, `state: String`,
		`verbs: [GET, LIST, WATCH, CREATE, UPDATE, PATCH, UPSERT, DELETE]`,
	} {
		if !strings.Contains(w.catalogue.SDL, line) {
			t.Errorf("no line %s in\n%s", line, w.catalogue.SDL)
		}
	}
	if len(w.catalogue.Limited) > 0 {
		t.Errorf("limits were made up: %v", w.catalogue.Limited)
	}
	var omitted []string
	for _, one := range w.catalogue.Omitted {
		omitted = append(omitted, one.String())
	}
	want := []string{
		"Book.secret: it is input-only, so that nobody can read what it is",
		"Book.cover.weight: it is output-only within what callers set",
	}
	if diff := cmp.Diff(want, omitted); diff != "" {
		t.Error(diff)
	}
	w.described(t)
}

func TestMapping_IsCompleteAfterAPull(t *testing.T) {
	w := newWorld(t, libraryConfig(t), "", nil)
	text, err := w.catalogue.Mapping.YAML()
	if err != nil {
		t.Fatal(err)
	}
	again, err := standard.ParseMapping(text)
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	want, _ := json.Marshal(w.catalogue.Mapping)
	got, _ := json.Marshal(again)
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Error(diff)
	}
	pulled, err := w.descriptors.Catalogue("foos", nil, again, standard.Limits{Length: 1, Items: 1})
	if err != nil || len(pulled.Refused) > 0 {
		t.Fatal(err, pulled)
	}
	third, _ := json.Marshal(pulled.Mapping)
	if diff := cmp.Diff(string(want), string(third)); diff != "" {
		t.Errorf("a complete mapping was changed: %s", diff)
	}
}
