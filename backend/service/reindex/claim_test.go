package reindex_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicegw/sluice/backend/service/reindex"
)

func TestDefinition(t *testing.T) {
	now := time.Date(2025, 6, 1, 12, 0, 0, 0, time.UTC)
	seen := func(ago time.Duration) reindex.Definition {
		return reindex.Definition{Fingerprint: "b", Number: 2, Superseded: []string{"a"}, Seen: now.Add(-ago)}
	}
	renewed := seen(0)
	for _, test := range []struct {
		says        string
		stored      reindex.Definition
		fingerprint string
		want        reindex.Definition
		mine        bool
	}{
		{"the first gateway makes the record", reindex.Definition{}, "a", reindex.Definition{Fingerprint: "a", Number: 1, Seen: now}, true},
		{"an unknown fingerprint takes over", seen(time.Second), "c", reindex.Definition{Fingerprint: "c", Number: 3, Superseded: []string{"a", "b"}, Seen: now}, true},
		{"the current one goes on without a write", seen(time.Second), "b", seen(time.Second), true},
		{"the current one gives signs of life", seen(30 * time.Second), "b", renewed, true},
		{"a superseded one waits while a newer gateway lives", seen(59 * time.Second), "a", seen(59 * time.Second), false},
		{"a superseded one takes over when the newer gateways are gone", seen(time.Minute), "a", reindex.Definition{Fingerprint: "a", Number: 3, Superseded: []string{"b"}, Seen: now}, true},
		{"a sign of life far in the future is none", seen(-time.Hour), "a", reindex.Definition{Fingerprint: "a", Number: 3, Superseded: []string{"b"}, Seen: now}, true},
	} {
		t.Run(test.says, func(t *testing.T) {
			got, mine := test.stored.Claim(test.fingerprint, now)
			if d := cmp.Diff(test.want, got); d != "" || mine != test.mine {
				t.Errorf("mine %v, want %v:\n%s", mine, test.mine, d)
			}
		})
	}
	t.Run("sixteen superseded fingerprints are remembered", func(t *testing.T) {
		d := reindex.Definition{}
		for i := range 30 {
			d, _ = d.Claim(string(rune('a'+i)), now)
		}
		if len(d.Superseded) != 16 || d.Superseded[15] != string(rune('a'+28)) || d.Number != 30 {
			t.Errorf("%+v", d)
		}
	})
}

func FuzzDecodeDefinitions(f *testing.F) {
	f.Add([]byte(`j{"format":1,"kinds":{"K":{"fingerprint":"a","number":1,"superseded":["b"],"seen":"2025-06-01T12:00:00Z"}}}`))
	f.Add([]byte(`j{"format":2}`))
	f.Add([]byte("x"))
	f.Fuzz(func(t *testing.T, b []byte) {
		kinds, err := reindex.DecodeDefinitions(b)
		if err != nil {
			return
		}
		for _, d := range kinds {
			if next, mine := d.Claim("fingerprint", time.Unix(0, 0)); mine && next.Fingerprint != "fingerprint" {
				t.Errorf("%+v becomes %+v", d, next)
			}
		}
	})
}
