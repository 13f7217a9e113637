package rpc_test

import (
	"bytes"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/sluicegw/sluice/graph/rpc"
)

// post sends bytes as a request of Connect, and returns the status and the answer.
func (w *world) post(method, contentType string, body []byte) (int, string) {
	w.T.Helper()
	m := w.method(method)
	url := w.url + "/" + string(m.Parent().FullName()) + "/" + string(m.Name())
	req, err := http.NewRequestWithContext(w.T.Context(), http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		w.T.Fatal(err)
	}
	req.Header.Set("Content-Type", contentType)
	res, err := w.client.Do(req)
	if err != nil {
		w.T.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	var out bytes.Buffer
	_, _ = out.ReadFrom(res.Body)
	return res.StatusCode, out.String()
}

// clear deletes all resources of a kind, which must be readable.
func (w *world) clear(kind string) {
	w.T.Helper()
	for {
		list := w.method("List" + kind + "s")
		res, err := w.call(string(list.Name()), `{}`)
		if err != nil {
			w.T.Fatal(err)
		}
		resources := res.Msg.Get(list.Output().Fields().ByNumber(1)).List()
		if resources.Len() == 0 {
			return
		}
		for i := range resources.Len() {
			resource := resources.Get(i).Message()
			metadata := resource.Get(fieldOf(resource, "metadata")).Message()
			deletion := w.message(w.method("Delete"+kind).Input(), `{}`)
			for _, name := range []protoreflect.Name{"name", "namespace"} {
				deletion.Set(fieldOf(deletion, name), metadata.Get(fieldOf(metadata, name)))
			}
			if _, err := w.send(w.method("Delete"+kind), deletion); err != nil {
				w.T.Fatal(err)
			}
		}
	}
}

func fieldOf(m protoreflect.Message, name protoreflect.Name) protoreflect.FieldDescriptor {
	return m.Descriptor().Fields().ByName(name)
}

// nest returns a message in a field of another.
func nest(inside []byte, numbers ...protowire.Number) []byte {
	for _, number := range numbers {
		inside = protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), inside)
	}
	return inside
}

func TestWire_TooManyValuesAreRefusedBeforeTheyAreRead(t *testing.T) {
	w := open(t)
	spec := w.schema.Kinds[0].Part("spec")
	parts := spec.Message().Fields().ByName("parts").Number()
	many := bytes.Repeat(nest(nil, parts), rpc.MaxValues+1)
	if status, text := w.post("CreateWidget", "application/proto", nest(many, spec.Number(), 1)); status != http.StatusBadRequest || !strings.Contains(text, "200000 values") {
		t.Error(status, text)
	}
	list := `{"widget": {"spec": {"tags": [` + strings.Repeat(`"",`, rpc.MaxValues) + `""]}}}`
	if status, text := w.post("CreateWidget", "application/json", []byte(list)); status != http.StatusBadRequest || !strings.Contains(text, "200000 values") {
		t.Error(status, text)
	}
	commas := `{"site": {"metadata": {"name": "a", "annotations": {"a": "` + strings.Repeat(`\",{[`, rpc.MaxValues/4) + `"}}, "spec": {"title": "t"}}}`
	if status, text := w.post("CreateSite", "application/json", []byte(commas)); status != http.StatusOK {
		t.Error(status, text)
	}
	if status, text := w.post("CreateWidget", "application/proto", make([]byte, 4<<20+1)); status != http.StatusTooManyRequests {
		t.Error(status, text)
	}
	if status, text := w.post("CreateWidget", "application/json", []byte(`{"widget": {"spec": {"titel": ""}}}`)); status != http.StatusBadRequest || !strings.Contains(text, "titel") {
		t.Error(status, text)
	}
}

func TestWire_ErrorsAboutJSONQuoteNoValues(t *testing.T) {
	w := open(t)
	for body, want := range map[string]string{
		`{"secret": {"spec": {"stringData": {"password": 112233}}}}`:          "line 1:49: invalid value for string field value",
		`{"secret": {"spec": {"stringData": {"password": ["112233"]}}}}`:      "line 1:49: ",
		`{"secret": {"spec": {"stringData": {"password": "112233}}}}`:         "",
		`{"secret": {"spec": {"stringData": {"password": 112233x}}}}`:         "",
		`{"secret": {"spec": {"stringData": "112233"}}}`:                      "line 1:36: ",
		`{"secret": {"metadata": {"expires": "112233"}}}`:                     "line 1:37: invalid google.protobuf.Timestamp value",
		`{"secret": {"spec": {"pass": "112233"}}}`:                            `unknown field \"pass\"`,
		`{"secret": {"` + strings.Repeat("n", 100<<10) + `": "112233"}}`:      "unknown field",
		`{"secret": {"spec": {"type": "a", "type": "112233"}}}`:               "duplicate field",
		`{"secret": {"spec": {"stringData": {"p": "112233", "p": "112233"}}}`: "duplicate map key",
	} {
		status, text := w.post("CreateSecret", "application/json", []byte(body))
		if status != http.StatusBadRequest || strings.Contains(text, "112233") || !strings.Contains(text, want) || len(text) > 2<<10 {
			t.Errorf("%.100s: %d %.1000s", body, status, text)
		}
	}
}

// FuzzCreate sends any bytes as a request: it is refused or carried out, and what was stored can be read.
func FuzzCreate(f *testing.F) {
	f.Add([]byte{0x0a, 0x00}, false)
	f.Add([]byte(`{"widget": {"metadata": {"name": "a"}, "spec": {"title": "t", "parts": [{}]}}}`), true)
	f.Add(nest([]byte{0x08, 0x01}, 5, 1), false)
	w := open(f)
	f.Fuzz(func(t *testing.T, body []byte, isJSON bool) {
		w.with(t)
		contentType := "application/proto"
		if isJSON {
			contentType = "application/json"
		}
		for _, method := range []string{"CreateWidget", "UpdateWidget", "UpsertWidget", "GetWidget", "ListWidgets", "DeleteWidget"} {
			if status, text := w.post(method, contentType, body); status == http.StatusInternalServerError {
				t.Fatalf("%s: %s", method, text)
			}
		}
		w.clear("Widget")
	})
}
