package rpc_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/servicetest"
)

func TestUnary_AResourceIsCreatedReadReplacedAndDeleted(t *testing.T) {
	for name, options := range map[string][]connect.ClientOption{
		"gRPC":         {connect.WithGRPC()},
		"gRPC-Web":     {connect.WithGRPCWeb()},
		"Connect":      nil,
		"Connect JSON": {connect.WithProtoJSON()},
	} {
		t.Run(name, func(t *testing.T) {
			w := open(t)
			w.options = options
			created, err := w.call("CreateWidget", `{"widget": {"metadata": {"name": "a", "labels": {"x": "y"}, "description": "d"},
				"spec": {"title": "t", "colour": "COLOUR_BLUE", "weight": 70, "bytes": "9007199254740991", "heavy": false, "ratio": 0.75,
				"tags": ["b", "a"], "parts": [{"slot": "p"}]}}}`)
			if err != nil {
				t.Fatal(err)
			}
			revision := revisionOf(created.Msg)
			want := `{"kind":"Widget","version":"v1","metadata":{"name":"a","namespace":"default","description":"d","labels":{"x":"y"},"generation":"1","updated_by":"token:root"},` +
				`"spec":{"title":"t","colour":"COLOUR_BLUE","weight":70,"bytes":"9007199254740991","heavy":false,"tags":["b","a"],"parts":[{"slot":"p"}],"ratio":0.75}}`
			if got := shown(created.Msg); !sameJSON(got, want) {
				t.Errorf("%s\nnot %s", got, want)
			}
			if got := w.must("GetWidget", `{"name": "a"}`); !sameJSON(got, want) {
				t.Errorf("%s\nnot %s", got, want)
			}
			_, err = w.call("CreateWidget", `{"widget": {"metadata": {"name": "a"}, "spec": {"title": "t"}}}`)
			refused(t, err, connect.CodeAlreadyExists, failure.CodeAlreadyExists)
			update := `{"widget": {"metadata": {"name": "a", "revision": "` + revision + `"}, "spec": {"title": "u", "colour": "COLOUR_BLUE"}}}`
			got := w.must("UpdateWidget", update)
			want = `{"kind":"Widget","version":"v1","metadata":{"name":"a","namespace":"default","generation":"2","updated_by":"token:root"},"spec":{"title":"u","colour":"COLOUR_BLUE"}}`
			if !sameJSON(got, want) {
				t.Errorf("%s\nnot %s", got, want)
			}
			_, err = w.call("UpdateWidget", strings.Replace(update, `"u"`, `"v"`, 1))
			refused(t, err, connect.CodeAborted, failure.CodeConflict)
			w.must("UpsertWidget", `{"widget": {"metadata": {"name": "a"}, "spec": {"title": "w", "colour": "COLOUR_BLUE"}}}`)
			if got := w.must("DeleteWidget", `{"name": "a"}`); got != "{}" {
				t.Error(got)
			}
			_, err = w.call("GetWidget", `{"name": "a"}`)
			refused(t, err, connect.CodeNotFound, failure.CodeNotFound)
			_, err = w.call("DeleteWidget", `{"name": "a"}`)
			refused(t, err, connect.CodeNotFound, failure.CodeNotFound)
		})
	}
}

// sameJSON compares JSON that protojson wrote, which puts blanks at random.
func sameJSON(a, b string) bool {
	plain := func(s string) string { return strings.NewReplacer(", ", ",", ": ", ":").Replace(s) }
	return plain(a) == plain(b)
}

