package query_test

import (
	"testing"

	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/memory"
	"github.com/sluicegw/sluice/backend/service"
	queryplan "github.com/sluicegw/sluice/backend/service/query/plan"
	"github.com/sluicegw/sluice/backend/service/servicetest"
)

// TestStoredBytes_AreKnownOfKindsInMemory, and of no other: the store is not read for them.
func TestStoredBytes_AreKnownOfKindsInMemory(t *testing.T) {
	store, err := memory.Open(memory.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	out := servicetest.Widget()
	out.OutOfMemory = true
	s, err := service.New(service.Config{Kinds: []descriptor.Kind{out, servicetest.Cluster()}, Store: store})
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{&servicetest.Fixture{Service: s, T: t, Store: store}}
	if _, known, err := s.Reader.StoredBytes(t.Context(), "Cluster"); known || err != nil {
		t.Errorf("before the kind is in memory: known %v, %v", known, err)
	}
	f.ServeIndexed()
	f.CreateWidget("a", `{"title":"A"}`)
	ctx, reads := queryplan.WithExplanation(t.Context())
	for kind, want := range map[string]bool{"Widget": false, "Cluster": true} {
		bytes, known, err := s.Reader.StoredBytes(ctx, kind)
		if bytes != 0 || known != want || err != nil {
			t.Errorf("%s: %d, known %v, %v", kind, bytes, known, err)
		}
	}
	if got := reads.Reads(); len(got) > 0 {
		t.Errorf("it was read so: %+v", got)
	}
	if _, _, err := s.Reader.StoredBytes(ctx, "Nothing"); err == nil {
		t.Error("a kind that is not served has a size")
	}
}
