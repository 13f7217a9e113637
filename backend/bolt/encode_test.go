package bolt_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/bolt"
	"github.com/sluicegw/sluice/backend/storekit"
)

// samples are events of every shape.
func samples() []backend.Event {
	at := time.Date(2025, 1, 2, 3, 4, 5, 6e6, time.UTC)
	rev := backend.Revision{Epoch: 1 << 52, Seq: 300}
	small := &backend.Resource{Key: backend.Key{Kind: "K", Name: "\x00"}, Envelope: backend.Envelope{BindingVersion: 1, CreatedAt: at, UpdatedAt: at}, Body: []byte("j")}
	large := &backend.Resource{
		Key: key("a"),
		Envelope: backend.Envelope{
			UID: "u", Revision: rev, SpecRevision: backend.Revision{Epoch: 1, Seq: 2}, Deleting: true, Finalizers: backend.MaxFinalizers, Declared: "d", BindingVersion: 300,
			ExpiresAt: time.UnixMilli(0).UTC(), CreatedAt: at, UpdatedAt: at.Add(time.Hour),
		},
		Refs: []backend.Ref{{Key: key("t"), Bound: true}, {Key: backend.Key{Kind: "\x00", Name: "\xff"}}},
		Body: bytes.Repeat([]byte("body"), 300),
	}
	before := &backend.Before{Revision: backend.Revision{Epoch: 1 << 50, Seq: 1 << 40}, UpdatedAt: at.Add(-time.Hour)}
	bound := &backend.Before{Revision: rev, UpdatedAt: at, ExpiresAt: time.UnixMilli(-1).UTC(), Deleting: true, Bound: large.Bound()}
	other := &backend.Before{Revision: rev, UpdatedAt: at, Bound: []backend.Key{key("u"), key("t"), {Kind: "\x00", Name: "\xff"}}}
	return []backend.Event{
		{Type: backend.Added, Revision: rev, Resource: small, RequestID: "r", Actor: "a", Time: at},
		{Type: backend.Modified, Revision: rev, Resource: small, RequestID: "r", Time: at, Before: before},
		{Type: backend.Modified, Revision: rev, Resource: large, Time: at, Before: before, Change: []byte{0}},
		{Type: backend.Modified, Revision: rev, Resource: large, Time: at, Before: bound, Actor: string(bytes.Repeat([]byte("\xff"), 200))},
		{Type: backend.Modified, Revision: rev, Resource: small, Time: at, Before: other, Change: bytes.Repeat([]byte("c"), 300)},
		{Type: backend.Deleted, Revision: rev, Resource: large, RequestID: "r", Actor: "a", Time: at},
	}
}

func TestEncode_Encoding(t *testing.T) {
	t.Run("an event and its resource come back as they went in", func(t *testing.T) {
		for _, e := range samples() {
			entry, form := bolt.EncodeEvent(&e)
			got, err := bolt.DecodeEvent(e.Revision, entry)
			if err != nil || !cmp.Equal(got, e) {
				t.Errorf("error %v:\n%s", err, cmp.Diff(e, got))
			}
			r, err := bolt.DecodeResource(e.Resource.Key, form)
			if err != nil || !cmp.Equal(r, e.Resource) {
				t.Errorf("error %v:\n%s", err, cmp.Diff(e.Resource, r))
			}
		}
	})
	t.Run("what was decoded does not share the memory of its form", func(t *testing.T) {
		for _, e := range samples() {
			entry, _ := bolt.EncodeEvent(&e)
			got, err := bolt.DecodeEvent(e.Revision, entry)
			clear(entry)
			if err != nil || !cmp.Equal(got, e) {
				t.Errorf("error %v:\n%s", err, cmp.Diff(e, got))
			}
		}
	})
	t.Run("resources that are decoded together are those that are decoded alone", func(t *testing.T) {
		var keys []backend.Key
		var forms [][]byte
		var want []*backend.Resource
		for range 40 {
			for _, e := range samples() {
				_, form := bolt.EncodeEvent(&e)
				keys, forms, want = append(keys, e.Resource.Key), append(forms, form), append(want, e.Resource)
			}
		}
		got, err := bolt.DecodeTogether(keys, forms)
		for _, form := range forms {
			clear(form)
		}
		if err != nil || !cmp.Equal(got, want) {
			t.Errorf("error %v:\n%s", err, cmp.Diff(want, got))
		}
	})
	t.Run("every form that is cut within its envelope is refused", func(t *testing.T) {
		for _, e := range samples() {
			_, form := bolt.EncodeEvent(&e)
			for n := range len(form) - len(e.Resource.Body) {
				if _, err := bolt.DecodeResource(e.Resource.Key, form[:n]); err == nil {
					t.Errorf("%d of %d bytes decode", n, len(form))
				}
			}
		}
	})
}

func FuzzDecodeEvent(f *testing.F) {
	for _, e := range samples() {
		entry, _ := bolt.EncodeEvent(&e)
		f.Add(entry)
	}
	f.Add([]byte{})
	f.Add([]byte{1, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		bolt.DecodeRest(b)
		bolt.Resum(bolt.EntryKey(backend.Revision{Epoch: 1, Seq: 1}), b[:len(b)-len(bolt.ResourceIn(b))])
		e, err := bolt.DecodeEvent(backend.Revision{Epoch: 1, Seq: 1}, b)
		if err != nil {
			return
		}
		again, _ := bolt.EncodeEvent(&e)
		got, err := bolt.DecodeEvent(e.Revision, again)
		if err != nil || !cmp.Equal(got, e) {
			t.Errorf("error %v:\n%s", err, cmp.Diff(e, got))
		}
	})
}

func FuzzDecodeResource(f *testing.F) {
	for _, e := range samples() {
		_, form := bolt.EncodeEvent(&e)
		f.Add(form)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		bolt.Resum(key("a").Append(nil), b)
		if r, err := bolt.DecodeResource(key("a"), b); err == nil && len(r.Body) > len(b) {
			t.Error("the body is longer than its form")
		}
	})
}

func FuzzDecodeLogRecord(f *testing.F) {
	f.Add(bolt.LogForm(storekit.LogState{Epochs: []backend.Revision{{Epoch: 1, Seq: 2}, {Epoch: 3}}, Trimmed: backend.Revision{Epoch: 1, Seq: 1}}, 1, 99))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		again, err := bolt.RecodeLog(b)
		if err != nil {
			return
		}
		if third, err := bolt.RecodeLog(again); err != nil || !bytes.Equal(again, third) {
			t.Errorf("%x becomes %x, error %v", again, third, err)
		}
	})
}