func TestUnary_WhatIsWrongIsNamedAsTheCallerKnowsIt(t *testing.T) {
	w := open(t)
	for request, want := range map[string]string{
		`{}`:                       "widget: widget: must be given",
		`{"widget": {"spec": {}}}`: "widget.metadata.name: must not be empty",
		`{"widget": {"metadata": {"name": "a"}}}`:                                                                      "widget.spec: must be given; it may be empty",
		`{"widget": {"kind": "Site", "version": "v2", "metadata": {"name": "a"}, "spec": {}}}`:                         "widget.kind: must be Widget, or left out\nwidget.version: must be v1, or left out",
		`{"widget": {"metadata": {"name": "A"}, "spec": {"title": "t"}}}`:                                              "widget.metadata.name: must be a DNS-1123",
		`{"widget": {"metadata": {"name": "a", "namespace": "B"}, "spec": {"title": "t"}}}`:                            "widget.metadata.namespace: must be a DNS label",
		`{"widget": {"metadata": {"name": "a", "labels": {"k": "v", "x y": ""}}, "spec": {"title": "t"}}}`:             `widget.metadata.labels["x y"]: must be a name`,
		`{"widget": {"metadata": {"name": "a", "expires": "2030-01-01T00:00:00Z"}, "spec": {"title": "t"}}}`:           "widget.metadata.expires: resources of kind Widget do not expire",
		`{"widget": {"metadata": {"name": "a"}, "sub_kind": "x", "spec": {"title": "t"}}}`:                             "widget.sub_kind: kind Widget has no subKinds",
		`{"widget": {"metadata": {"name": "a"}, "spec": {"title": "t", "bytes": "9007199254740992", "ratio": "NaN"}}}`: "widget.spec.bytes: must be within -(2^53-1) and 2^53-1\nwidget.spec.ratio: must be a finite number",
		`{"widget": {"metadata": {"name": "a"}, "spec": {"title": "t", "colour": 0}}}`:                                 "widget.spec.colour: must be a value of the enum Colour",
		`{"widget": {"metadata": {"name": "a"}, "spec": {"title": "t", "colour": 77}}}`:                                "widget.spec.colour: must be a value of the enum Colour",
		`{"widget": {"metadata": {"name": "a"}, "spec": {"title": "", "weight": 1, "parts": [{"slot": "p"}, {}]}}}`:    "widget.spec.title: must have at least 1 character",
	} {
		_, err := w.call("CreateWidget", request)
		reason := failure.CodeValidationFailed
		for _, bad := range []string{"must be given", "left out", "do not expire", "2^53", "a value of"} {
			if strings.Contains(want, bad) {
				reason = failure.CodeBadUserInput
			}
		}
		got := refused(t, err, connect.CodeInvalidArgument, reason)
		for line := range strings.SplitSeq(want, "\n") {
			if !strings.Contains(got, line) {
				t.Errorf("%s: %s\nwithout %s", request, got, line)
			}
		}
	}
	_, err := w.call("CreateWidget", `{"widget": {"metadata": {"name": "a"}, "spec": {"title": "t", "parts": [{"slot": "p"}, {}]}}}`)
	if got := refused(t, err, connect.CodeInvalidArgument, failure.CodeValidationFailed); !strings.Contains(got, "widget.spec.parts[1].slot: ") {
		t.Error(got)
	}
	_, err = w.call("UpdateWidget", `{"widget": {"metadata": {"name": "a"}, "spec": {"title": "t"}}}`)
	if got := refused(t, err, connect.CodeInvalidArgument, failure.CodeBadUserInput); !strings.Contains(got, "widget.metadata.revision: ") {
		t.Error(got)
	}
	_, err = w.call("UpdateWidget", `{"widget": {"metadata": {"name": "a", "revision": "1-1"}, "spec": {"title": "t"}}}`)
	refused(t, err, connect.CodeNotFound, failure.CodeNotFound)
	_, err = w.call("ListWidgets", `{"page_size": -1}`)
	if got := refused(t, err, connect.CodeInvalidArgument, failure.CodeBadUserInput); !strings.Contains(got, "page_size: ") {
		t.Error(got)
	}
	_, err = w.call("ListWidgets", `{"page_token": "x"}`)
	if got := refused(t, err, connect.CodeInvalidArgument, failure.CodeCursorInvalid); !strings.HasPrefix(got, "page_token: page_token: not a token") {
		t.Error(got)
	}
	_, err = w.call("GetSite", `{"name": "A"}`)
	if got := refused(t, err, connect.CodeInvalidArgument, failure.CodeValidationFailed); !strings.Contains(got, "name: ") {
		t.Error(got)
	}
	_, err = w.call("CreateSite", `{"site": {"metadata": {"name": "a", "namespace": "b"}, "spec": {"title": "t"}}}`)
	refused(t, err, connect.CodeInvalidArgument, failure.CodeBadUserInput)
}

