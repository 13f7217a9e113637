package redis_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/redis"
)

// records are seeds: one of each form, and how they break.
func records() []string {
	head := "17-3\n17-2\nuid\n1750000000000\n1750000000001\n64\n1750000009999\ny\n200\n20\n"
	rows := entry('i', "\x02_definition\x00\x02f\x00") + entry('i', "\x02color\x00\x03\x80\x00\x00\x00\x00\x00\x00\x01") +
		entry('x', "\x03\x80\x00\x01\x97\x74\xdc\x10\x00") + entry('q', "newer")
	refs := entry('r', "\x02Net\x00\x02ns\x00\x02n\x00\x26") + entry('r', "\x02Net\x00\x02ns\x00\x02n\x00\x27")
	return []string{
		head + "0\n0\n0\n\n1\n\n" + "j{}",
		fmt.Sprintf("%s%d\n6\n%d\nd\n2\next\n%s%sj{}", head, len(rows), len(refs), rows, refs),
		head + "999\n0\n0\n\n1\n\n" + rows,
		strings.Replace(head, "uid", "%0A%25", 1) + "5\n0\n0\n%0A\n1\n\n" + "i\x00\x02\x02\xff",
		strings.Replace(head, "\n64\n", "\n65\n", 1) + "0\n0\n0\n\n1\n\n" + "j{}",
		strings.Replace(head, "\n64\n", "\n064\n", 1) + "0\n0\n0\n\n1\n\n" + "j{}",
		"", "\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n", "17-3",
	}
}

func FuzzRecord(f *testing.F) {
	for _, s := range records() {
		f.Add(s)
	}
	k := backend.Key{Kind: "Net", Namespace: "ns", Name: "n"}
	f.Fuzz(func(t *testing.T, value string) {
		r, err := redis.DecodeRecord(k, value, false)
		again, sharedErr := redis.DecodeRecord(k, value, true)
		if (err == nil) != (sharedErr == nil) {
			t.Fatalf("alone %v, with shared names %v", err, sharedErr)
		}
		if err != nil {
			if !errors.Is(err, backend.ErrUnreadable) {
				t.Fatalf("error %v", err)
			}
			return
		}
		if d := cmp.Diff(r, again); d != "" {
			t.Fatalf("alone -, with shared names +:\n%s", d)
		}
		if r.CreatedAt.IsZero() || r.UpdatedAt.IsZero() || !strings.HasSuffix(value, string(r.Body)) {
			t.Fatalf("%+v of %q", r, value)
		}
		for _, m := range redis.MembersOf(r) {
			if got, err := redis.DecodeMember(string(m)); err != nil || got != k {
				t.Fatalf("member %q leads to %v, error %v", m, got, err)
			}
		}
	})
}

func FuzzEntry(f *testing.F) {
	key := "\x02Net\x00\x02ns\x00\x02n\x00"
	for _, kind := range []string{"a", "m", "d", "x", "s", "newer"} {
		for _, s := range records() {
			f.Add("17-3", kind+"\n264\n1750000000001\nrequest\n"+key, s, "i\x00\x02\x02\x00", kind == "m")
		}
	}
	f.Add("x-3", "", "", "", false)
	f.Fuzz(func(t *testing.T, id, head, data, before string, changed bool) {
		values := map[string]any{"h": head, "d": data}
		if changed {
			values["b"] = before
		}
		e, ok, err := redis.DecodeEntry(id, values, false)
		again, okAgain, sharedErr := redis.DecodeEntry(id, values, true)
		if ok != okAgain || (err == nil) != (sharedErr == nil) {
			t.Fatalf("alone %v %v, with shared names %v %v", ok, err, okAgain, sharedErr)
		}
		switch {
		case err != nil:
			if ok || !errors.Is(err, backend.ErrPositionExpired) {
				t.Fatalf("change %v, error %v", ok, err)
			}
		case ok && (e.Resource == nil || e.Type == 0 && e.Type != backend.Added || e.Revision.String() != id):
			t.Fatalf("%+v", e)
		case ok:
			if d := cmp.Diff(e, again); d != "" {
				t.Fatalf("alone -, with shared names +:\n%s", d)
			}
		}
	})
}

