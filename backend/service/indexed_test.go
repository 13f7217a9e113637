package service_test

import (
	"context"
	"testing"

	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/memory"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/query"
)

func TestAKindCanStayOutOfMemory(t *testing.T) {
	store, err := memory.Open(memory.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	out := widget()
	out.Unindexed = true
	s, err := service.New(service.Config{Kinds: []descriptor.Kind{out, cluster()}, Store: store})
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{Service: s, t: t, store: store}
	f.serveIndexed()
	f.create("a", `{"title":"A"}`)
	ctx, reads := query.WithExplanation(t.Context())
	if page, err := s.List(ctx, anon, query.ListRequest{Kind: "Widget"}); err != nil || len(page.Edges) != 1 {
		t.Errorf("%v %v", page, err)
	}
	if got := reads.Reads(); len(got) != 1 || got[0].Source != "store" {
		t.Errorf("it was read so: %+v", got)
	}
	if stats := s.Index().Stats(); stats.Kinds != 1 || stats.Served != 1 {
		t.Errorf("%+v", stats)
	}
}

func TestAReadOfOneOperationSeesOneState(t *testing.T) {
	f := setupIndexed(t)
	f.create("a", `{"title":"A"}`)
	var moment query.Moment
	ctx := moment.With(t.Context())
	count := func() int {
		t.Helper()
		page, err := f.List(ctx, anon, query.ListRequest{Kind: "Widget"})
		if err != nil {
			t.Fatal(err)
		}
		n, err := page.TotalCount(ctx)
		if err != nil || n != len(page.Edges) {
			t.Fatalf("%d of %d, %v", n, len(page.Edges), err)
		}
		return n
	}
	if n := count(); n != 1 {
		t.Errorf("%d at first", n)
	}
	f.create("b", `{"title":"B"}`)
	if n := count(); n != 1 {
		t.Errorf("%d in the same moment", n)
	}
	if r, err := f.Get(ctx, anon, named("b")); r != nil || err != nil {
		t.Errorf("in the same moment there is %v, %v", r, err)
	}
	moment.Forget()
	if n := count(); n != 2 {
		t.Errorf("%d in the next moment", n)
	}
	if page, err := f.List(context.Background(), anon, query.ListRequest{Kind: "Widget"}); err != nil || len(page.Edges) != 2 {
		t.Errorf("without a moment: %v %v", page, err)
	}
}