// TestUnary_StoredNamesAreNotShown has a field and values with other names in the API, as a later version can have.
func TestUnary_StoredNamesAreNotShown(t *testing.T) {
	k := servicetest.Widget()
	spec := *k.Spec
	spec.Fields = slices.Clone(spec.Fields)
	spec.Fields[0].APIName = "headLine"
	k.Spec = &spec
	w := open(t, k)
	got := w.must("CreateWidget", `{"widget": {"kind": "widget", "metadata": {"name": "a"}, "spec": {"headLine": "t", "colour": "COLOUR_DARK_RED"}}}`)
	if !strings.Contains(got, `"head_line":"t"`) || !strings.Contains(got, "COLOUR_DARK_RED") {
		t.Error(got)
	}
	stored := string(w.Stored("a").Body)
	if !strings.Contains(stored, `"title":"t"`) || !strings.Contains(stored, `"colour":"dark-red"`) {
		t.Error(stored)
	}
	_, err := w.call("CreateWidget", `{"widget": {"metadata": {"name": "b"}, "spec": {}}}`)
	if got := refused(t, err, connect.CodeInvalidArgument, failure.CodeValidationFailed); !strings.HasPrefix(got, "widget.spec.head_line: ") {
		t.Error(got)
	}
}

func TestUnary_AFieldThatTheGatewayDoesNotKnowIsRefused(t *testing.T) {
	w := open(t)
	m := w.method("CreateWidget")
	in := w.message(m.Input(), `{"widget": {"metadata": {"name": "a"}, "spec": {"title": "t"}}}`)
	resource := in.Get(m.Input().Fields().ByName("widget")).Message()
	spec := resource.Get(resource.Descriptor().Fields().ByName("spec")).Message()
	spec.SetUnknown([]byte{0xf8, 0x07, 1}) // field 127
	_, err := w.send(m, in)
	if got := refused(t, err, connect.CodeInvalidArgument, failure.CodeBadUserInput); got != "widget.spec: has a field 127, which this gateway does not know" {
		t.Error(got)
	}
}

func TestUnary_AConditionThatTheGatewayDoesNotKnowIsNotPassedOver(t *testing.T) {
	w := open(t)
	w.UpsertWidget(servicetest.Named("a"), "t")
	for name, request := range map[string]string{
		"UpsertWidget": `{"widget": {"metadata": {"name": "a"}, "spec": {"title": "u"}}}`,
		"DeleteWidget": `{"name": "a"}`, "ListWidgets": `{}`,
	} {
		m := w.method(name)
		in := w.message(m.Input(), request)
		in.SetUnknown([]byte{0x7a, 0}) // field 15
		_, err := w.send(m, in)
		refused(t, err, connect.CodeInvalidArgument, failure.CodeBadUserInput)
		if !strings.Contains(err.Error(), "the request has a field 15, which this gateway does not know") {
			t.Error(err)
		}
	}
	if got := w.must("GetWidget", `{"name": "a"}`); !strings.Contains(got, `"title":"t"`) {
		t.Error(got)
	}
}

