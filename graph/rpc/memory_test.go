package rpc_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/servicetest"
	"github.com/sluicegw/sluice/internal/heaptest"
)

// attempts is how often a size is measured. The least counts, since the service works in the background too.
const attempts = 5

// crate is a kind whose values are small and nested.
func crate() descriptor.Kind {
	k := servicetest.Widget()
	k.Name, k.Singular, k.Plural = "Crate", "crate", "crates"
	k.FilterableFields = nil
	list := func(name string, typ descriptor.FieldType, of *descriptor.Shape) descriptor.Field {
		return descriptor.Field{Name: name, Type: typ, Shape: of, List: true, ListType: descriptor.ListAtomic}
	}
	inner := &descriptor.Shape{Name: "Inner", Fields: []descriptor.Field{
		list("tags", descriptor.TypeString, nil), {Name: "map", Type: descriptor.TypeMap},
	}}
	for i := range 9 {
		inner.Fields = append(inner.Fields, descriptor.Field{Name: fmt.Sprintf("n%d", i), Type: descriptor.TypeInt})
	}
	outer := &descriptor.Shape{Name: "Outer", Fields: []descriptor.Field{
		{Name: "inner", Type: descriptor.TypeObject, Shape: inner},
	}}
	k.Spec = &descriptor.Shape{Name: "CrateSpec", Fields: []descriptor.Field{
		list("ints", descriptor.TypeInt, nil), list("texts", descriptor.TypeString, nil),
		list("times", descriptor.TypeTime, nil), {Name: "map", Type: descriptor.TypeMap},
		list("inners", descriptor.TypeObject, inner), list("outers", descriptor.TypeObject, outer),
	}}
	k.Status = nil
	return k
}

// crates are specs of about n values each, by what they have.
func crates(n int) map[string]string {
	repeated := func(form, one string) string {
		return fmt.Sprintf(form, strings.TrimSuffix(strings.Repeat(one+",", n), ","))
	}
	entries := make([]string, n)
	for i := range entries {
		entries[i] = fmt.Sprintf(`"%d":""`, i)
	}
	return map[string]string{
		"integers":        repeated(`{"ints":[%s]}`, "1"),
		"texts":           repeated(`{"texts":[%s]}`, `""`),
		"times":           repeated(`{"times":[%s]}`, `"2026-01-31T12:00:00.5Z"`),
		"entries":         `{"map":{` + strings.Join(entries, ",") + `}}`,
		"empty objects":   repeated(`{"inners":[%s]}`, `{}`),
		"small objects":   repeated(`{"inners":[%s]}`, `{"n0":1}`),
		"larger objects":  repeated(`{"inners":[%s]}`, `{"n0":1,"n1":1,"n2":1,"n3":1,"n4":1,"n5":1,"n6":1,"n7":1,"n8":1}`),
		"maps":            repeated(`{"inners":[%s]}`, `{"map":{"":""}}`),
		"lists":           repeated(`{"inners":[%s]}`, `{"tags":[""]}`),
		"nested objects":  repeated(`{"outers":[%s]}`, `{"inner":{}}`),
		"objects in each": repeated(`{"outers":[%s]}`, `{"inner":{"n0":1}}`),
	}
}

// TestReceive_AMessageIsChargedForWhatItHolds compares what is charged for a message with what is in memory.
func TestReceive_AMessageIsChargedForWhatItHolds(t *testing.T) {
	w := open(t, crate())
	for name, spec := range crates(10_000) {
		text := `{"crate":{"metadata":{"name":"a"},"spec":` + spec + `}}`
		binary, err := proto.Marshal(w.message(w.method("CreateCrate").Input(), text))
		if err != nil {
			t.Fatal(err)
		}
		for contentType, body := range map[string][]byte{"application/json": []byte(text), "application/proto": binary} {
			held, charged := int64(math.MaxInt64), int64(0)
			for range attempts {
				var before int64
				measure := func(ctx context.Context) {
					held, charged = min(held, heaptest.InUse()-before), budget.From(ctx).Spent(budget.Held)
				}
				w.decoded.Store(&measure)
				before = heaptest.InUse()
				w.post("CreateCrate", contentType, body)
				w.decoded.Store(nil)
				if held <= charged {
					break
				}
			}
			t.Logf("%s, %s: %d bytes hold %d, %d are charged", name, contentType, len(body), held, charged)
			if held > charged {
				t.Errorf("%s, %s: %d bytes hold %d, and only %d are charged", name, contentType, len(body), held, charged)
			}
		}
	}
}

// TestUnary_AnAnswerIsChargedForWhatItHolds compares the size of the answer of a list, which is charged twice, with what
// it adds to the memory.
func TestUnary_AnAnswerIsChargedForWhatItHolds(t *testing.T) {
	const resources = 1000
	w := open(t, crate())
	for i := range resources {
		spec := crates(20)["objects in each"]
		w.must("CreateCrate", fmt.Sprintf(`{"crate":{"metadata":{"name":"c%d"},"spec":%s}}`, i, spec))
	}
	for _, contentType := range []string{"application/json", "application/proto"} {
		request := []byte(`{"pageSize": 1000}`)
		if contentType == "application/proto" {
			var err error
			if request, err = proto.Marshal(w.message(w.method("ListCrates").Input(), string(request))); err != nil {
				t.Fatal(err)
			}
		}
		least, size := int64(math.MaxInt64), int64(0)
		for range attempts {
			var before, most, sent int64
			measure := func(_ context.Context, bytes int) {
				if before == 0 {
					before = heaptest.InUse() // the page was read, and the first part was encoded
					return
				}
				sent += int64(bytes)
				most = max(most, heaptest.InUse()-before)
			}
			w.answered.Store(&measure)
			if status, text := w.post("ListCrates", contentType, request); status != http.StatusOK {
				t.Fatal(text)
			}
			w.answered.Store(nil)
			least, size = min(least, most), sent
			if least <= 2*size {
				break
			}
		}
		t.Logf("%s: %d bytes, of %d resources, hold %d", contentType, size, resources, least)
		if least > 2*size {
			t.Errorf("%s: an answer of %d bytes holds %d, and only twice its size is charged", contentType, size, least)
		}
	}
}

// TestUnary_APageOfJSONEndsByTheSizeOfTheJSON has resources that are much larger as JSON than in binary form.
func TestUnary_APageOfJSONEndsByTheSizeOfTheJSON(t *testing.T) {
	const resources = 60
	w := open(t, crate())
	spec := crates(1000)["larger objects"]
	for i := range resources {
		w.must("CreateCrate", fmt.Sprintf(`{"crate":{"metadata":{"name":"c%d"},"spec":%s}}`, i, spec))
	}
	pages, seen := 0, 0
	for token := ""; pages == 0 || token != ""; pages++ {
		status, text := w.post("ListCrates", "application/json", fmt.Appendf(nil, `{"pageToken": %q}`, token))
		if status != http.StatusOK || len(text) > 3<<20+100 {
			t.Fatal(status, len(text))
		}
		var page struct {
			Crates        []json.RawMessage
			NextPageToken string
		}
		if err := json.Unmarshal([]byte(text), &page); err != nil {
			t.Fatal(err)
		}
		seen += len(page.Crates)
		token = page.NextPageToken
	}
	if seen != resources || pages != 2 {
		t.Error("seen:", seen, "on", pages, "pages")
	}
}
