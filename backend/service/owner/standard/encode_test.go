package standard_test

import (
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/owner"
	"github.com/sluicegw/sluice/backend/service/owner/standard/standardtest"
)

// notes returns the hidden notes of the parts of a Thing.
func notes(m protoreflect.Message) (out []string) {
	at, parts := standardtest.Field(proto.Clone(m.Interface()).ProtoReflect(), "parts")
	list := at.Get(parts).List()
	for i := range list.Len() {
		out = append(out, textIn(list.Get(i).Message(), "note.type_url"))
	}
	return out
}

func TestWrite_ElementsOfListsKeepTheirHiddenFields(t *testing.T) {
	cfg := thingConfig(t, map[string]string{
		"Thing": "repeated Part parts = 4;",
		"file":  "message Part { string a = 1; int32 n = 2; bool on = 3; google.protobuf.Any note = 4; }",
	})
	for _, one := range []struct {
		name, parts string
		want        []string
		outcome     owner.Outcome
	}{
		{"spelled zeros", `[{"a":"x","n":0,"on":false},{"a":"y","n":0}]`, []string{"x", "y"}, owner.Done},
		{"another order", `[{"a":"y"},{"a":"x","n":0.0}]`, []string{"y", "x"}, owner.Done},
		{"a changed element", `[{"a":"x"},{"a":"z","n":3}]`, []string{"x", "y"}, owner.Done},
		{"one more", `[{"a":"x"},{"a":"new"},{"a":"y"}]`, []string{"x", "", "y"}, owner.Done},
		{"one less", `[{"a":"y","on":false}]`, []string{"y"}, owner.Done},
		{"one less and another changed", `[{"a":"z"}]`, nil, owner.Invalid},
		{"no object", `[1,{"a":"y"}]`, nil, owner.Invalid},
	} {
		t.Run(one.name, func(t *testing.T) {
			w := newWorld(t, cfg, "", nil)
			w.server.Put("a", func(m protoreflect.Message) {
				at, parts := standardtest.Field(m, "parts")
				for _, text := range []string{"x", "y"} {
					part := at.Mutable(parts).List().AppendMutable().Message()
					standardtest.SetText(part, "a", text)
					standardtest.SetText(part, "note.type_url", text)
				}
			})
			thing := owner.Resource{
				Key: backend.Key{Kind: "Thing", Name: "a"}, Spec: []byte(`{"text":"t","parts":` + one.parts + `}`),
			}
			a := w.write(t, owner.Write{Resource: thing, IfTag: textIn(w.server.Show("a"), "etag")}, one.outcome)
			if one.outcome != owner.Done {
				if len(a.Violations) != 1 {
					t.Errorf("%+v", a)
				}
				return
			}
			got := notes(w.server.Show("a"))
			if len(got) != len(one.want) {
				t.Fatalf("%q, want %q", got, one.want)
			}
			for i := range got {
				if got[i] != one.want[i] {
					t.Errorf("%q, want %q", got, one.want)
				}
			}
		})
	}
}