func TestUnary_TheSubKindOfAResourceStays(t *testing.T) {
	k := servicetest.Widget()
	k.SubKinds = []string{"core", "edge"}
	w := open(t, k)
	created, err := w.call("CreateWidget", `{"widget": {"metadata": {"name": "a"}, "sub_kind": "core", "spec": {"title": "t"}}}`)
	if err != nil {
		t.Fatal(err)
	}
	revision := revisionOf(created.Msg)
	for method, metadata := range map[string]string{
		"UpdateWidget": `{"name": "a", "revision": "` + revision + `"}`, "UpsertWidget": `{"name": "a"}`,
	} {
		for subKind, want := range map[string]string{"edge": "is set at creation and cannot be changed", "x": "core"} {
			_, err := w.call(method, `{"widget": {"metadata": `+metadata+`, "sub_kind": "`+subKind+`", "spec": {"title": "u"}}}`)
			if got := refused(t, err, connect.CodeInvalidArgument, failure.CodeValidationFailed); !strings.Contains(got, want) {
				t.Errorf("%s %s: %s", method, subKind, got)
			}
		}
	}
	for _, given := range []string{"", `"sub_kind": "core", `} {
		update := `{"widget": {` + given + `"metadata": {"name": "a", "revision": "` + revision + `"}, "spec": {"title": "u"}}}`
		res, err := w.call("UpdateWidget", update)
		if err != nil {
			t.Fatal(err)
		}
		revision = revisionOf(res.Msg)
		if got := shown(res.Msg); !strings.Contains(got, `"sub_kind":"core"`) {
			t.Error(got)
		}
	}
}

func TestUnary_ValidateOnlyChangesNothing(t *testing.T) {
	w := open(t)
	if got := w.must("CreateWidget", `{"widget": {"metadata": {"name": "a"}, "spec": {"title": "t", "old": "x"}}, "validate_only": true}`); !strings.Contains(got, `"t"`) {
		t.Error(got)
	}
	if got := w.must("ListWidgets", `{}`); got != "{}" {
		t.Error(got)
	}
	w.must("CreateWidget", `{"widget": {"metadata": {"name": "a"}, "spec": {"title": "t"}}}`)
	w.must("DeleteWidget", `{"name": "a", "validate_only": true}`)
	w.must("GetWidget", `{"name": "a"}`)
}

func TestUnary_AnswersHaveWarnings(t *testing.T) {
	w := open(t)
	res, err := w.call("CreateWidget", `{"widget": {"metadata": {"name": "a"}, "spec": {"title": "t", "old": "x"}}}`)
	if err != nil {
		t.Fatal(err)
	}
	if got := res.Header().Get("Sluice-Warning"); !strings.HasPrefix(got, "DEPRECATED: ") {
		t.Errorf("%q", got)
	}
}

func TestUnary_WriteOnlyValuesAreNeverInAnAnswer(t *testing.T) {
	w := open(t)
	spec := `"spec": {"type": "Opaque", "string_data": {"password": "hunter2"}, "data": {"other": "aHVudGVyMw=="}}`
	answers := []string{w.must("CreateSecret", `{"secret": {"metadata": {"name": "s"}, `+spec+`}}`)}
	answers = append(answers, w.must("GetSecret", `{"name": "s"}`), w.must("ListSecrets", `{}`),
		w.must("UpsertSecret", `{"secret": {"metadata": {"name": "s"}, `+spec+`}}`))
	for _, answer := range answers {
		if !strings.Contains(answer, "Opaque") || strings.Contains(answer, "hunter") || strings.Contains(answer, `"data"`) || strings.Contains(answer, "aHVud") {
			t.Error(answer)
		}
	}
	// An update without the values keeps them.
	got, err := w.call("GetSecret", `{"name": "s"}`)
	if err != nil {
		t.Fatal(err)
	}
	w.must("UpdateSecret", `{"secret": {"metadata": {"name": "s", "revision": "`+revisionOf(got.Msg)+`", "labels": {"a": "b"}}, "spec": {"type": "Opaque"}}}`)
	revealed, err := w.Service.Reveal(access.WithCaller(t.Context(), servicetest.Admin()), kind.Identity{Kind: "Secret", Name: "s"})
	if err != nil || revealed == nil {
		t.Errorf("the values are gone: %v", err)
	}
	_, err = w.call("CreateSecret", `{"secret": {"metadata": {"name": "t"}, "spec": {"type": "kubernetes.io/tls", "string_data": {"tls.crt": "hunter2"}}}}`)
	if got := refused(t, err, connect.CodeInvalidArgument, failure.CodeValidationFailed); strings.Contains(got+err.Error(), "hunter") {
		t.Error(got)
	}
}

