package service_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/servicetest"
)

// freeWidget is a widget whose text may be anything.
func freeWidget() descriptor.Kind {
	k := servicetest.Widget()
	n := func(i int) *int { return &i }
	free := descriptor.Constraint{MaxLength: n(1 << 20)}
	inner := &descriptor.Shape{Name: "FreeInner", Fields: []descriptor.Field{
		{Name: "text", Type: descriptor.TypeString, Constraint: free},
		{Name: "real", Type: descriptor.TypeFloat},
	}}
	keys := free
	keys.KeyMinLength, keys.KeyMaxLength, keys.MaxItems = n(0), n(1000), n(1000)
	k.Spec = &descriptor.Shape{Name: "FreeSpec", Fields: []descriptor.Field{
		{Name: "text", Type: descriptor.TypeString, Constraint: free},
		{Name: "list", Type: descriptor.TypeString, List: true, ListType: descriptor.ListAtomic, Constraint: descriptor.Constraint{MaxLength: n(1000), MaxItems: n(100_000)}},
		{Name: "map", Type: descriptor.TypeMap, Constraint: keys},
		{Name: "number", Type: descriptor.TypeSafeInt},
		{Name: "inners", Type: descriptor.TypeObject, Shape: inner, List: true, ListType: descriptor.ListAtomic, Constraint: descriptor.Constraint{MaxItems: n(1000)}},
		{Name: "y", Type: descriptor.TypeBoolean},
	}}
	k.FilterableFields, k.Expires = nil, true
	return k
}

// roundTrip creates a widget with that spec and metadata, and applies the manifest of it.
func (f *fixture) roundTrip(t testing.TB, spec map[string]any, meta service.Metadata) {
	t.Helper()
	raw, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	stored, err := f.Writer.Upsert(context.Background(), service.UpsertRequest{Identity: servicetest.Named("a"), Spec: json.RawMessage(raw), Metadata: meta})
	if err != nil {
		t.Fatalf("%.200q: %v", raw, err)
	}
	for _, format := range []service.ManifestFormat{service.YAML, service.JSON} {
		text, err := f.Manifest(stored.Resource.Stored, format)
		if err != nil {
			t.Fatalf("%s of %.200q: %v", format, raw, err)
		}
		out, err := f.apply(text)
		if err != nil || out.Outcome != service.Unchanged {
			t.Fatalf("%s: %+v %v\nspec %.500q\nmanifest %.500s", format, out, err, raw, text)
		}
	}
}

func TestManifest_TextOfEveryCharacterGoesThroughAManifestUnchanged(t *testing.T) {
	f := setupKinds(t, freeWidget())
	texts := []string{"", " ", "  a", "a ", "\ta\t", "\n", "a\n", "\n\na\n\n", " a\n  b\n", "a\r\nb\r", "<<", "=", "~", "null", "NULL", "yes", "n", "Off", "true",
		"0", "-1", "0x1f", "0o7", "07", "1_000", "1:20", "1e3", ".5", ".inf", ".nan", "2001-01-01", "-", "- a", "?", "? a", ":", "a: b", "a:", "#", "a #b", "&a", "*a", "!a", "!!str a",
		"%a", "@a", "`a", "|", ">", "---", "--- a", "...", "'", "\"", "\\", "{}", "[", "a,b", "{{ .x }}", strings.Repeat("long words ", 25)}
	var all []any
	one := func(s string) { all = append(all, s, "a"+s+"b", s+" "+s+"\n"+s) }
	for _, s := range texts {
		one(s)
	}
	step := rune(1) // beyond the first 256
	if testing.Short() {
		step = 13
	}
	for r := rune(0); r <= utf8.MaxRune; r++ {
		// Every character of the planes where some are special, one of many elsewhere.
		if utf8.ValidRune(r) && (r < 0x100 || r%step == 0) && (r < 0x3100 || r > 0xD000 && r < 0x10200 || r%257 == 0) {
			one(string(r))
		}
	}
	for begin := 0; begin < len(all); begin += 2000 {
		f.roundTrip(t, map[string]any{"list": all[begin:min(begin+2000, len(all))]}, service.Metadata{})
	}
	for begin := 0; begin < len(all); begin += 500 {
		keys := map[string]any{}
		for _, s := range all[begin:min(begin+500, len(all))] {
			keys[s.(string)] = s
		}
		f.roundTrip(t, map[string]any{"map": keys, "text": all[begin]}, service.Metadata{Description: service.Optional[string]{Set: true, Value: all[begin].(string)}})
	}
}

