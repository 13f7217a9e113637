package rpc_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/servicetest"
)

// thing is a kind with a spec and a status.
func thing(spec, status *descriptor.Shape) descriptor.Kind {
	k := servicetest.Widget()
	k.Name, k.Singular, k.Plural = "Thing", "thing", "things"
	k.FilterableFields = nil
	k.Spec, k.Status = spec, status
	return k
}

// store stores the body of a thing without the service, as another gateway could do.
func (w *world) store(name, text string) {
	w.T.Helper()
	key := backend.Key{Kind: "Thing", Namespace: "default", Name: name}
	w.Put(key, backend.Put{UID: "uid-" + name, Caller: true, Body: backend.EncodeBody([]byte(text))})
}

// randomTypes makes types and stored bodies at random.
type randomTypes struct {
	*rand.Rand
	shapes int
	enum   *descriptor.Enum
}

// shape returns a type whose objects are nested in at most depth levels.
func (r *randomTypes) shape(depth int) *descriptor.Shape {
	r.shapes++
	out := &descriptor.Shape{Name: fmt.Sprintf("Shape%d", r.shapes)}
	types := []descriptor.FieldType{
		descriptor.TypeString, descriptor.TypeInt, descriptor.TypeSafeInt, descriptor.TypeFloat, descriptor.TypeBoolean,
		descriptor.TypeTime, descriptor.TypeEnum, descriptor.TypeMap, descriptor.TypeObject, descriptor.TypeObject,
	}
	for i := range 1 + r.IntN(12) {
		f := descriptor.Field{Name: fmt.Sprintf("f%d", i), Type: types[r.IntN(len(types))], ListType: descriptor.ListAtomic}
		switch {
		case f.Type == descriptor.TypeObject && depth == 0:
			continue
		case f.Type == descriptor.TypeObject:
			f.Shape = r.shape(depth - 1)
		case f.Type == descriptor.TypeEnum:
			f.Enum = r.enum
		}
		f.List = f.Type != descriptor.TypeMap && r.IntN(3) == 0
		if !f.List {
			f.ListType = ""
		}
		out.Fields = append(out.Fields, f)
	}
	return out
}

// pick returns one of the texts.
func (r *randomTypes) pick(texts ...string) string { return texts[r.IntN(len(texts))] }

// space returns white space, or nothing.
func (r *randomTypes) space() string { return r.pick("", "", "", " ", "\n\t") }

// object returns an object of a type in stored form.
func (r *randomTypes) object(s *descriptor.Shape) string {
	var members []string
	for i := range s.Fields {
		f := &s.Fields[i]
		switch r.IntN(8) {
		case 0, 1:
			continue
		case 2:
			members = append(members, `"`+f.Name+`":null`)
			continue
		}
		members = append(members, `"`+f.Name+`"`+r.space()+`:`+r.space()+r.field(f))
	}
	if r.IntN(4) == 0 {
		members = append(members, `"unknown":[{"f0":"\""},null]`)
	}
	r.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	return "{" + r.space() + strings.Join(members, r.space()+","+r.space()) + "}"
}

func (r *randomTypes) field(f *descriptor.Field) string {
	if !f.List {
		return r.value(f)
	}
	elements := make([]string, r.IntN(4))
	for i := range elements {
		elements[i] = r.value(f)
	}
	return "[" + r.space() + strings.Join(elements, r.space()+",") + r.space() + "]"
}