func TestUnary_PagesHaveEachResourceOnce(t *testing.T) {
	for name, indexMemory := range map[string]int64{"in memory": 0, "in the store": -1} {
		t.Run(name, func(t *testing.T) { testPages(t, indexMemory) })
	}
}

func testPages(t *testing.T, indexMemory int64) {
	w := openWith(t, indexMemory)
	for i := range 25 {
		w.UpsertWidget(servicetest.Named(fmt.Sprintf("w%02d", i)), "t")
	}
	names := map[string]int{}
	token := ""
	for pages := 1; ; pages++ {
		res, err := w.call("ListWidgets", fmt.Sprintf(`{"page_size": 10, "page_token": %q}`, token))
		if err != nil {
			t.Fatal(err)
		}
		eachMetadata(res.Msg, func(m protoreflect.Message) {
			names[m.Get(m.Descriptor().Fields().ByName("name")).String()]++
		})
		token = res.Msg.Get(res.Msg.Descriptor().Fields().ByName("next_page_token")).String()
		if token == "" {
			if pages != 3 {
				t.Error("pages:", pages)
			}
			break
		}
	}
	for name, n := range names {
		if n != 1 {
			t.Errorf("%s is in %d pages", name, n)
		}
	}
	if len(names) != 25 {
		t.Error(len(names))
	}
	res, err := w.call("ListWidgets", `{"page_size": 2147483647}`)
	if err != nil || res.Msg.Get(res.Msg.Descriptor().Fields().ByName("widgets")).List().Len() != 25 {
		t.Error("a size that is too large means the largest:", err)
	}
	if got := w.must("ListWidgets", `{"namespace": "other"}`); got != "{}" {
		t.Error(got)
	}
}

// TestUnary_APageEndsWhereAClientWouldNotAcceptMore has resources of which 1,000 are more than 4 MiB.
func TestUnary_APageEndsWhereAClientWouldNotAcceptMore(t *testing.T) {
	w := open(t)
	for i := range 30 {
		w.must("CreateSite", fmt.Sprintf(`{"site": {"metadata": {"name": "s%d", "annotations": {"a": %q}}, "spec": {"title": "t"}}}`, i, strings.Repeat("x", 200<<10)))
	}
	seen, token := 0, ""
	for {
		res, err := w.call("ListSites", fmt.Sprintf(`{"page_size": 1000, "page_token": %q}`, token))
		if err != nil {
			t.Fatal(err)
		}
		if n := proto.Size(res.Msg); n > 4<<20 {
			t.Error("a page has", n, "bytes")
		}
		seen += res.Msg.Get(res.Msg.Descriptor().Fields().ByName("sites")).List().Len()
		if token = res.Msg.Get(res.Msg.Descriptor().Fields().ByName("next_page_token")).String(); token == "" {
			break
		}
	}
	if seen != 30 {
		t.Error("seen:", seen)
	}
}

