package redis_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/redis"
	"github.com/sluicegw/sluice/internal/redistest"
)

// late is a batch that a network holds back, while another client acts.
type late struct {
	says string
	// before makes what the batch is about, between is what the other client does.
	before, between []backend.Action
	batch           backend.Action
}

func lateBatches(k backend.Key) []late {
	put := func(body string) backend.Action {
		return backend.Action{Key: k, Op: backend.OpPut, Put: backend.Put{UID: "u" + body, Caller: true, Body: backend.EncodeBody([]byte(body))}}
	}
	create := put("1")
	create.If.Presence = backend.Absent
	remove := backend.Action{Key: k, Op: backend.OpDelete}
	return []late{
		// After what the other client does each would succeed, if it were judged.
		{"create", nil, []backend.Action{create, remove}, create},
		{"upsert", []backend.Action{create}, []backend.Action{put("2")}, put("3")},
		{"delete", []backend.Action{create}, []backend.Action{remove, create}, remove},
	}
}

func TestFaultBatchArrivesLate(t *testing.T) {
	t.Parallel()
	for _, l := range lateBatches(backend.Key{Kind: "Net", Namespace: "default", Name: "n"}) {
		t.Run(l.says, func(t *testing.T) {
			t.Parallel()
			s := server.Server(t)
			p, prefix := redistest.NewProxy(t, s.Addr), redistest.Prefix()
			slow, other := openLate(t, p.URL(), prefix), openLate(t, s.URL(), prefix)
			n := 0
			must := func(actions []backend.Action) {
				t.Helper()
				for _, a := range actions {
					n++
					b := backend.Batch{RequestID: fmt.Sprint("other-", n), Deadline: other.Now().Add(time.Minute), Actions: []backend.Action{a}}
					if _, err := other.Apply(t.Context(), b); err != nil {
						t.Fatal(err)
					}
				}
			}
			must(l.before)
			held := p.Hold(redistest.Containing(prefix + "i:"))
			b := backend.Batch{RequestID: "late", Deadline: slow.Now().Add(500 * time.Millisecond), Actions: []backend.Action{l.batch}}
			if _, err := slow.Apply(t.Context(), b); !errors.Is(err, backend.ErrUnknown) {
				t.Fatalf("the batch is under way and its caller was told: %v", err)
			}
			must(l.between)
			want := content(t, other)
			redistest.Await(t, "the deadline", func() error {
				if now := other.Now(); now.Before(b.Deadline.Add(100 * time.Millisecond)) {
					return fmt.Errorf("it is %v", now)
				}
				return nil
			})
			if reply := held.Deliver(); !strings.Contains(reply, "deadline") {
				t.Errorf("the late batch was answered %q", reply)
			}
			if d := cmp.Diff(want, content(t, other)); d != "" {
				t.Errorf("the late batch changed something:\n%s", d)
			}
		})
	}
}

func TestFaultBatchArrivesAfterItsCallerLeft(t *testing.T) {
	t.Parallel()
	create := lateBatches(backend.Key{Kind: "Net", Namespace: "default", Name: "n"})[0].batch
	s := server.Server(t)
	p, prefix := redistest.NewProxy(t, s.Addr), redistest.Prefix()
	st := openLate(t, p.URL(), prefix)
	first := create
	first.Key.Name = "first" // loads the script
	if _, err := st.Apply(t.Context(), backend.Batch{RequestID: "first", Deadline: st.Now().Add(time.Minute), Actions: []backend.Action{first}}); err != nil {
		t.Fatal(err)
	}
	held := p.Hold(redistest.Containing(prefix + "i:"))
	b := backend.Batch{RequestID: "early", Deadline: st.Now().Add(time.Minute), Actions: []backend.Action{create}}
	if _, err := st.Apply(t.Context(), b); !errors.Is(err, backend.ErrUnknown) {
		t.Fatalf("the batch is under way and its caller was told: %v", err)
	}
	if reply := held.Deliver(); !strings.Contains(reply, "ok") {
		t.Errorf("within its deadline it was answered %q", reply)
	}
	once := content(t, st)
	if len(once) != 3 { // two resources and a position
		t.Errorf("it is not there: %q", once)
	}
	_ = held.Deliver() // and again: what is created is there
	if d := cmp.Diff(once, content(t, st)); d != "" {
		t.Errorf("it was applied twice:\n%s", d)
	}
}

func openLate(t *testing.T, url, prefix string) *redis.Store {
	t.Helper()
	st, err := openPatiently(t.Context(), redis.Config{URL: url, Prefix: prefix, Timeout: callTimeout})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	return st
}

// content is all that is stored, and where the log is.
func content(t *testing.T, st *redis.Store) (out []string) {
	t.Helper()
	all, err := list(t.Context(), st)
	if err != nil {
		t.Fatal(err)
	}
	for k, r := range all {
		out = append(out, k.String()+" "+r.Revision.String()+" "+string(r.Body))
	}
	p, err := st.Position(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(out)
	return append(out, p.String())
}
