package standard_test

import (
	"encoding/json"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/owner/standard"
	"github.com/sluicegw/sluice/backend/service/owner/standard/standardtest"
)

// FuzzReadDescriptors reads damaged descriptors, and pulls what is in them.
func FuzzReadDescriptors(f *testing.F) {
	f.Add(standardtest.Compile(f, nil, standardtest.FooFile))
	f.Add(standardtest.Compile(f, nil, standardtest.LibraryFile))
	f.Fuzz(func(t *testing.T, raw []byte) {
		d, err := standard.ReadDescriptors(raw)
		if err != nil {
			return
		}
		c, err := d.Catalogue("x", nil, nil, standard.Limits{Length: 10, Items: 10})
		if err != nil || len(c.Kinds) == 0 {
			return
		}
		if _, err := c.Mapping.YAML(); err != nil {
			t.Error(err)
		}
	})
}

// FuzzParseMapping reads mappings, and compiles them.
func FuzzParseMapping(f *testing.F) {
	d, err := standard.ReadDescriptors(standardtest.Compile(f, nil, standardtest.FooFile, standardtest.LibraryFile))
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte("kinds: {Foo: {tag: metadata.revision, text: [spec.big], omit: [spec.size]}}"))
	f.Add([]byte("kinds: {Book: {pattern: 'a/{namespace}/b/{name}', create: {operation: true, set: {parent: x}}}}"))
	f.Add([]byte("kinds: {Foo: {watch: {method: teleport.foo.v1.FooWatchService.WatchFoos, header: header}}}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := standard.ParseMapping(text)
		if err != nil {
			return
		}
		_, _ = d.Catalogue("x", nil, m, standard.Limits{})
	})
}

// fooConversion returns the conversion of the kind Foo.
func fooConversion(tb testing.TB) *standard.Conversion {
	tb.Helper()
	d, err := standard.ReadDescriptors(standardtest.Compile(tb, nil, standardtest.FooFile))
	if err != nil {
		tb.Fatal(err)
	}
	c, err := standard.NewConversion(d, "Foo")
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

// FuzzMessage shows messages as resources, writes what they show into others, and shows these again: the same.
func FuzzMessage(f *testing.F) {
	c := fooConversion(f)
	f.Add([]byte("\x22\x03\x0a\x01a\x2a\x04\x0a\x02hi"), []byte(`{"bar":"x","sizes":[{"depth":1}],"named":[{"key":"a"}]}`))
	f.Add([]byte(""), []byte(`{"flags":[{"key":1}],"every":"1s","since":"2030-01-02T03:04:05Z","raw":"AA=="}`))
	f.Fuzz(func(t *testing.T, raw, spec []byte) {
		m := dynamicpb.NewMessage(c.Message())
		if proto.Unmarshal(raw, m) != nil {
			return
		}
		key := backend.Key{Kind: "Foo", Name: "a"}
		_ = c.Fill(m, key, spec)
		shown, err := c.Show(m)
		if err != nil {
			return
		}
		if !json.Valid(shown) {
			t.Fatalf("%s is no JSON", shown)
		}
		next := dynamicpb.NewMessage(c.Message())
		if wrong := c.Fill(next, key, shown); len(wrong) > 0 {
			t.Fatalf("what is shown cannot be written: %s %+v", shown, wrong)
		}
		again, err := c.Show(next)
		if err != nil || string(again) != string(shown) {
			t.Fatalf("%s is shown as %s: %v", shown, again, err)
		}
	})
}
