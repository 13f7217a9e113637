package body_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/body"
	"github.com/sluicegw/sluice/backend/descriptor"
)

// kind has a field of every type, at several depths.
func kind() *descriptor.Kind {
	colour := &descriptor.Enum{Name: "Colour", Values: []descriptor.EnumValue{{Name: "DARK_RED", Stored: "dark-red"}, {Name: "BLUE", Stored: "blue"}}}
	fields := func(more ...descriptor.Field) []descriptor.Field {
		return append([]descriptor.Field{
			{Name: "text", Type: descriptor.TypeString}, {Name: "int", Type: descriptor.TypeInt}, {Name: "int64", Type: descriptor.TypeSafeInt},
			{Name: "float", Type: descriptor.TypeFloat}, {Name: "bool", Type: descriptor.TypeBoolean}, {Name: "enum", Type: descriptor.TypeEnum, Enum: colour},
			{Name: "map", Type: descriptor.TypeMap}, {Name: "texts", Type: descriptor.TypeString, List: true}, {Name: "ints", Type: descriptor.TypeInt, List: true},
			{Name: "floats", Type: descriptor.TypeFloat, List: true}, {Name: "bools", Type: descriptor.TypeBoolean, List: true}, {Name: "enums", Type: descriptor.TypeEnum, Enum: colour, List: true},
			{Name: "time", Type: descriptor.TypeTime}, {Name: "times", Type: descriptor.TypeTime, List: true},
		}, more...)
	}
	inner := &descriptor.Shape{Name: "Inner", Fields: fields(descriptor.Field{Name: "need", Type: descriptor.TypeInt, Required: true})}
	outer := &descriptor.Shape{Name: "Outer", Fields: fields(
		descriptor.Field{Name: "one", Type: descriptor.TypeObject, Shape: inner}, descriptor.Field{Name: "many", Type: descriptor.TypeObject, Shape: inner, List: true})}
	return &descriptor.Kind{Name: "Thing", Spec: outer, Status: &descriptor.Shape{Name: "Status", Fields: fields()}}
}

func read(text string) (*body.Body, error) {
	var c body.Compiler
	return c.Kind(kind()).Read(&backend.Resource{Body: backend.EncodeBody([]byte(text))})
}

// tree is what the spans of an object mean, as encoding/json would decode it.
func tree(b *body.Body, s *body.Shape, t body.Table) map[string]any {
	out := map[string]any{}
	for slot := range s.Fields {
		f, span := &s.Fields[slot], b.At(t, slot)
		if span.IsZero() {
			continue
		}
		switch {
		case f.List && f.Type == descriptor.TypeObject:
			list := []any{}
			for i, at := range b.Objects(span) {
				if i != len(list) {
					panic("objects are not in order")
				}
				list = append(list, tree(b, f.Shape, at))
			}
			if len(list) != b.Len(span) {
				panic("the number of objects differs")
			}
			out[f.Name] = list
		case f.Type == descriptor.TypeObject:
			out[f.Name] = tree(b, f.Shape, b.Object(span))
		case f.Type == descriptor.TypeMap:
			m := map[string]any{}
			for k, v := range b.Entries(span) {
				m[k] = v
			}
			out[f.Name] = m
		case f.List:
			list := []any{}
			for raw := range b.Scalars(span) {
				list = append(list, scalar(raw))
			}
			if span.Ready() { // then its bytes are those of the elements
				joined := []string{}
				for raw := range b.Scalars(span) {
					joined = append(joined, string(raw))
				}
				if want := "[" + strings.Join(joined, ",") + "]"; string(b.Bytes(span)) != want {
					panic(fmt.Sprintf("%q is said to be ready", b.Bytes(span)))
				}
			}
			out[f.Name] = list
		case b.Bytes(span)[0] == '"':
			out[f.Name] = b.Text(span)
		default:
			out[f.Name] = scalar(b.Bytes(span))
		}
	}
	return out
}

