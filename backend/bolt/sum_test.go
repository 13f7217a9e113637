package bolt_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/bbolt"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/bolt"
)

func TestSum_AnyFlippedBitIsFound(t *testing.T) {
	for n, e := range samples() {
		entry, form := bolt.EncodeEvent(&e)
		entry, form = bytes.Clone(entry), bytes.Clone(form)
		for at := range 8 * len(form) {
			form[at/8] ^= 1 << (at % 8)
			if _, err := bolt.DecodeResource(e.Resource.Key, form); !errors.Is(err, backend.ErrUnreadable) {
				t.Fatalf("sample %d: with bit %d of its resource flipped: %v", n, at, err)
			}
			form[at/8] ^= 1 << (at % 8)
		}
		for at := range 8 * len(entry) {
			entry[at/8] ^= 1 << (at % 8)
			if _, err := bolt.DecodeEvent(e.Revision, entry); !errors.Is(err, backend.ErrUnreadable) {
				t.Fatalf("sample %d: with bit %d of its log entry flipped: %v", n, at, err)
			}
			entry[at/8] ^= 1 << (at % 8)
		}
	}
}

func TestSum_WhatStandsUnderAnotherKeyIsFound(t *testing.T) {
	e := samples()[0]
	entry, form := bolt.EncodeEvent(&e)
	other := e.Resource.Key
	other.Name += "x"
	if _, err := bolt.DecodeResource(other, form); !errors.Is(err, backend.ErrUnreadable) {
		t.Errorf("a resource under the key of another: %v", err)
	}
	later := e.Revision
	later.Seq++
	if _, err := bolt.DecodeEvent(later, entry); !errors.Is(err, backend.ErrUnreadable) {
		t.Errorf("a log entry under another revision: %v", err)
	}
}

func TestSum_AnyFlippedBitOfTheLogRecordIsFound(t *testing.T) {
	s := mustOpen(t, bolt.Config{Path: filepath.Join(t.TempDir(), "sluice.db")})
	var record []byte
	wantErr(t, s.EditBucket("meta", func(b *bbolt.Bucket) error {
		record = bytes.Clone(b.Get([]byte("log")))
		return nil
	}), nil)
	wantErr(t, bolt.DecodeLog(record), nil)
	for at := range 8 * len(record) {
		record[at/8] ^= 1 << (at % 8)
		if err := bolt.DecodeLog(record); !errors.Is(err, backend.ErrUnreadable) {
			t.Errorf("with bit %d flipped: %v", at, err)
		}
		record[at/8] ^= 1 << (at % 8)
	}
}

// TestSum_NoFileServesAChangedValue flips bits anywhere in copies of a store's file, and cuts some of them off. Whatever
// a copy still serves is what was written.
func TestSum_NoFileServesAChangedValue(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sluice.db")
	s := mustOpen(t, bolt.Config{Path: path})
	begin, err := s.Position(t.Context())
	wantErr(t, err, nil)
	var keys []backend.Key
	for i := range 60 {
		name := fmt.Sprint("k", i)
		_, err := s.Apply(t.Context(), batch(s, name, name, strings.Repeat(name, 100)))
		wantErr(t, err, nil)
		keys = append(keys, backend.Key{Kind: "Net", Namespace: "default", Name: name})
	}
	want := map[backend.Key]*backend.Resource{}
	for _, k := range keys {
		got, err := s.Get(t.Context(), k)
		wantErr(t, err, nil)
		want[k] = got[0]
	}
	crashed, err := os.ReadFile(path) // without the list of free pages
	wantErr(t, err, nil)
	mustClose(t, s)
	closed, err := os.ReadFile(path)
	wantErr(t, err, nil)
	used := len(bytes.TrimRight(closed, "\x00")) // bbolt makes a file larger than it needs
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	const page = 4096
	refused, lost, served := 0, 0, 0
	check := func(r *backend.Resource, err error) {
		switch {
		case err != nil, r == nil:
			lost++
		case !cmp.Equal(r, want[r.Key]):
			t.Errorf("%s is served as %v", r.Key, r)
		default:
			served++
		}
	}
	files := 200
	if testing.Short() {
		files = 20
	}
	broken := filepath.Join(t.TempDir(), "broken.db") // each replaces the one before, since bbolt makes each 16 MiB
	for n := range files {
		content := slices.Clone([][]byte{closed, crashed}[n%2])
		for flips := 0; flips < 8; {
			at := rnd.IntN(8 * used)
			// The number of pages in a page's head stays below 65,536: bbolt frees as many as it says, one by one.
			if at/8%page == 14 || at/8%page == 15 {
				continue
			}
			content[at/8] ^= 1 << (at % 8)
			flips++
		}
		if n%5 == 4 {
			content = content[:rnd.IntN(used)]
		}
		wantErr(t, os.WriteFile(broken, content, 0o600), nil)
		s, err := bolt.Open(bolt.Config{Path: broken})
		if err != nil {
			refused++
			continue
		}
		for _, k := range keys {
			got, err := s.Get(t.Context(), k)
			if err != nil {
				check(nil, err)
			} else {
				check(got[0], nil)
			}
		}
		found, err := s.Range(t.Context(), backend.Range{Kind: "Net", Limit: backend.MaxLimit})
		if err == nil {
			for _, r := range found.Resources {
				check(r, nil)
			}
		}
		events, _ := follow(t.Context(), s, begin)
		for _, e := range events {
			check(e.Resource, nil)
		}
		_ = s.Close()
	}
	t.Logf("%d files are refused; of the others, %d reads found nothing or an error, and %d what was written", refused, lost, served)
	if served == 0 || lost == 0 {
		t.Error("the test shows nothing")
	}
}
