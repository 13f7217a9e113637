package backendtest

import (
	"fmt"
	"strings"
	"time"

	"github.com/sluicegw/sluice/backend"
)

func limitStatements() []statement {
	return []statement{
		{"a batch takes 64 writes and refuses 65", func(f *fixture) {
			f.start()
			f.must(puts(backend.MaxWrites)...)
			_, err := f.apply(puts(backend.MaxWrites + 1)...)
			f.wantErr(err, backend.ErrInvalid)
			equal(f, f.list(backend.Range{Kind: "Net", Count: true}).Count, backend.MaxWrites)
		}},
		{"a batch takes 256 checks and refuses 257", func(f *fixture) {
			f.start()
			absent := backend.Condition{Presence: backend.Absent}
			actions := []backend.Action{put(key("a"), "1")}
			for i := range backend.MaxChecks {
				actions = append(actions, check(key(fmt.Sprint("check-", i)), absent))
			}
			f.must(actions...)
			_, err := f.apply(append(actions, check(key("one-more"), absent))...)
			f.wantErr(err, backend.ErrInvalid)
		}},
		{"a resource takes 1 MiB and no byte more", func(f *fixture) {
			f.start()
			fit := sized(key("a"), backend.MaxStoredBytes)
			f.must(fit)
			equal(f, f.get(key("a")).Size(), backend.MaxStoredBytes)
			_, err := f.apply(sized(key("b"), backend.MaxStoredBytes+1))
			f.wantErr(err, backend.ErrTooLarge)
		}},
		{"a batch takes 4 MiB and no byte more", func(f *fixture) {
			f.start()
			four := make([]backend.Action, 4)
			for i := range four {
				four[i] = sized(key(fmt.Sprint("n", i)), backend.MaxResourceBytes)
			}
			f.must(four...)
			_, err := f.apply(append(four, remove(key("x")))...)
			f.wantErr(err, backend.ErrTooLarge)
			four[0] = changed(four[0], f.get(four[0].Key).Revision, []byte("x"))
			_, err = f.apply(four...)
			f.wantErr(err, backend.ErrTooLarge)
			equal(f, f.list(backend.Range{Kind: "Net", Count: true}).Count, 4)
		}},
		{"a batch without a write is refused", func(f *fixture) {
			f.start()
			_, err := f.apply()
			f.wantErr(err, backend.ErrInvalid)
			_, err = f.apply(check(key("a"), backend.Condition{Presence: backend.Absent}))
			f.wantErr(err, backend.ErrInvalid)
		}},
		{"a key twice in a batch is refused", func(f *fixture) {
			f.start()
			_, err := f.apply(put(key("a"), "1"), remove(key("a")))
			f.wantErr(err, backend.ErrInvalid)
			_, err = f.apply(put(key("a"), "1"), check(key("a"), backend.Condition{Presence: backend.Present}))
			f.wantErr(err, backend.ErrInvalid)
		}},
		{"two namespaces in a batch are refused", func(f *fixture) {
			f.start()
			_, err := f.apply(put(key("a"), "1"), put(backend.Key{Kind: "Net", Namespace: "other", Name: "a"}, "1"))
			f.wantErr(err, backend.ErrInvalid)
			_, err = f.apply(put(key("a"), "1"), put(backend.Key{Kind: "Region", Name: "a"}, "1"))
			f.wantErr(err, backend.ErrInvalid)
		}},
		{"a batch needs a request id of at most 64 bytes and a deadline", func(f *fixture) {
			f.start()
			for _, change := range []func(*backend.Batch){
				func(b *backend.Batch) { b.RequestID = "" },
				func(b *backend.Batch) { b.RequestID = strings.Repeat("x", 65) },
				func(b *backend.Batch) { b.Deadline = time.Time{} },
			} {
				b := f.batch(put(key("a"), "1"))
				change(&b)
				_, err := f.Apply(f.ctx(), b)
				f.wantErr(err, backend.ErrInvalid)
			}
		}},
		{"a put needs a uid and a body, and has limits", func(f *fixture) {
			f.start()
			for i, change := range []func(*backend.Put){
				func(p *backend.Put) { p.UID = "" },
				func(p *backend.Put) { p.UID = strings.Repeat("x", 65) },
				func(p *backend.Put) { p.Body = nil },
				func(p *backend.Put) { p.Declared = strings.Repeat("x", 65) },
				func(p *backend.Put) { p.ExpiresAt = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) },
			} {
				a := put(key("a"), "1")
				change(&a.Put)
				if _, err := f.apply(a); err == nil {
					f.Errorf("case %d was accepted", i)
				} else {
					f.wantErr(err, backend.ErrInvalid)
				}
			}
		}},
		{"the longest key, request id and fingerprint work", func(f *fixture) {
			f.start()
			// Every byte of the name is one that the key encoding escapes.
			k := backend.Key{Kind: "K", Namespace: "n", Name: strings.Repeat("\x00", backend.MaxKeyBytes-2)}
			a := deleting(refs(create(k, "1"), backend.Ref{Key: k, Bound: true}))
			a.Put.UID, a.Put.Declared = strings.Repeat("u", 64), strings.Repeat("d", 64)
			b := f.batch(a)
			b.RequestID = strings.Repeat("r", 64)
			from := f.position()
			res, err := f.Apply(f.ctx(), b)
			f.wantErr(err, nil)
			equal(f, f.get(k), res.Resources[0])
			equal(f, f.list(backend.Range{Kind: "K", Deleting: true}).Resources, res.Resources)
			equal(f, f.list(backend.Range{Referenced: &k}).Resources, res.Resources)
			events := f.replay(from)
			equal(f, events[0].Resource, res.Resources[0])
			equal(f, events[0].RequestID, b.RequestID)
			k.Name += "x"
			_, err = f.apply(create(k, "1"))
			f.wantErr(err, backend.ErrInvalid)
		}},
		{"a batch past its deadline by the store's clock is refused for ever", func(f *fixture) {
			f.start()
			b := f.batch(put(key("a"), "1"))
			f.clock.Advance(b.Deadline.Sub(f.clock.Now()))
			if _, err := f.Apply(f.ctx(), b); err != nil {
				f.Fatalf("at the deadline: %v", err)
			}
			b = f.batch(put(key("a"), "2"))
			f.clock.Advance(b.Deadline.Sub(f.clock.Now()) + 1)
			before := f.position()
			_, err := f.Apply(f.ctx(), b)
			f.wantErr(err, backend.ErrDeadline)
			equal(f, f.position(), before)
			equal(f, string(f.get(key("a")).Body), "j1")
		}},
		{"the store's clock is the injected one", func(f *fixture) {
			f.start()
			equal(f, f.Now(), f.clock.Now())
			f.clock.Advance(time.Hour)
			equal(f, f.Now(), f.clock.Now())
		}},
	}
}

// puts returns n puts of different keys.
func puts(n int) []backend.Action {
	out := make([]backend.Action, n)
	for i := range out {
		out[i] = put(key(fmt.Sprintf("n%03d", i)), fmt.Sprint(i))
	}
	return out
}

// sized returns a put of a resource that counts for exactly size bytes.
func sized(k backend.Key, size int) backend.Action {
	a := put(k, "")
	r := backend.Resource{Key: k, Body: a.Put.Body}
	a.Put.Body = append(a.Put.Body, strings.Repeat("x", size-r.Size())...)
	return a
}
