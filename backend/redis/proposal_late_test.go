package redis_test

import (
	"strings"
	"testing"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/redis"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/internal/redistest"
)

// duplicate is a request that the network keeps back while another client acts.
type duplicate struct {
	says string
	// there is a resource at first.
	there bool
	// write is what the caller asks for, with the revision that it knows.
	write func(*lateness, kind.Identity, *string) (*service.Written, error)
	// between is what the other client does while the request is kept back.
	between func(*lateness, kind.Identity)
	// late is the code that the caller gets if the request arrives after its deadline, and early if it arrives
	// before. reply is part of the reply of the store in the latter case.
	late, early failure.Code
	reply       string
}

// lateness is a caller on a slow way and another client.
type lateness struct {
	*testing.T
	slow, other *service.Service
}

func (l *lateness) must(_ *service.Written, err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

func (l *lateness) create(id kind.Identity) {
	l.Helper()
	l.must(l.other.Writer.Create(l.Context(), service.CreateRequest{Identity: id, Spec: titled("theirs")}))
}

func (l *lateness) remove(id kind.Identity) {
	l.Helper()
	l.must(l.other.Writer.Delete(l.Context(), service.DeleteRequest{Identity: id}))
}

func duplicates() []duplicate {
	create := func(l *lateness, id kind.Identity, _ *string) (*service.Written, error) {
		return l.slow.Writer.Create(l.Context(), service.CreateRequest{Identity: id, Spec: titled("ours")})
	}
	upsert := func(l *lateness, id kind.Identity, _ *string) (*service.Written, error) {
		return l.slow.Writer.Upsert(l.Context(), service.UpsertRequest{Identity: id, Spec: titled("ours")})
	}
	remove := func(l *lateness, id kind.Identity, _ *string) (*service.Written, error) {
		return l.slow.Writer.Delete(l.Context(), service.DeleteRequest{Identity: id})
	}
	removeKnown := func(l *lateness, id kind.Identity, known *string) (*service.Written, error) {
		return l.slow.Writer.Delete(l.Context(), service.DeleteRequest{Identity: id, ExpectedRevision: known})
	}
	undone := func(l *lateness, id kind.Identity) {
		l.create(id)
		l.remove(id)
	}
	replaced := func(l *lateness, id kind.Identity) {
		l.remove(id)
		l.create(id)
	}
	updated := func(l *lateness, id kind.Identity) {
		l.must(l.other.Writer.Upsert(l.Context(), service.UpsertRequest{Identity: id, Spec: titled("theirs too")}))
	}
	return []duplicate{
		{"a create that another client undid", false, create, undone, "", "", "ok"},
		{"a create that another client made, too", false, create, (*lateness).create, failure.CodeAlreadyExists, failure.CodeAlreadyExists, "exists"},
		{"an upsert of what another client changed", true, upsert, updated, "", "", "conflict"},
		{"an upsert of what another client removed", true, upsert, (*lateness).remove, "", "", "absent"},
		{"a delete of what another client made anew", true, remove, replaced, "", "", "ok"},
		{"a delete at a revision of what another client made anew", true, removeKnown, replaced, failure.CodeConflict, failure.CodeConflict, "conflict"},
		{"a delete of what another client removed", true, remove, (*lateness).remove, failure.CodeNotFound, failure.CodeNotFound, "absent"},
	}
}

func TestProposal_DuplicateComesLate(t *testing.T) {
	t.Parallel()
	for _, d := range duplicates() {
		for _, after := range []bool{true, false} {
			says := d.says + ", after its deadline"
			if !after {
				says = d.says + ", before its deadline"
			}
			t.Run(says, func(t *testing.T) {
				t.Parallel()
				d.run(t, after)
			})
		}
	}
}

func (d *duplicate) run(t *testing.T, after bool) {
	s, prefix := server.Server(t), redistest.Prefix()
	p := redistest.NewProxy(t, s.Addr)
	slow, direct := openLate(t, p.URL(), prefix), openLate(t, s.URL(), prefix)
	deadline := 200 * time.Millisecond
	if !after {
		deadline = 2 * time.Second // enough for the other client to act, and for the delivery
	}
	l := &lateness{t, gateway(t, slow, "ours-", deadline), gateway(t, direct, "theirs-", time.Minute)}
	id, key := thingNamed("n"), thingKey("n")
	l.create(thingNamed("first")) // the server knows the script
	var known *string
	if d.there {
		l.create(id)
		r := stored(t, direct, key).Revision.String()
		known = &r
	}
	from, err := direct.Position(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	script, resource := redistest.Command("EVALSHA"), redistest.Containing(prefix+"i:{0}:"+string(key.Append(nil)))
	held := p.Hold(func(args []string) bool { return script(args) && resource(args) })
	type answer struct {
		out *service.Written
		err error
	}
	answers := make(chan answer, 1)
	go func() {
		out, err := d.write(l, id, known)
		answers <- answer{out, err}
	}()
	<-held.Caught()
	d.between(l, id)
	reply, contained, want := "", "deadline", d.late
	if !after {
		reply, contained, want = held.Deliver(), d.reply, d.early
	}
	a := <-answers
	if after {
		reply = held.Deliver()
	}
	if !strings.Contains(reply, contained) {
		t.Errorf("the store says %q to it, want %s", reply, contained)
	}
	if got := code(t, a.err); got != want {
		t.Errorf("the caller is told %q (%v), want %q", got, a.err, want)
	}
	d.truth(t, direct, from, key, a.out)
}

// truth holds what the caller was told against the log and what is stored.
func (d *duplicate) truth(t *testing.T, st *redis.Store, from backend.Position, key backend.Key, out *service.Written) {
	t.Helper()
	events := changes(t, st, from, key.Kind)
	ours, want := by(events, "ours-"), 0
	if out != nil {
		want = 1
	}
	if ours != want {
		t.Errorf("the caller made %d changes, want %d", ours, want)
	}
	now := stored(t, st, key)
	switch last := events[len(events)-1]; {
	case last.Type == backend.Deleted && now != nil:
		t.Errorf("%s is there though its last change is its end", now)
	case last.Type != backend.Deleted && (now == nil || now.Revision != last.Revision):
		t.Errorf("%v is there, the last change is %s", now, last.Revision)
	case out == nil:
	case !strings.HasPrefix(last.RequestID, "ours-"):
		t.Errorf("the last change is of %s", last.RequestID)
	case last.Type != backend.Deleted && out.Resource.Stored.Revision != last.Revision,
		last.Type == backend.Deleted && out.Resource.Stored.UID != last.Resource.UID:
		t.Errorf("the caller was told %s, the last change is %s", out.Resource.Stored.Revision, last.Revision)
	}
}

// stored is what is there, nil for nothing.
func stored(t *testing.T, st *redis.Store, k backend.Key) *backend.Resource {
	t.Helper()
	found, err := st.Get(t.Context(), k)
	if err != nil {
		t.Fatal(err)
	}
	return found[0]
}
