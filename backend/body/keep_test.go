package body_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/body"
	"github.com/sluicegw/sluice/backend/descriptor"
)

// difference is where two readings of an object differ, "" for nowhere.
func difference(s *body.Shape, a *body.Body, at body.Table, b *body.Body, bt body.Table) string {
	for slot := range s.Fields {
		f, x, y := &s.Fields[slot], a.At(at, slot), b.At(bt, slot)
		if x.IsZero() || y.IsZero() {
			if x != y {
				return f.Name + " is absent from one"
			}
			continue
		}
		switch {
		case f.List && f.Type == descriptor.TypeObject:
			if a.Len(x) != b.Len(y) {
				return fmt.Sprintf("%s: %d and %d", f.Name, a.Len(x), b.Len(y))
			}
			var tables []body.Table
			for _, t := range b.Objects(y) {
				tables = append(tables, t)
			}
			for i, t := range a.Objects(x) {
				if d := difference(f.Shape, a, t, b, tables[i]); d != "" {
					return fmt.Sprintf("%s[%d].%s", f.Name, i, d)
				}
			}
		case f.Type == descriptor.TypeObject:
			if d := difference(f.Shape, a, a.Object(x), b, b.Object(y)); d != "" {
				return f.Name + "." + d
			}
		case x.Ready() != y.Ready() || !bytes.Equal(a.Bytes(x), b.Bytes(y)):
			return fmt.Sprintf("%s: %.100s and %.100s", f.Name, a.Bytes(x), b.Bytes(y))
		case f.Type == descriptor.TypeString && !f.List && a.Text(x) != b.Text(y):
			return fmt.Sprintf("%s: %q and %q", f.Name, a.Text(x), b.Text(y))
		}
	}
	return ""
}

func TestKeep_BodiesThatAreKeptAreThoseThatAreRead(t *testing.T) {
	var c body.Compiler
	shape := c.Kind(kind())
	var arena body.Arena
	texts := bodies()
	for _, text := range bodies() { // too long to lie near its tape
		texts = append(texts, strings.Replace(text, `{"spec":{`, `{"metadata":{"description":"`+strings.Repeat("d", 600)+`"},"spec":{`, 1),
			strings.Replace(text, `{"spec":{`, `{"metadata":{"labels":{"a":"`+strings.Repeat("d", 100)+`"}},"spec":{"map":{"x":"`+strings.Repeat("e", 500)+`"},`, 1))
	}
	for _, n := range []int{1, 10, 100, 350, 360, 1000, 2900, 2990, 3000, 10_000} { // short spans reach 32 KiB
		many := strings.Repeat(`{"need":1},`, n)
		texts = append(texts, `{"spec":{"many":[`+many+`{"need":2,"text":"<"}],"text":"near"}}`, `{"spec":{"text":"`+strings.Repeat("a", 11*n)+`","int":1}}`)
	}
	for round := range 3 {
		for i, text := range texts {
			stored := backend.Resource{Key: backend.Key{Name: fmt.Sprint("name-", i)}, Envelope: backend.Envelope{UID: strings.Repeat("u", i%5)}, Body: backend.EncodeBody([]byte(text))}
			want, wantErr := shape.Read(&stored)
			copied := stored
			source := bytes.Clone(stored.Body)
			copied.Body = source
			got, made, size, err := arena.Keep(shape, &copied, func(b *body.Body) []byte {
				if d := difference(shape, b, body.Root, want, body.Root); d != "" {
					t.Errorf("round %d, %.200s: %s", round, text, d)
				}
				return []byte("more of " + b.Stored.UID)
			})
			clear(source) // what is kept is a copy
			if (err == nil) != (wantErr == nil) {
				t.Fatalf("round %d, %.200s: kept %v, read %v", round, text, err, wantErr)
			}
			if copied.Name != stored.Name || copied.UID != stored.UID || !bytes.Equal(copied.Body, stored.Body) || size < len(stored.Body) {
				t.Fatalf("round %d, %.200s: kept %q %q %.200q, %d bytes", round, text, copied.Name, copied.UID, copied.Body, size)
			}
			if err != nil {
				continue
			}
			if made != "more of "+stored.UID {
				t.Fatalf("round %d, %.200s: %q was made of it", round, text, made)
			}
			if got.Stored != &copied || got.Shape != shape {
				t.Fatalf("round %d, %.200s: of another resource or shape", round, text)
			}
			if d := difference(shape, &got, body.Root, want, body.Root); d != "" {
				t.Fatalf("round %d, %.200s: %s", round, text, d)
			}
		}
	}
}
