package service_test

import (
	"context"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/hub"
	"github.com/sluicegw/sluice/backend/memory"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/servicetest"
)

// getting is a store that counts the calls of Get for widgets.
type getting struct {
	*memory.Store
	gets atomic.Int32
}

func (s *getting) Get(ctx context.Context, keys ...backend.Key) ([]*backend.Resource, error) {
	if keys[0].Kind == "Widget" {
		s.gets.Add(1)
	}
	return s.Store.Get(ctx, keys...)
}

// gate is a follower of a hub that lets nothing pass to those behind it while it is closed.
type gate struct{ closed atomic.Pointer[chan struct{}] }

func (g *gate) Begin(backend.Position) {}

func (g *gate) Deliver(backend.Delivery) {
	if closed := g.closed.Load(); closed != nil {
		<-*closed
	}
}

// hold closes the gate until open is called.
func (g *gate) hold() (open func()) {
	closed := make(chan struct{})
	g.closed.Store(&closed)
	return func() {
		g.closed.Store(nil)
		close(closed)
	}
}

// setupGated is a service that runs and serves all kinds from memory, which learns of
// changes only while the gate is open.
func setupGated(t *testing.T) (*fixture, *getting, *gate) {
	t.Helper()
	plain, err := memory.Open(memory.Config{Rand: rand.New(rand.NewPCG(1, 2))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = plain.Close() })
	store, in := &getting{Store: plain}, &gate{}
	changes, err := hub.New(hub.Config{Store: store})
	if err != nil {
		t.Fatal(err)
	}
	changes.AddFollower(in)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- changes.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	s, err := service.New(service.Config{Kinds: []descriptor.Kind{servicetest.Widget(), servicetest.Cluster()}, Store: store, Hub: changes})
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{&servicetest.Fixture{Service: s, T: t, Store: plain}}
	f.ServeIndexed()
	return f, store, in
}

// shown waits until the index has the last change. On a busy machine that takes longer
// than a read waits for it.
func (f *fixture) shown() {
	for ok := false; !ok; {
		if _, ok = f.Index().View(f.T.Context()); !ok {
			time.Sleep(time.Millisecond)
		}
	}
}

func TestWrite_AWriteTakesWhatTheIndexHas(t *testing.T) {
	f, store, _ := setupGated(t)
	write := func(name string, ready func()) {
		t.Helper()
		out := f.CreateWidget(name, `{"title":"A","weight":70,"tags":["x","y"]}`)
		ready()
		out, err := f.Writer.UpdateStatus(context.Background(), service.StatusRequest{
			Identity: servicetest.Named(name), ExpectedRevision: out.Resource.Stored.Revision.String(),
			Status: servicetest.Raw(`{"id":"1","conditions":[{"type":"Ready","status":"True"},{"type":"Available","status":"False"}]}`),
		})
		if err != nil {
			t.Fatal(err)
		}
		ready()
		if out, err = f.UpdateWidget(name, out.Resource.Stored.Revision.String(), `{"title":"B","weight":71,"tags":["x"]}`); err != nil {
			t.Fatal(err)
		}
		ready()
		out, err = f.Writer.Patch(context.Background(), service.PatchRequest{
			Identity: servicetest.Named(name), ExpectedRevision: out.Resource.Stored.Revision.String(), Patch: servicetest.Raw(`{"heavy":true}`),
		})
		if err != nil || servicetest.Title(out.Resource.Body) != "B" {
			t.Fatalf("%v %v", out, err)
		}
	}
	write("a", f.shown)
	if n := store.gets.Load(); n != 0 {
		t.Errorf("the writes read the store %d times", n)
	}
	unindexed, err := service.New(service.Config{Kinds: []descriptor.Kind{servicetest.Widget(), servicetest.Cluster()}, Store: store, IndexMemory: -1})
	if err != nil {
		t.Fatal(err)
	}
	f.Service = unindexed
	write("b", func() {})
	if n := store.gets.Load(); n != 3 {
		t.Errorf("without the index they read it %d times", n)
	}
	if a, b := string(f.Stored("a").Body), string(f.Stored("b").Body); a != b {
		t.Errorf("what is written is\n%s\nwithout the index\n%s", a, b)
	}
}

