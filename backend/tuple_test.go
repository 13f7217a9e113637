package backend_test

import (
	"bytes"
	"cmp"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/backend"
)

func FuzzTupleOrder(f *testing.F) {
	f.Add("", "", int64(0), "a", "", int64(0))
	f.Add("a", "b", int64(-1), "a\x00", "b", int64(1))
	f.Add("a\x00\xff", "", int64(1), "a\xff", "\x00", int64(-1<<63))
	f.Add("h2", "x", int64(5), "h22", "x", int64(5))
	f.Fuzz(func(t *testing.T, a1, a2 string, a3 int64, b1, b2 string, b3 int64) {
		tuple := func(x, y string, i int64) []byte {
			return backend.AppendBool(backend.AppendInt(backend.AppendString(backend.AppendString(nil, x), y), i), i > 0)
		}
		a, b := tuple(a1, a2, a3), tuple(b1, b2, b3)
		want := cmp.Or(strings.Compare(a1, b1), strings.Compare(a2, b2), cmp.Compare(a3, b3))
		if got := bytes.Compare(a, b); got != want {
			t.Errorf("%q and %q compare as %d, their tuples %x and %x as %d", a1, b1, want, a, b, got)
		}
		// A prefix of whole elements takes what extends it, and nothing else.
		prefix := backend.AppendString(nil, a1)
		within := func(lo, k, hi []byte) bool { return bytes.Compare(lo, k) <= 0 && bytes.Compare(k, hi) < 0 }
		if got := within(prefix, b, backend.PrefixEnd(prefix)); got != (a1 == b1) {
			t.Errorf("%x lies under %x: %v", b, prefix, got)
		}
		open := backend.AppendStringPrefix(nil, a1)
		if got := within(open, b, backend.StringPrefixEnd(open)); got != strings.HasPrefix(b1, a1) {
			t.Errorf("%x starts with %x: %v", b, open, got)
		}
		if s := backend.Successor(a); bytes.Compare(a, s) >= 0 || bytes.Compare(a, b) < 0 && bytes.Compare(s, b) > 0 {
			t.Errorf("%x is not the successor of %x", s, a)
		}
		rest := a
		for range 4 {
			var err error
			if rest, err = backend.SkipElement(rest); err != nil {
				t.Fatal(err)
			}
		}
		if len(rest) != 0 {
			t.Errorf("%x is left of %x", rest, a)
		}
	})
}

func FuzzTakeString(f *testing.F) {
	for _, s := range []string{"", "a", "\x00", "a\x00\xffb", "\xff"} {
		f.Add(append(backend.AppendString(nil, s), "rest"...))
	}
	f.Add([]byte{2})
	f.Add([]byte{2, 0, 0xFF})
	f.Fuzz(func(t *testing.T, b []byte) {
		s, rest, err := backend.TakeString(b)
		skipped, skipErr := backend.SkipElement(b)
		if err != nil {
			return
		}
		if skipErr != nil || !bytes.Equal(rest, skipped) {
			t.Errorf("TakeString leaves %x, SkipElement %x, %v", rest, skipped, skipErr)
		}
		if again := append(backend.AppendString(nil, s), rest...); !bytes.Equal(again, b) {
			t.Errorf("%x was read as %q, which is %x", b, s, again)
		}
	})
}

func FuzzDecodeKey(f *testing.F) {
	f.Add("Net", "default", "a", []byte{})
	f.Add("", "", "", []byte{2, 0})
	f.Add("\x00", "\xff", "a\x00\xff", []byte{0xFF})
	f.Fuzz(func(t *testing.T, kind, namespace, name string, junk []byte) {
		k := backend.Key{Kind: kind, Namespace: namespace, Name: name}
		b := k.Append(nil)
		if got, err := backend.DecodeKey(b); err != nil || got != k {
			t.Errorf("%q became %q, error %v", k, got, err)
		}
		for _, foreign := range [][]byte{junk, append(b, junk...)} {
			if got, err := backend.DecodeKey(foreign); err == nil && !bytes.Equal(got.Append(nil), foreign) {
				t.Errorf("%x was read as %q", foreign, got)
			}
		}
	})
}