func TestUnary_EachVerbNeedsItsRight(t *testing.T) {
	w := open(t)
	w.UpsertWidget(servicetest.Named("a"), "t")
	resource := `{"widget": {"metadata": {"name": "%s", "revision": "1-1"}, "spec": {"title": "t"}}}`
	calls := map[descriptor.Verb][2]string{
		descriptor.VerbGet:    {"GetWidget", `{"name": "a"}`},
		descriptor.VerbList:   {"ListWidgets", `{}`},
		descriptor.VerbCreate: {"CreateWidget", fmt.Sprintf(resource, "b")},
		descriptor.VerbUpdate: {"UpdateWidget", fmt.Sprintf(resource, "a")},
		descriptor.VerbDelete: {"DeleteWidget", `{"name": "a"}`},
	}
	w.user = "token:u"
	for verb, call := range calls {
		_, err := w.call(call[0], call[1])
		refused(t, err, connect.CodePermissionDenied, failure.CodeForbidden)
		_ = verb
	}
	w.Give(servicetest.Allow("Widget", descriptor.VerbCreate))
	res, err := w.call("CreateWidget", fmt.Sprintf(resource, "b"))
	if err != nil {
		t.Fatal(err)
	}
	if got := shown(res.Msg); strings.Contains(got, "spec") || !strings.Contains(got, `"b"`) {
		t.Error("who may not read it is shown the resource:", got)
	}
	_, err = w.call("GetWidget", `{"name": "b"}`)
	refused(t, err, connect.CodePermissionDenied, failure.CodeForbidden)
}

func TestUnary_WhatACallerDoesNotSeeIsNotThere(t *testing.T) {
	w := open(t)
	for _, namespace := range []string{"mine", "other"} {
		w.UpsertWidget(servicetest.WidgetIn(namespace, "a"), "t")
	}
	w.Role("reader", servicetest.Allow("Widget", descriptor.VerbGet, descriptor.VerbList))
	w.Bind("b", access.Binding{Roles: []string{"reader"}, Users: []string{"token:u"}, Namespaces: []string{"mine"}})
	w.user = "token:u"
	_, err := w.call("GetWidget", `{"name": "a", "namespace": "other"}`)
	refused(t, err, connect.CodeNotFound, failure.CodeNotFound)
	if got := w.must("ListWidgets", `{}`); strings.Contains(got, "other") || !strings.Contains(got, "mine") {
		t.Error(got)
	}
}

func TestUnary_AnUnreadableResourceIsSaidToBe(t *testing.T) {
	w := open(t)
	w.UpsertWidget(servicetest.Named("a"), "t")
	w.Damage("a")
	_, err := w.call("GetWidget", `{"name": "a"}`)
	refused(t, err, connect.CodeDataLoss, failure.CodeUnreadable)
}

// every is a kind with a field of each type, and a list of each that can be one.
func every() descriptor.Kind {
	k := servicetest.Widget()
	k.Name, k.Singular, k.Plural = "Every", "every", "everies"
	k.FilterableFields = nil
	k.Expires = true
	e := &descriptor.Enum{Name: "Tier", Values: []descriptor.EnumValue{{Name: "BASIC", Stored: "basic"}, {Name: "LARGE", Stored: "large tier"}}}
	inner := &descriptor.Shape{Name: "Inner", Fields: []descriptor.Field{{Name: "at", Type: descriptor.TypeTime}}}
	fields := []descriptor.Field{{Name: "map", Type: descriptor.TypeMap}, {Name: "object", Type: descriptor.TypeObject, Shape: inner}}
	for name, typ := range map[string]descriptor.FieldType{
		"text": descriptor.TypeString, "int": descriptor.TypeInt, "big": descriptor.TypeSafeInt, "float": descriptor.TypeFloat,
		"bool": descriptor.TypeBoolean, "time": descriptor.TypeTime, "enum": descriptor.TypeEnum,
	} {
		for _, list := range []bool{false, true} {
			f := descriptor.Field{Name: name, Type: typ, List: list, ListType: descriptor.ListAtomic}
			if list {
				f.Name += "s"
			}
			if typ == descriptor.TypeEnum {
				f.Enum = e
			}
			fields = append(fields, f)
		}
	}
	k.Spec = &descriptor.Shape{Name: "EverySpec", Fields: fields}
	k.Status = nil
	return k
}

