package bolt_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/bolt"
)

// TestFile_Crash kills a process with 32 writers again and again on one file. What
// it acknowledged is there, the buckets agree, and a watch that goes on from
// its last position sees each change exactly once.
func TestFile_Crash(t *testing.T) {
	rounds := 20
	if testing.Short() {
		rounds = 5
	}
	cfg := bolt.Config{Path: filepath.Join(t.TempDir(), "sluice.db"), LogEntries: 1 << 30, LogBytes: 1 << 40}
	s := mustOpen(t, cfg)
	start, err := s.Position(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	mustClose(t, s)
	cursor := start.String()
	var seen []string              // revisions that the watches delivered, in order
	acked := map[string][]string{} // revisions by request id
	for round := range rounds {
		cmd, out := child(t, "writers", cfg.Path, cursor)
		acks, limit := 0, 40+round*37%200
		err := lines(out, func(f []string) {
			switch f[0] {
			case "A":
				acked[f[1]] = f[2:]
				if acks++; acks == limit {
					_ = cmd.Process.Kill()
				}
			case "D":
				cursor = f[1]
				seen = append(seen, f[2:]...)
			default:
				t.Errorf("round %d: %q", round, f)
			}
		})
		_ = cmd.Wait()
		if err != nil || acks < limit {
			t.Fatalf("round %d: %d acknowledged, error %v", round, acks, err)
		}
		s := mustOpen(t, cfg)
		if err := s.Check(t.Context()); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		history := replay(t, s, start)
		ids := map[string][]string{}
		var all []string
		for _, e := range history {
			all = append(all, e.Revision.String())
			ids[e.RequestID] = append(ids[e.RequestID], e.Revision.String())
		}
		for id, revisions := range acked {
			for _, r := range revisions {
				if r != "" && !slices.Contains(ids[id], r) {
					t.Fatalf("round %d: %s was acknowledged at %s, the log has %q", round, id, r, ids[id])
				}
			}
		}
		if len(seen) > len(all) || !slices.Equal(seen, all[:len(seen)]) {
			t.Fatalf("round %d: the watches saw %d changes, not the first of the log's %d", round, len(seen), len(all))
		}
		mustClose(t, s)
	}
	if len(seen) == 0 {
		t.Fatal("the watches saw nothing")
	}
}

func mustOpen(t testing.TB, cfg bolt.Config) *bolt.Store {
	t.Helper()
	s, err := bolt.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func mustClose(t testing.TB, s *bolt.Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// follow returns the changes after a position, up to the caught-up mark.
func follow(ctx context.Context, s *bolt.Store, from backend.Position) ([]backend.Event, error) {
	w, err := s.Watch(ctx, backend.Watch{From: from, MaxLag: 1 << 30})
	if err != nil {
		return nil, err
	}
	defer w.Close()
	var events []backend.Event
	for {
		d, err := w.Next(ctx)
		events = append(events, d.Events...)
		if err != nil || d.CaughtUp {
			return events, err
		}
	}
}

func replay(t testing.TB, s *bolt.Store, from backend.Position) []backend.Event {
	t.Helper()
	events, err := follow(context.Background(), s, from)
	if err != nil {
		t.Fatalf("replay from %v: %v", from.Shard(0), err)
	}
	return events
}

func key(name string) backend.Key {
	return backend.Key{Kind: "Net", Namespace: "default", Name: name}
}

// batch puts one resource, and may do so for ever.
func batch(s *bolt.Store, id, name, body string) backend.Batch {
	return backend.Batch{RequestID: id, Deadline: s.Now().AddDate(1, 0, 0), Actions: []backend.Action{{
		Key: key(name), Op: backend.OpPut,
		Put: backend.Put{UID: "u", Body: backend.EncodeBody([]byte(body))},
	}}}
}

func mustPut(t testing.TB, s *bolt.Store, name string) backend.Result {
	t.Helper()
	res, err := s.Apply(context.Background(), batch(s, fmt.Sprint("put-", name), name, "1"))
	if err != nil {
		t.Fatal(err)
	}
	return res
}
