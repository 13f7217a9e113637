package span_test

import (
	"strings"
	"testing"

	"github.com/sluicegw/sluice/internal/span"
)

const (
	recorded = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	ignored  = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"
	traceID  = "0af7651916cd43dd8448eb211c80319c"
)

func TestParse_ReadsWhatTraceparentWrites(t *testing.T) {
	for _, text := range []string{recorded, ignored} {
		sc := span.Parse(text)
		if !sc.IsValid() || !sc.IsRemote() || span.Traceparent(sc) != text {
			t.Errorf("%s became %s", text, span.Traceparent(sc))
		}
	}
	for _, text := range []string{"", "00", recorded[1:], strings.Replace(recorded, "0af", "0ag", 1), strings.Replace(recorded, "b7a", "xya", 1)} {
		if span.Parse(text).IsValid() {
			t.Errorf("%q was accepted", text)
		}
	}
}

func TestNewTraceparent_IsATraceThatIsNotRecorded(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		text := span.NewTraceparent()
		if !span.Parse(text).IsValid() || span.Sampled(text) || seen[span.TraceID(text)] {
			t.Fatal(text)
		}
		seen[span.TraceID(text)] = true
	}
}

func TestSampled_LooksAtTheLastBitOfTheFlags(t *testing.T) {
	for flags, want := range map[string]bool{"00": false, "01": true, "02": false, "03": true, "ff": true, "zz": false} {
		if got := span.Sampled(ignored[:len(ignored)-2] + flags); got != want {
			t.Errorf("%s: %t", flags, got)
		}
	}
}

func TestPack_TakesEightBytesOrTwentyFour(t *testing.T) {
	for _, c := range []struct {
		text, known string
		bytes       int
	}{{recorded, traceID, 8}, {recorded, "mine", 24}, {recorded, "", 24}, {ignored, traceID, 0}, {"", traceID, 0}} {
		packed := span.Pack(c.text, c.known)
		if len(packed) != c.bytes {
			t.Errorf("%s, %s: %d bytes, want %d", c.text, c.known, len(packed), c.bytes)
		}
		if got := span.Unpack(packed, c.known); c.bytes > 0 && got != c.text {
			t.Errorf("%s, %s: became %q", c.text, c.known, got)
		}
	}
}

func FuzzUnpack(f *testing.F) {
	f.Add(span.Pack(recorded, traceID), traceID)
	f.Add(span.Pack(recorded, ""), "")
	f.Add("12345678", "not an id")
	f.Fuzz(func(t *testing.T, packed, known string) {
		text := span.Unpack(packed, known)
		if text == "" {
			return
		}
		if !span.Parse(text).IsValid() || span.Unpack(span.Pack(text, known), known) != text {
			t.Errorf("%q, %q: %s", packed, known, text)
		}
	})
}

func TestOtherID_IsOnlyGivenWhereItIsAnother(t *testing.T) {
	if got := span.OtherID(recorded, traceID); got != "" {
		t.Error(got)
	}
	if got := span.OtherID(recorded, "mine"); got != traceID {
		t.Error(got)
	}
}
