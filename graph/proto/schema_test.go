package proto_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/bufbuild/protocompile"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/graph/kinds/kindstest"
	catalogue "github.com/sluicegw/sluice/graph/proto"
)

// pointers returns pointers to kinds.
func pointers(kinds []descriptor.Kind) (out []*descriptor.Kind) {
	for i := range kinds {
		out = append(out, &kinds[i])
	}
	return out
}

// numbered returns the schema of kinds, and the numbers that they got.
func numbered(t *testing.T, n *catalogue.Numbers, kinds ...*descriptor.Kind) *catalogue.Schema {
	t.Helper()
	n.Add(kinds)
	s, err := catalogue.New(kinds, n)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func numbers(t *testing.T) *catalogue.Numbers {
	t.Helper()
	n, err := catalogue.NewNumbers("acme.shop.v1")
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// checkPrinted compiles the text of a schema, and compares the result with its descriptor.
func checkPrinted(t *testing.T, s *catalogue.Schema) {
	t.Helper()
	files := protocompile.SourceAccessorFromMap(map[string]string{s.Path(): s.Print()})
	compiler := protocompile.Compiler{Resolver: protocompile.WithStandardImports(&protocompile.SourceResolver{Accessor: files})}
	compiled, err := compiler.Compile(t.Context(), s.Path())
	if err != nil {
		t.Fatalf("%v\n%s", err, s.Print())
	}
	want, got := protodesc.ToFileDescriptorProto(s.File), protodesc.ToFileDescriptorProto(compiled[0])
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Errorf("the text is not what is served: %s\n%s", diff, s.Print())
	}
}

func TestSchema_TheTextOfTheEmbeddedCatalogueIsWhatIsServed(t *testing.T) {
	checkPrinted(t, numbered(t, numbers(t), pointers(kindstest.Kinds(t))...))
}

// item returns a kind with fields in its spec.
func item(fields ...descriptor.Field) *descriptor.Kind {
	return &descriptor.Kind{
		Name: "Item", Singular: "item", Plural: "items", Version: "v1", Scope: descriptor.Namespaced,
		Verbs: []descriptor.Verb{
			descriptor.VerbGet, descriptor.VerbList, descriptor.VerbWatch, descriptor.VerbCreate, descriptor.VerbUpdate,
			descriptor.VerbUpsert, descriptor.VerbDelete,
		},
		Spec:   &descriptor.Shape{Name: "ItemSpec", Fields: fields},
		Status: &descriptor.Shape{Name: "ItemStatus", Fields: []descriptor.Field{text("phase")}},
	}
}

func text(name string) descriptor.Field {
	return descriptor.Field{Name: name, Type: descriptor.TypeString}
}

func enumOf(name, typ string, values ...string) descriptor.Field {
	e := &descriptor.Enum{Name: typ}
	for _, v := range values {
		e.Values = append(e.Values, descriptor.EnumValue{Name: v, Stored: strings.ToLower(v)})
	}
	return descriptor.Field{Name: name, Type: descriptor.TypeEnum, Enum: e}
}

func objectOf(name, typ string, fields ...descriptor.Field) descriptor.Field {
	return descriptor.Field{Name: name, Type: descriptor.TypeObject, Shape: &descriptor.Shape{Name: typ, Fields: fields}}
}

func TestSchema_NamesThatCollideInProtobufAreToldApart(t *testing.T) {
	s := numbered(t, numbers(t), item(
		text("a_b"), text("aB"), text("A_b"), text("aB2"), text("_x"), text("__x"), text("HTTPPort"),
		text("message"), text("option"), text("optional"), text("repeated"), text("string"), text("reserved"), text("package"),
		text("google"), text("oneof"), text("rpc"), text("import"), text("syntax"), text("extend"), text("group"),
		enumOf("e", "E", "A_B", "B", "UNSPECIFIED"), enumOf("e_a", "E_A", "B", "b"), enumOf("eA", "EA", "B"),
		objectOf("meta", "ResourceMetadata", text("name")),
		objectOf("service", "ItemService", text("google"), descriptor.Field{Name: "at", Type: descriptor.TypeTime}),
		objectOf("request", "CreateItemRequest", text("x")),
		objectOf("lower", "string", text("x")), objectOf("Item_Spec", "itemspec", text("x")),
		descriptor.Field{Name: "labels", Type: descriptor.TypeMap}, descriptor.Field{Name: "Labels_", Type: descriptor.TypeMap},
	))
	checkPrinted(t, s)
}

func TestSchema_WhatWasRemovedIsReserved(t *testing.T) {
	n := numbers(t)
	numbered(t, n, item(text("gone"), text("stays"), enumOf("tier", "Tier", "BASIC", "LARGE")))
	s := numbered(t, n, item(text("stays"), enumOf("tier", "Tier", "LARGE"), descriptor.Field{Name: "gone", Type: descriptor.TypeInt}))
	checkPrinted(t, s)
	for _, line := range []string{
		"  reserved 1;\n", "optional int32 gone = 4;", "optional string stays = 2;", "TIER_LARGE = 2;",
		"enum Tier {\n  reserved 1;\n  reserved \"TIER_BASIC\";",
	} {
		if !strings.Contains(s.Print(), line) {
			t.Errorf("%q is not in\n%s", line, s.Print())
		}
	}
}

func TestSchema_ARenamedFieldKeepsItsNumber(t *testing.T) {
	n := numbers(t)
	numbered(t, n, item(text("first"), text("size")))
	renamed := text("size")
	renamed.APIName = "headCount"
	s := numbered(t, n, item(text("first"), renamed))
	checkPrinted(t, s)
	if !strings.Contains(s.Print(), "optional string head_count = 2;") {
		t.Error(s.Print())
	}
}

// TestSchema_ARenamedFieldIsServedWithEitherNumbers since the numbers are changed before the catalogue is, and gateways
// may start in between.
func TestSchema_ARenamedFieldIsServedWithEitherNumbers(t *testing.T) {
	renamed := text("size")
	renamed.APIName = "headCount"
	kinds := map[string]*descriptor.Kind{
		"optional string size = 2;":       item(text("first"), text("size"), enumOf("tier", "Tier", "BASIC")),
		"optional string head_count = 2;": item(text("first"), renamed, enumOf("tier", "Tier", "BASIC")),
	}
	for _, before := range kinds {
		n := numbers(t)
		numbered(t, n, before)
		file := string(n.File())
		for line, after := range kinds {
			s, err := catalogue.New([]*descriptor.Kind{after}, n)
			if err != nil || !strings.Contains(s.Print(), line) {
				t.Errorf("%s: %v", line, err)
			}
		}
		if string(n.File()) != file {
			t.Error("the numbers have changed")
		}
	}
}

func TestSchema_AnotherSpecTypeHasAnotherNumber(t *testing.T) {
	n := numbers(t)
	numbered(t, n, item(text("a")))
	next := item()
	next.Spec = &descriptor.Shape{Name: "ItemDetails", Fields: []descriptor.Field{text("b")}}
	s := numbered(t, n, next)
	checkPrinted(t, s)
	if !strings.Contains(s.Print(), "  reserved 5;\n") || !strings.Contains(s.Print(), "ItemDetails spec = 7;") {
		t.Error(s.Print())
	}
}

func TestSchema_WhatTheNumbersDoNotKnowIsNamed(t *testing.T) {
	n := numbers(t)
	n.Add([]*descriptor.Kind{item(text("a"))})
	_, err := catalogue.New([]*descriptor.Kind{item(text("a"), text("b"), enumOf("c", "C", "D"))}, n)
	want := "there are no numbers for ItemSpec.b; ItemSpec.c; enum C; C.D"
	if err == nil || err.Error() != want {
		t.Errorf("%v, not %s", err, want)
	}
}

// randomFields returns fields of a spec by a seed: names and types come and go.
func randomFields(r *rand.Rand) (out []descriptor.Field) {
	names := []string{"a", "b", "aB", "a_b", "c", "d"}
	for _, name := range names {
		switch r.IntN(6) {
		case 0:
		case 1:
			out = append(out, descriptor.Field{Name: name, Type: descriptor.TypeInt, List: r.IntN(2) == 0})
		case 2:
			out = append(out, enumOf(name, []string{"E", "F"}[r.IntN(2)], []string{"A", "B", "C"}[r.IntN(3):]...))
		case 3:
			out = append(out, objectOf(name, "Inner", text("x")))
		default:
			f := text(name)
			if r.IntN(3) == 0 {
				f.APIName = name + "Renamed"
			}
			out = append(out, f)
		}
	}
	return out
}

// TestNumbers_NeverChange follows random catalogues: a number that was given means the same for ever, files come back as
// they are, and what is printed compiles.
func TestNumbers_NeverChange(t *testing.T) {
	rounds := 60
	if testing.Short() {
		rounds = 6
	}
	for seed := range rounds {
		r := rand.New(rand.NewPCG(uint64(seed), 53))
		n := numbers(t)
		given := map[string]string{}
		for step := range 12 {
			s := numbered(t, n, item(randomFields(r)...))
			if step%6 == 5 {
				checkPrinted(t, s)
			}
			section := ""
			for l := range strings.SplitSeq(string(n.File()), "\n") {
				words := strings.Fields(l)
				switch {
				case strings.HasPrefix(l, "message "), strings.HasPrefix(l, "enum "):
					section = l
				case strings.HasPrefix(l, "  "):
					key, value := section+" "+words[0], words[1]+" "+words[len(words)-1]
					if strings.HasPrefix(section, "enum ") {
						value = words[2]
					}
					if before, known := given[key]; known && before != value {
						t.Fatalf("seed %d: %s was %s and is %s", seed, key, before, value)
					}
					given[key] = value
				}
			}
			for key := range given {
				at := strings.LastIndex(key, " ")
				if !strings.Contains(string(n.File()), key[:at]+"\n") {
					t.Fatalf("seed %d: %s is gone", seed, key)
				}
			}
			again, err := catalogue.ParseNumbers(n.File())
			if err != nil || string(again.File()) != string(n.File()) {
				t.Fatalf("seed %d: %v\n%s", seed, err, n.File())
			}
			n = again
		}
	}
}

func TestParseNumbers_RefusesWhatIsNoFile(t *testing.T) {
	for file, want := range map[string]string{
		"":                        "there is no line like package",
		"package google.rpc":      "belongs to protobuf",
		"package a\npackage b":    "line 2: one line with package",
		"package a\n1 string a a": "line 2: \"1\": a line with package, message or enum",
		"package a\nmessage M\n1 string a a\n1 string b b": "line 4: the number 1 of b belongs to a",
		"package a\nmessage M\n1 string a a\n2 string b a": "line 4: a has the number 1 already",
		"package a\nmessage M\n19000 string a a":           "a number that protobuf accepts",
		"package a\nmessage M\n0 string a a":               "a number that protobuf accepts",
		"package a\nmessage M\n1 a a":                      "NUMBER TYPE NAME FIELD is accepted",
		"package a\nenum E\n1 A":                           "NUMBER NAME VALUE is accepted",
		"package a\nmessage M\nmessage M":                  "two sections message M",
		"package a\nmessage M\nenum N as M":                "two sections whose name in protobuf is M",
		"package a\nmessage M\nx string a a":               "is no number",
	} {
		if _, err := catalogue.ParseNumbers([]byte(file)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, not %s", file, err, want)
		}
	}
}

func FuzzParseNumbers(f *testing.F) {
	f.Add([]byte("package a\nmessage M as N\n  1 []enum:E a_b aB # x\nenum E\n 1 E_A \"a\\x20b\"\n"))
	f.Fuzz(func(t *testing.T, file []byte) {
		n, err := catalogue.ParseNumbers(file)
		if err != nil {
			return
		}
		again, err := catalogue.ParseNumbers(n.File())
		if err != nil || string(again.File()) != string(n.File()) {
			t.Errorf("%v\n%s\n%s", err, n.File(), again.File())
		}
	})
}