func scalar(raw []byte) any {
	switch raw[0] {
	case '"':
		return string(body.Unquote(nil, raw))
	case 't':
		return true
	case 'f':
		return false
	case '{', '[': // instead of a time
		return decoded(string(raw))
	}
	return json.Number(raw)
}

// decoded is what encoding/json reads from a text, nil if it reads nothing.
func decoded(text string) (v any) {
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	if !json.Valid([]byte(text)) || dec.Decode(&v) != nil {
		return nil
	}
	return v
}

// reference says by encoding/json what a text means, nil if it is unreadable.
func reference(text string) map[string]any {
	top, ok := decoded(text).(map[string]any)
	if !ok {
		return nil
	}
	k := kind()
	metadata := &descriptor.Shape{Fields: []descriptor.Field{{Name: "generation", Type: descriptor.TypeSafeInt}, {Name: "labels", Type: descriptor.TypeMap}, {Name: "annotations", Type: descriptor.TypeMap}, {Name: "description", Type: descriptor.TypeString}}}
	root := &descriptor.Shape{Fields: []descriptor.Field{
		{Name: "subKind", Type: descriptor.TypeString}, {Name: "version", Type: descriptor.TypeString}, {Name: "metadata", Type: descriptor.TypeObject, Shape: metadata},
		{Name: "spec", Type: descriptor.TypeObject, Shape: k.Spec, Required: true}, {Name: "status", Type: descriptor.TypeObject, Shape: k.Status},
	}}
	if status, ok := top["status"]; ok && status == nil {
		return nil
	}
	out, ok := known(root, top)
	if !ok {
		return nil
	}
	return out
}

func known(s *descriptor.Shape, m map[string]any) (map[string]any, bool) {
	out := map[string]any{}
	for _, f := range s.Fields {
		v, ok := m[f.Name]
		if !ok || v == nil {
			if f.Required {
				return nil, false
			}
			continue
		}
		if f.Type == descriptor.TypeTime && !f.List {
			out[f.Name] = v
			continue
		}
		if !f.List {
			if out[f.Name], ok = value(f, v); !ok {
				return nil, false
			}
			continue
		}
		list, ok := v.([]any)
		if !ok {
			return nil, false
		}
		all := []any{}
		for _, e := range list {
			one, ok := value(f, e)
			if !ok {
				return nil, false
			}
			all = append(all, one)
		}
		out[f.Name] = all
	}
	return out, true
}

func value(f descriptor.Field, v any) (any, bool) {
	switch f.Type {
	case descriptor.TypeObject:
		m, ok := v.(map[string]any)
		if !ok {
			return nil, false
		}
		return known(f.Shape, m)
	case descriptor.TypeMap:
		m, ok := v.(map[string]any)
		if !ok {
			return nil, false
		}
		out := map[string]any{}
		for k, e := range m {
			if e == nil {
				e = ""
			}
			if out[k], ok = e.(string); !ok {
				return nil, false
			}
		}
		return out, true
	case descriptor.TypeBoolean:
		b, ok := v.(bool)
		return b, ok
	case descriptor.TypeInt, descriptor.TypeSafeInt, descriptor.TypeFloat:
		n, ok := v.(json.Number)
		if !ok {
			return nil, false
		}
		if f.Type == descriptor.TypeFloat {
			_, err := n.Float64()
			return n, err == nil
		}
		i, err := strconv.ParseInt(n.String(), 10, 64)
		return n, err == nil && (f.Type == descriptor.TypeSafeInt || i <= math.MaxInt32 && i >= math.MinInt32)
	}
	s, ok := v.(string)
	return s, ok
}