func TestWrite_WhatAnOldIndexSaysIsNotBelieved(t *testing.T) {
	f, _, in := setupGated(t)
	made := f.CreateWidget("a", `{"title":"A"}`)
	gone := f.CreateWidget("gone", `{"title":"A"}`)
	large := f.CreateWidget("large", `{"title":"A"}`)
	f.Rewrite("large", false, func(tree map[string]any) { tree["status"] = map[string]any{"id": strings.Repeat("x", 900<<10)} })
	f.shown()
	open := in.hold()
	defer func() { open() }()
	next := f.Rewrite("a", true, func(tree map[string]any) { tree["spec"].(map[string]any)["title"] = "B" })
	t.Run("the revision that the index has is a conflict", func(t *testing.T) {
		_, err := f.UpdateWidget("a", made.Resource.Stored.Revision.String(), `{"title":"C"}`)
		if e := servicetest.WantCode(t, err, failure.CodeConflict); e.CurrentRevision != next.Revision.String() {
			t.Errorf("current is %s", e.CurrentRevision)
		}
	})
	t.Run("a change that would change nothing in the index is made", func(t *testing.T) {
		out, err := f.UpdateWidget("a", next.Revision.String(), `{"title":"A"}`)
		if err != nil || out.Outcome != service.Updated || servicetest.Title(out.Resource.Body) != "A" {
			t.Errorf("%+v %v", out, err)
		}
	})
	t.Run("a change that changes nothing in the store is none", func(t *testing.T) {
		now := f.Stored("a")
		out, err := f.UpdateWidget("a", now.Revision.String(), `{"title":"A"}`)
		if err != nil || out.Outcome != service.Unchanged || out.Resource.Stored.Revision.String() != now.Revision.String() {
			t.Errorf("%+v %v", out, err)
		}
	})
	t.Run("what was deleted is not found", func(t *testing.T) {
		_, err := f.Store.Apply(context.Background(), backend.Batch{
			RequestID: "gone", Deadline: f.Store.Now().Add(5e9),
			Actions: []backend.Action{{Key: f.Stored("gone").Key, If: backend.Condition{Presence: backend.Present}, Op: backend.OpDelete}},
		})
		if err != nil {
			t.Fatal(err)
		}
		_, err = f.UpdateWidget("gone", gone.Resource.Stored.Revision.String(), `{"title":"C"}`)
		servicetest.WantCode(t, err, failure.CodeNotFound)
	})
	t.Run("a change that would be too large in the index is made", func(t *testing.T) {
		f.Rewrite("large", false, func(tree map[string]any) { delete(tree, "status") })
		out, err := f.Writer.Update(context.Background(), service.UpdateRequest{
			Identity: servicetest.Named("large"), ExpectedRevision: large.Resource.Stored.Revision.String(), Spec: servicetest.Raw(`{"title":"B"}`),
			Metadata: service.Metadata{Annotations: service.Optional[[]service.Annotation]{Set: true, Value: []service.Annotation{{Key: "a", Value: strings.Repeat("x", 200<<10)}}}},
		})
		if err != nil || out.Outcome != service.Updated || servicetest.Title(out.Resource.Body) != "B" {
			t.Errorf("%+v %v", out, err)
		}
	})
	t.Run("a dry run says what would be stored now", func(t *testing.T) {
		now := f.Rewrite("a", true, func(tree map[string]any) { tree["metadata"].(map[string]any)["description"] = "new" })
		out, err := f.Writer.Patch(context.Background(), service.PatchRequest{Identity: servicetest.Named("a"), ExpectedRevision: now.Revision.String(), Patch: servicetest.Raw(`{"title":"D"}`), DryRun: true})
		if err != nil || out.Resource.Stored.SpecRevision != now.SpecRevision {
			t.Errorf("%+v %v", out, err)
		}
	})
}