func TestUnary_EveryTypeComesBackAsItWasSent(t *testing.T) {
	w := open(t, every())
	spec := `{"map":{"a b":"c,\"\u0001"},"object":{"at":"0001-01-01T00:00:00Z"},"text":"ä\u0000 😀","int":-2147483648,"big":"-9007199254740991","float":-0.1,"bool":false,` +
		`"time":"9999-12-31T23:59:59.999999999Z","enum":"TIER_LARGE","texts":["","b"],"ints":[0,2147483647],"bigs":["0","9007199254740991"],"floats":[0,1e300,0.5],` +
		`"bools":[false,true],"times":["2026-01-31T12:00:00.000000001Z"],"enums":["TIER_BASIC","TIER_LARGE"]}`
	sent := w.message(w.method("UpsertEvery").Input(), `{"every": {"metadata": {"name": "a", "namespace": "n", "expires": "2999-01-01T00:00:00.123Z", "annotations": {"x": "y"}}, "spec": `+spec+`}}`)
	want := sent.Get(sent.Descriptor().Fields().ByName("every")).Message()
	specOf := func(m protoreflect.Message) proto.Message {
		return m.Get(m.Descriptor().Fields().ByName("spec")).Message().Interface()
	}
	for range 2 { // created, and replaced
		if _, err := w.send(w.method("UpsertEvery"), sent); err != nil {
			t.Fatal(err)
		}
		got, err := w.call("GetEvery", `{"name": "a", "namespace": "n"}`)
		if err != nil {
			t.Fatal(err)
		}
		if !proto.Equal(specOf(want), specOf(got.Msg)) {
			t.Errorf("%v\nnot %v", specOf(got.Msg), specOf(want))
		}
		if text := shown(got.Msg); !strings.Contains(text, `"expires":"2999-01-01T00:00:00.123Z"`) || !strings.Contains(text, `"x":"y"`) {
			t.Error(text)
		}
	}
	w.must("UpsertEvery", `{"every": {"metadata": {"name": "a", "namespace": "n"}, "spec": {}}}`)
	if got := w.must("GetEvery", `{"name": "a", "namespace": "n"}`); strings.Contains(got, "expires") || strings.Contains(got, "annotations") || !sameJSON(got[strings.Index(got, `"spec"`):], `"spec":{}}`) {
		t.Error("what is left out stays:", got)
	}
	for bad, at := range map[string]string{
		`{"enums": ["TIER_UNSPECIFIED"]}`: "every.spec.enums[0]", `{"enums": ["TIER_BASIC", 9]}`: "every.spec.enums[1]", `{"floats": ["Infinity"]}`: "every.spec.floats[0]",
		`{"bigs": ["-9007199254740992"]}`: "every.spec.bigs[0]",
	} {
		_, err := w.call("UpsertEvery", `{"every": {"metadata": {"name": "a"}, "spec": `+bad+`}}`)
		if got := refused(t, err, connect.CodeInvalidArgument, failure.CodeBadUserInput); !strings.HasPrefix(got, at+": ") {
			t.Errorf("%s: %s", bad, got)
		}
	}
	m := w.method("UpsertEvery")
	in := w.message(m.Input(), `{"every": {"metadata": {"name": "a"}, "spec": {"object": {"at": "2026-01-01T00:00:00Z"}}}}`)
	at := in.Get(m.Input().Fields().ByName("every")).Message()
	for _, name := range []protoreflect.Name{"spec", "object", "at"} {
		at = at.Get(at.Descriptor().Fields().ByName(name)).Message()
	}
	at.Set(at.Descriptor().Fields().ByName("nanos"), protoreflect.ValueOfInt32(-1))
	_, err := w.send(m, in)
	if got := refused(t, err, connect.CodeInvalidArgument, failure.CodeBadUserInput); !strings.HasPrefix(got, "every.spec.object.at: ") {
		t.Error(got)
	}
}