func (r *randomTypes) value(f *descriptor.Field) string {
	switch f.Type {
	case descriptor.TypeObject:
		return r.object(f.Shape)
	case descriptor.TypeMap:
		return r.pick(`{}`, `{"":""}`, `{"a b":"c\n"}`, `{ "a" : null , "b":"\ud83d\ude00" }`, `{"a":"1","a":"2"}`)
	case descriptor.TypeInt:
		return r.pick("0", "-0", "1", "-1", "2147483647", "-2147483648", strconv.Itoa(r.IntN(1000)))
	case descriptor.TypeSafeInt:
		return r.pick(
			"0", "-0", "-1", "9007199254740991", "9007199254740993", "9223372036854775807", "-9223372036854775808",
		)
	case descriptor.TypeFloat:
		return r.pick("0", "-0", "-0.0", "1e300", "5e-324", "0.1", "-1E+2", "9007199254740993", "1e-999")
	case descriptor.TypeBoolean:
		return r.pick("true", "false")
	case descriptor.TypeEnum:
		return r.pick(`"basic"`, `"large tier"`, `"large\u0020tier"`, `"BASIC"`, `"newer"`, `""`)
	case descriptor.TypeTime:
		return r.pick(
			`"0001-01-01T00:00:00Z"`, `"9999-12-31T23:59:59.999999999Z"`, `"1970-01-01T00:00:00Z"`, `"1969-12-31T23:59:59.5Z"`,
			`"2026-01-31T13:00:00+01:00"`, `"2026-01-31t12:00:00\u005a"`, `"0000-12-31T23:59:59Z"`, `"yesterday"`, `""`,
		)
	}
	return r.pick(
		`""`, `"a"`, `"\u0000\""`, `"ä\ud83d\ude00"`, `"\ud83d"`, "\"\xff\"", `"`+strings.Repeat("x", 127)+`"`,
		`"`+strings.Repeat("y", 128)+`"`, `"`+strings.Repeat("ü", 20_000)+`"`,
	)
}

// expected returns the message of an object, as it is made with the methods of a dynamic message.
func (w *world) expected(of protoreflect.MessageDescriptor, s *descriptor.Shape, tree map[string]any) *dynamicpb.Message {
	w.T.Helper()
	out := dynamicpb.NewMessage(of)
	for i := range s.Fields {
		f := &s.Fields[i]
		at := w.schema.Field(of, s.Name, f)
		switch value := tree[f.Name].(type) {
		case nil:
		case []any:
			list := out.NewField(at).List()
			for _, element := range value {
				if v := w.expectedValue(at, f, element); v.IsValid() {
					list.Append(v)
				}
			}
			out.Set(at, protoreflect.ValueOfList(list))
		case map[string]any:
			if f.Type != descriptor.TypeMap {
				out.Set(at, w.expectedValue(at, f, value))
				continue
			}
			entries := out.NewField(at).Map()
			for key, entry := range value {
				text, _ := entry.(string)
				entries.Set(protoreflect.ValueOfString(key).MapKey(), protoreflect.ValueOfString(text))
			}
			out.Set(at, protoreflect.ValueOfMap(entries))
		default:
			if v := w.expectedValue(at, f, value); v.IsValid() {
				out.Set(at, v)
			}
		}
	}
	return out
}

// expectedValue returns the value of a field, or of an element of a list. It is invalid for a time that a message
// cannot have.
func (w *world) expectedValue(at protoreflect.FieldDescriptor, f *descriptor.Field, value any) protoreflect.Value {
	w.T.Helper()
	switch f.Type {
	case descriptor.TypeObject:
		return protoreflect.ValueOfMessage(w.expected(at.Message(), f.Shape, value.(map[string]any)))
	case descriptor.TypeInt:
		n, _ := value.(json.Number).Int64()
		return protoreflect.ValueOfInt32(int32(n))
	case descriptor.TypeSafeInt:
		n, _ := value.(json.Number).Int64()
		return protoreflect.ValueOfInt64(n)
	case descriptor.TypeFloat:
		n, _ := value.(json.Number).Float64()
		return protoreflect.ValueOfFloat64(n)
	case descriptor.TypeBoolean:
		return protoreflect.ValueOfBool(value.(bool))
	case descriptor.TypeEnum:
		return protoreflect.ValueOfEnum(w.schema.Values(f.Enum)[value.(string)])
	case descriptor.TypeTime:
		t, err := time.Parse(time.RFC3339Nano, strings.ToUpper(value.(string)))
		if err != nil || t.Year() < 1 {
			return protoreflect.Value{}
		}
		out := dynamicpb.NewMessage(at.Message())
		out.Set(at.Message().Fields().ByName("seconds"), protoreflect.ValueOfInt64(t.Unix()))
		out.Set(at.Message().Fields().ByName("nanos"), protoreflect.ValueOfInt32(int32(t.Nanosecond())))
		return protoreflect.ValueOfMessage(out)
	}
	return protoreflect.ValueOfString(value.(string))
}