// repeats reports whether a valid text has a name twice in an object: the value
// that does not count is read too, and may be what is refused.
func repeats(text string) bool {
	names, inText := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case inText && c == '\\':
			i++
		case c == '"':
			inText = !inText
		case c == ':' && !inText:
			names++
		}
	}
	var count func(v any) int
	count = func(v any) (n int) {
		switch v := v.(type) {
		case map[string]any:
			for _, e := range v {
				n += 1 + count(e)
			}
		case []any:
			for _, e := range v {
				n += count(e)
			}
		}
		return n
	}
	var v any
	_ = json.Unmarshal([]byte(text), &v)
	return count(v) < names
}

func check(t *testing.T, text string) {
	t.Helper()
	want := reference(text)
	b, err := read(text)
	if err != nil {
		if !errors.Is(err, backend.ErrUnreadable) {
			t.Errorf("%q: error %v is not ErrUnreadable", text, err)
		}
		if want != nil && strings.Count(text, "{")+strings.Count(text, "[") < 90 && !repeats(text) {
			t.Errorf("%q: %v, want %v", text, err, want)
		}
		return
	}
	if want == nil {
		t.Errorf("%q is read, and is no acceptable text", text)
		return
	}
	if diff := cmp.Diff(want, tree(b, b.Shape, body.Root)); diff != "" {
		t.Errorf("%q: %s", text, diff)
	}
	stored := *b.Stored
	if kept, _, _, err := new(body.Arena).Keep(b.Shape, &stored, func(*body.Body) []byte { return nil }); err != nil {
		t.Errorf("%q: read, and not kept: %v", text, err)
	} else if d := difference(b.Shape, &kept, body.Root, b, body.Root); d != "" {
		t.Errorf("%q: kept otherwise than read: %s", text, d)
	}
}

func bodies() []string {
	whole := `{"subKind":"s","version":"v1","metadata":{"generation":3,"labels":{"a":"b"},"description":"d"},"spec":{"text":"t","int":-5,"int64":9007199254740991,"float":1.5e3,"bool":true,"enum":"dark-red","map":{"k":"v","a":null},"texts":["a","b"],"ints":[1,2],"floats":[0.5],"bools":[true,false],"enums":["blue"],"one":{"need":1},"many":[{"need":2,"text":"x"},{"need":3,"texts":[]}]},"status":{"text":"s"}}`
	out := []string{whole, strings.ReplaceAll(strings.ReplaceAll(whole, ":", " : "), ",", "\n,\t"),
		strings.Replace(whole, `"description":"d"`, `"description":"`+strings.Repeat("d", 300)+`"`, 1), `{"spec":{}}`, ``, `null`, `[]`, `{`, `{}`, `{"spec":null}`, `{"spec":[]}`, `{"spec":{}}x`, `{"spec":{}} `, `{"spec":{},}`, `{"spec":{},"status":null}`}
	for _, value := range []string{
		`"a"`, `""`, `"\u003c\n\"\\\/\b\f\r\t"`, `"\ud83d\ude00"`, `"\ud83d"`, `"\ude00\ud83d"`, `"\ud83dx"`, `"\x"`, `"\u12"`, `"`, "\"\x01\"", "\"\xff\"", "\"a\xc3\"", "\"\u2028\"",
		`0`, `-0`, `1`, `01`, `1.`, `.5`, `1.0`, `1e2`, `1E+2`, `1e`, `-`, `+1`, `2147483647`, `2147483648`, `-2147483648`, `9223372036854775807`, `9223372036854775808`, `1e999`,
		`true`, `false`, `tru`, `null`, `[]`, `[ ]`, `[1]`, `[1, 2]`, `[1 ,2]`, `[1,]`, `[,1]`, `[null]`, `["a",null]`, `["a" ]`, `["<","\u003c"]`, `[true]`, `[1.0]`, `[[1]]`, `[{}]`, `[{"need":1}]`, `[{"need":1} , {"need":2}]`,
		`{}`, `{ }`, `{"a":"b"}`, `{"a":null}`, `{"a":1}`, `{"a":"b",}`, `{"a"}`, `{a:1}`, `{"need":1}`, `{"need":null}`, `{"need":1,"need":2}`, `{"need":1,"need":null}`, `{"n\u0065ed":1}`, `{"need":1,"unknown":[{"a":[1,{"b":"\u0041"}]},null,1.5e3,"x"]}`,
		`"dark-red"`, `"violet"`, `"dark\u002dred"`, strings.Repeat("[", 120) + strings.Repeat("]", 120),
	} {
		for _, name := range []string{"text", "int", "int64", "float", "bool", "enum", "map", "texts", "ints", "floats", "bools", "enums", "time", "times", "one", "many", "unknown"} {
			out = append(out, fmt.Sprintf(`{"spec":{%q:%s}}`, name, value))
		}
		out = append(out, fmt.Sprintf(`{"metadata":%s,"spec":{}}`, value), fmt.Sprintf(`{"metadata":{"labels":%s},"spec":{}}`, value), fmt.Sprintf(`{"version":%s,"spec":{},"other":%[1]s}`, value))
	}
	return out
}