func TestManifest_TheManifestOfARandomResourceAppliesUnchanged(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	f := setupKinds(t, freeWidget())
	text := func() string {
		out := make([]rune, r.IntN(12))
		for i := range out {
			switch r.IntN(4) {
			case 0:
				out[i] = rune(r.IntN(0x80))
			case 1:
				out[i] = []rune("-:#\n\r \t'\"\\<&*!|>%@`{}[],?=~\u0085\u2028\u2029\ufeff\ufffe\uffff\u007f\u0080")[r.IntN(35)]
			default:
				for out[i] = -1; !utf8.ValidRune(out[i]); {
					out[i] = rune(r.IntN(utf8.MaxRune + 1))
				}
			}
		}
		return string(out)
	}
	for range 300 {
		spec := map[string]any{"text": text(), "y": r.IntN(2) == 0, "number": r.Int64N(1<<53) - 1<<52}
		keys := map[string]any{}
		for range r.IntN(5) {
			keys[text()] = text()
		}
		spec["map"] = keys
		list, inners := []any{}, []any{}
		for range r.IntN(5) {
			list = append(list, text())
			inners = append(inners, map[string]any{"text": text(), "real": r.NormFloat64() * float64(r.Int64())})
		}
		spec["list"], spec["inners"] = list, inners
		f.roundTrip(t, spec, service.Metadata{
			Labels:      service.Optional[[]service.Label]{Set: true, Value: []service.Label{{Key: "yes", Value: []string{"", "1", "no", "1.5"}[r.IntN(4)]}}},
			Annotations: service.Optional[[]service.Annotation]{Set: true, Value: []service.Annotation{{Key: "a", Value: text()}}},
			Description: service.Optional[string]{Set: true, Value: text()},
			ExpiresAt:   service.Optional[time.Time]{Set: true, Value: time.Now().Add(time.Hour + time.Duration(r.Int64N(1e15)))},
		})
	}
}

func TestManifest_TheManifestOfTheLargestResourceApplies(t *testing.T) {
	t.Parallel()
	f := setupKinds(t, freeWidget())
	for name, unit := range map[string]string{"characters of four bytes": "\U0001F600", "quotes": `"`, "line breaks": "\n", "not printable": "\u0080"} {
		t.Run(name, func(t *testing.T) {
			encoded, _ := json.Marshal(unit)
			f.roundTrip(t, map[string]any{"text": strings.Repeat(unit, 1_000_000/(len(encoded)-2))}, service.Metadata{})
		})
	}
}

func TestManifest_AManifestInJSONIsHeldToJSON(t *testing.T) {
	f := setupKinds(t, freeWidget())
	for text, says := range map[string]string{
		`"text":"\ud800"`:          `\ud800 is half of a character`,
		`"text":"\udc00\ud800"`:    `\udc00 is half of a character`,
		`"text":"a","text":"b"`:    `a key is given twice`,
		`"map":{"a":"1","a":"2"}`:  `a key is given twice`,
		`"list":[{"a":1,"a":"2"}]`: `a key is given twice`,
		"\"text\":\"\xff\"":        "UTF-8",
	} {
		_, err := f.apply(fmt.Sprintf(`{"apiVersion":"example.org/v1","kind":"Widget","metadata":{"name":"a"},"spec":{%s}}`, text))
		if e := servicetest.WantCode(t, err, failure.CodeBadUserInput); !strings.Contains(e.Message, says) {
			t.Errorf("%s: message %q does not say %q", text, e.Message, says)
		}
	}
	if _, err := f.apply(`{"apiVersion":"example.org/v1","kind":"Widget","metadata":{"name":"a"},"spec":{"text":"\ud83d\ude00 \\ud800","list":["a","a"]}}`); err != nil {
		t.Error(err)
	}
}