func FuzzMember(f *testing.F) {
	k := backend.Key{Kind: "Net", Namespace: "ns", Name: "n\x00m"}
	r := &backend.Resource{Key: k, Rows: []backend.Row{{Index: "color", Value: backend.AppendInt(nil, 1)}}, Refs: []backend.Ref{{Key: k, Bound: true}}, Envelope: backend.Envelope{Declared: "d", Passes: 1}}
	r.ExpiresAt = time.UnixMilli(1_750_000_000_000)
	for _, m := range redis.MembersOf(r) {
		f.Add(string(m))
		f.Add(string(m[:len(m)-1]))
	}
	f.Add("")
	f.Fuzz(func(t *testing.T, m string) {
		k, err := redis.DecodeMember(m)
		if m == "" {
			return
		}
		switch m[0] {
		case 'n', 'i':
			index := ""
			if m[0] == 'i' {
				index = "any"
			}
			got, findErr := redis.FindMember(backend.Range{Kind: "Net", Index: index}, m)
			if got != k && err == nil || (err == nil) != (findErr == nil) {
				t.Fatalf("%q leads to %v (%v) and to %v (%v)", m, k, err, got, findErr)
			}
		case 'r':
			target := backend.Key{Kind: "Net", Namespace: "ns", Name: "n"}
			_, _ = redis.FindMember(backend.Range{Kind: "Net", Referenced: &target}, m)
		}
	})
}

func FuzzRevision(f *testing.F) {
	for _, s := range []string{"17-3", "0-0", "5-0", "0-5", "05-1", "5-01", "-", "1-", "-1", "+1-1", "1-1-1", "18446744073709551615-18446744073709551616", "1_0-1", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		want, wantErr := backend.ParseRevision(s)
		got, err := redis.ParseRevision(s)
		if got != want || (err == nil) != (wantErr == nil) {
			t.Fatalf("%q is %v (%v), want %v (%v)", s, got, err, want, wantErr)
		}
	})
}

func FuzzState(f *testing.F) {
	f.Add("17-3", "15-4 16-0 ")
	f.Add("", "")
	f.Add("x", "1 2 3")
	f.Fuzz(func(t *testing.T, trimmed, epochs string) {
		head := backend.Revision{Epoch: 1 << 40, Seq: 7}
		state, err := redis.ParseState(head, trimmed, epochs)
		switch {
		case err != nil && !errors.Is(err, backend.ErrFormat):
			t.Fatalf("error %v", err)
		case err == nil && (state.Head() != head || state.Trimmed.String() != trimmed || len(state.Epochs) != len(strings.Fields(epochs))+1):
			t.Fatalf("%+v of %q and %q", state, trimmed, epochs)
		}
	})
}

func FuzzURL(f *testing.F) {
	for _, s := range []string{
		"redis://127.0.0.1:6379/0", "rediss://user:pass%20word@host/3", "redis-sentinel://u@a,b:1/main?db=2", "redis-cluster://[::1]:7000,host",
		"redis://:secret@h", "redis-cluster://h/1", "rediss-sentinel://h", "redis://h/x", "redis://h?x=1", "http://h", "redis://", "redis://u:p@h@i", "redis://0]0", "",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		a, err := redis.ParseURL(raw)
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Fatalf("error of several lines: %v", err)
			}
			return
		}
		if len(a.Hosts) == 0 || a.Cluster && a.DB != 0 || a.Cluster && a.Master != "" {
			t.Fatalf("%+v", a)
		}
		b, err := redis.ParseURL(a.String())
		if a.Master != "" {
			return // a sentinel's database and odd names are not told
		}
		if err != nil {
			t.Fatalf("%q of %q: %v", a, raw, err)
		}
		a.Username, a.Password = "", ""
		if d := cmp.Diff(a, b); d != "" {
			t.Fatalf("%q -, what it says of itself +:\n%s", raw, d)
		}
	})
}

func TestVersionsAreCompared(t *testing.T) {
	t.Parallel()
	for version, older := range map[string]bool{
		"6.2.14": true, "6": true, "5.0": true, "7": false, "7.0.0": false, "7.0.15": false, "7.2": false, "8.0-rc1": false, "10.1.2": false,
		"": false, // a server that does not tell
	} {
		if redis.Older(version, "7.0") != older {
			t.Errorf("%q is older than 7.0: %v, want %v", version, !older, older)
		}
	}
}