func TestBody_ABodyIsReadAsEncodingJSONReadsIt(t *testing.T) {
	for _, text := range bodies() {
		check(t, text)
	}
}

func TestBody_ABodyThatIsCutOffIsUnreadable(t *testing.T) {
	whole := bodies()[0]
	for i := range whole {
		check(t, whole[:i])
	}
}

func FuzzRead(f *testing.F) {
	for _, text := range bodies() {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) { check(t, text) })
}

func TestBody_WhatIsReadyIsCopiedAndTheRestIsNot(t *testing.T) {
	b, err := read(`{"spec":{"text":"<é","int":-0,"texts":["a","b"],"ints":[1, 2],"enum":"blue","bools":[true,false],"floats":[]}}`)
	if err != nil {
		t.Fatal(err)
	}
	spec := b.Object(b.At(body.Root, body.SlotSpec))
	shape := b.Shape.Fields[body.SlotSpec].Shape
	for name, want := range map[string]bool{"text": true, "int": false, "texts": true, "ints": false, "enum": false, "bools": true, "floats": true} {
		slot, _ := shape.Slot(name)
		if got := b.At(spec, slot).Ready(); got != want {
			t.Errorf("%s: ready %v, want %v", name, got, want)
		}
	}
}

func TestBody_FindFollowsAPath(t *testing.T) {
	var c body.Compiler
	root := c.Kind(kind())
	slots, f, err := root.Find("spec.many.texts")
	if err != nil || f.Name != "texts" || len(slots) != 3 || slots[0] != body.SlotSpec {
		t.Errorf("%v %v %v", slots, f, err)
	}
	for _, path := range []string{"spec.none", "none", "spec.text.more", ""} {
		if _, _, err := root.Find(path); err == nil {
			t.Errorf("%q is found", path)
		}
	}
}

func TestBody_BodiesThatAreReadTogetherAreThoseThatAreReadAlone(t *testing.T) {
	var c body.Compiler
	shape := c.Kind(kind())
	var together body.Arena
	for round := range 50 {
		for _, text := range append(bodies(), `{"version":"v1"}`, `{"spec":{"text":"a"},"status":{"text":1}}`, `{"spec":{"int":1,"one":{"need":1},"many":[{"need":2},{"need":"x"}]}}`) {
			stored := &backend.Resource{Body: backend.EncodeBody([]byte(text))}
			want, wantErr := shape.Read(stored)
			got, err := together.Read(shape, stored)
			if (err == nil) != (wantErr == nil) {
				t.Fatalf("round %d, %s: together %v, alone %v", round, text, err, wantErr)
			}
			if err == nil && got.Tape() != want.Tape() {
				t.Fatalf("round %d, %s:\ntogether %s\nalone    %s", round, text, got.Tape(), want.Tape())
			}
		}
	}
}