// TestEncode_AnAnswerIsWhatADynamicMessageWouldBe compares answers with messages that are built field by field from
// the stored bodies, for random types and bodies.
func TestEncode_AnAnswerIsWhatADynamicMessageWouldBe(t *testing.T) {
	const catalogues, resources = 10, 40
	seed := rand.Uint64()
	t.Log("seed", seed)
	for i := range uint64(catalogues) {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			r := &randomTypes{Rand: rand.New(rand.NewPCG(seed, i)), enum: &descriptor.Enum{Name: "Tier", Values: []descriptor.EnumValue{
				{Name: "BASIC", Stored: "basic"}, {Name: "LARGE", Stored: "large tier"},
			}}}
			k := thing(r.shape(3), r.shape(2))
			w := open(t, k)
			bodies := map[string]string{}
			for n := range resources {
				name := fmt.Sprintf("t%02d", n)
				bodies[name] = `{"version":"v1","metadata":{"generation":` + r.pick("1", "9223372036854775807") +
					`,"labels":` + r.pick(`null`, `{}`, `{"a":"b","c":""}`) + `,"finalizers":` + r.pick(`[]`, `["a.example/b",""]`) +
					`,"description":` + r.pick(`""`, `"d\n"`) + `},"spec":` + r.object(k.Spec) + `,"status":` + r.object(k.Status) + `}`
				w.store(name, bodies[name])
			}
			w.compare(&k, bodies)
		})
	}
}

// compare lists things in binary form and as JSON, and compares each with its stored body.
func (w *world) compare(k *descriptor.Kind, bodies map[string]string) {
	w.T.Helper()
	for _, options := range [][]connect.ClientOption{{connect.WithGRPC()}, {connect.WithProtoJSON()}} {
		w.options = options
		res, err := w.call("ListThings", `{"page_size": 1000}`)
		if err != nil {
			w.T.Fatal(err)
		}
		list := res.Msg.Get(res.Msg.Descriptor().Fields().ByName("things")).List()
		if list.Len() != len(bodies) {
			w.T.Fatal(list.Len(), "things, not", len(bodies))
		}
		for i := range list.Len() {
			got := list.Get(i).Message()
			metadata := got.Get(fieldOf(got, "metadata")).Message()
			name := metadata.Get(fieldOf(metadata, "name")).String()
			dec := json.NewDecoder(strings.NewReader(bodies[name]))
			dec.UseNumber()
			var tree map[string]any
			if err := dec.Decode(&tree); err != nil {
				w.T.Fatal(err, bodies[name])
			}
			for part, of := range map[string]*descriptor.Shape{"spec": k.Spec, "status": k.Status} {
				at := fieldOf(got, protoreflect.Name(part))
				want := w.expected(at.Message(), of, tree[part].(map[string]any))
				if has := got.Get(at).Message().Interface(); !proto.Equal(has, want) {
					w.T.Errorf("%s of %s:\n%s\nnot %s", part, bodies[name], protojson.Format(has), protojson.Format(want))
				}
			}
			generation := tree["metadata"].(map[string]any)["generation"].(json.Number)
			if n := metadata.Get(fieldOf(metadata, "generation")).Int(); strconv.FormatInt(n, 10) != string(generation) {
				w.T.Errorf("generation %d, not %s", n, generation)
			}
		}
	}
}
