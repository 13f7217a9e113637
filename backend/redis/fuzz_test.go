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

// sumRoom stands for the sums of a record, until [redis.Reseal] puts the right ones in their place.
const sumRoom = "bodyheadhead"

// records are seeds: one of each form, and how they break.
func records() []string {
	head := "17-3\n1750000000001\n000001750009999\ny\n17-2\nuid\n1750000000000\n64\n"
	ref := func(bound string) string { return element("\x02Net\x00\x02ns\x00\x02n\x00" + bound) }
	refs := ref("\x26") + ref("\x27")
	return []string{
		head + "0\n0\n0\n\n1\n\n" + sumRoom + "j{}",
		fmt.Sprintf("%s7\n6\n%d\nd\n2\next\n%s%sj{}", head, len(refs), sumRoom, refs),
		head + "7\n6\n999\n\n1\n\n" + sumRoom + refs,
		head + "7\n6\n1\n\n1\n\n" + sumRoom + refs,
		strings.Replace(head, "\n17-2\n", "\n\n", 1) + "0\n0\n0\n\n1\n\n" + sumRoom + "j{}",
		strings.Replace(head, "uid", "%0A%25", 1) + "5\n0\n0\n%0A\n1\n\n" + sumRoom + "\x00\x02\x02\xff",
		strings.Replace(head, "\n64\n", "\n65\n", 1) + "0\n0\n0\n\n1\n\n" + sumRoom + "j{}",
		strings.Replace(head, "\n64\n", "\n064\n", 1) + "0\n0\n0\n\n1\n\n" + sumRoom + "j{}",
		"", "\n\n\n\n\n\n\n\n\n\n\n\n\n\n", "17-3",
	}
}

func FuzzRecord(f *testing.F) {
	for _, s := range records() {
		f.Add(s)
	}
	k := backend.Key{Kind: "Net", Namespace: "ns", Name: "n"}
	f.Fuzz(func(t *testing.T, value string) {
		value = redis.Reseal(k, value)
		r, err := redis.DecodeRecord(k, value)
		if err != nil {
			if !errors.Is(err, backend.ErrUnreadable) {
				t.Fatalf("error %v", err)
			}
			return
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
	bound := element(key + "\x27")
	for _, kind := range []string{"a", "m", "d", "x", "s", "newer"} {
		for _, s := range records() {
			head := kind + "\n264\n1750000000001\nrequest\nactor\n"
			f.Add("17-3", head+key, s)
			f.Add("17-3", head+"17-2\n1750000000000\n\ny\n\n0\n"+key, s)
			f.Add("17-3", fmt.Sprintf("%s17-2\n1750000000000\n000001750009999\n\n%d\n6\n%schange%s", head, len(bound), bound, key), s)
			f.Add("17-3", head+"17-2\n1750000000000\n\n\n9\n9\n", s)
		}
	}
	f.Add("x-3", "", "")
	f.Fuzz(func(t *testing.T, id, head, data string) {
		k := backend.Key{Kind: "Net", Namespace: "ns", Name: "n"}
		values := map[string]any{"h": redis.SealHead(id, head), "d": redis.Reseal(k, data)}
		e, ok, err := redis.DecodeEntry(id, values)
		switch {
		case err != nil:
			if ok || !errors.Is(err, backend.ErrPositionExpired) {
				t.Fatalf("change %v, error %v", ok, err)
			}
		case ok && (e.Resource == nil || e.Type == 0 || (e.Before != nil) != (e.Type == backend.Modified) || e.Revision.String() != id):
			t.Fatalf("%+v", e)
		}
	})
}

func FuzzMember(f *testing.F) {
	k := backend.Key{Kind: "Net", Namespace: "ns", Name: "n\x00m"}
	r := &backend.Resource{Key: k, Refs: []backend.Ref{{Key: k, Bound: true}}, Envelope: backend.Envelope{Deleting: true, Declared: "d", BindingVersion: 1}}
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
		_ = redis.DueOrder(m)
		for _, r := range []backend.Range{{Kind: "Net"}, {Referenced: &backend.Key{Kind: "Net", Namespace: "ns", Name: "n"}}} {
			got, findErr := redis.FindMember(r, m)
			if (m[0] == 'n' || m[0] == 'd') && r.Referenced == nil && (got != k && err == nil || (err == nil) != (findErr == nil)) {
				t.Fatalf("%q leads to %v (%v) and to %v (%v)", m, k, err, got, findErr)
			}
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