func TestBody_NamesInAnyOrderAreFound(t *testing.T) {
	var c body.Compiler
	shape := c.Kind(kind())
	members := []string{`"text":"a"`, `"int":1`, `"int64":2`, `"float":1.5`, `"bool":true`, `"map":{"k":"v"}`, `"texts":["x"]`, `"unknown":[{}]`, `"ints":[1]`, `"enum":"blue"`}
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		random.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
		text := `{"status":{},"spec":{` + strings.Join(members, ",") + `},"version":"v1"}`
		b, err := shape.Read(&backend.Resource{Body: backend.EncodeBody([]byte(text))})
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		spec := b.Object(b.At(body.Root, body.SlotSpec))
		for _, m := range members {
			name, value, _ := strings.Cut(m, ":")
			slot, ok := shape.Fields[body.SlotSpec].Shape.Slot(strings.Trim(name, `"`))
			if !ok {
				continue
			}
			if got := string(b.Bytes(b.At(spec, slot))); got != value {
				t.Fatalf("%s: %s is %s", text, name, got)
			}
		}
	}
}

func BenchmarkRead(b *testing.B) {
	var c body.Compiler
	root := c.Kind(kind())
	stored := &backend.Resource{Body: backend.EncodeBody(bytes.TrimSpace([]byte(bodies()[0])))}
	b.ReportAllocs()
	b.SetBytes(int64(len(stored.Body)))
	for b.Loop() {
		if _, err := root.Read(stored); err != nil {
			b.Fatal(err)
		}
	}
}

func TestBody_ShapesThatHoldThemselvesAreReadAtAnyDepth(t *testing.T) {
	leaf := &descriptor.Shape{Name: "Tree"}
	fields := []descriptor.Field{{Name: "one", Type: descriptor.TypeObject, Shape: leaf}, {Name: "many", Type: descriptor.TypeObject, List: true, Shape: leaf}}
	for i := range 30 { // more than are compared in order
		fields = append(fields, descriptor.Field{Name: fmt.Sprintf("f%02d", i), Type: descriptor.TypeSafeInt})
	}
	leaf.Fields = fields
	rnd := rand.New(rand.NewPCG(3, 4))
	var grow func(depth int) map[string]any
	grow = func(depth int) map[string]any {
		out := map[string]any{}
		for range rnd.IntN(6) {
			out[fmt.Sprintf("f%02d", rnd.IntN(30))] = json.Number(fmt.Sprint(rnd.Int64()))
		}
		if depth > 0 && rnd.IntN(4) > 0 {
			out["one"] = grow(depth - 1)
		}
		if depth > 0 && rnd.IntN(3) == 0 {
			many := []any{}
			for range rnd.IntN(4) {
				many = append(many, grow(depth-1))
			}
			out["many"] = many
		}
		return out
	}
	var c body.Compiler
	shape := c.Kind(&descriptor.Kind{Name: "Thing", Spec: leaf})
	var arena body.Arena
	var read []*body.Body
	var want []map[string]any
	for range 500 {
		tree := map[string]any{"spec": grow(rnd.IntN(12))}
		raw, _ := json.Marshal(tree)
		if rnd.IntN(4) == 0 {
			cut := raw[:rnd.IntN(len(raw))]
			if _, err := arena.Read(shape, &backend.Resource{Body: backend.EncodeBody(cut)}); !errors.Is(err, backend.ErrUnreadable) {
				t.Fatalf("%s: %v", cut, err)
			}
		}
		b, err := arena.Read(shape, &backend.Resource{Body: backend.EncodeBody(raw)})
		if err != nil {
			t.Fatalf("%s: %v", raw, err)
		}
		read, want = append(read, b), append(want, tree)
	}
	for i, b := range read {
		if diff := cmp.Diff(want[i], tree(b, b.Shape, body.Root)); diff != "" {
			t.Fatal(diff)
		}
	}
}
