package rpc_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/servicetest"
)

// watcher is a stream of changes.
type watcher struct {
	testing.TB
	stream *connect.ServerStreamForClient[dynamicpb.Message]
	cursor string
}

// watch begins a stream.
func (w *world) watch(text string) *watcher {
	w.T.Helper()
	m := w.method("WatchWidgets")
	req := connect.NewRequest(w.message(m.Input(), text))
	req.Header().Set("X-User", w.user)
	ctx, stop := context.WithCancel(w.T.Context())
	stream, err := w.newClient(m).CallServerStream(ctx, req)
	if err != nil {
		stop()
		w.T.Fatal(err)
	}
	w.T.Cleanup(func() {
		stop()
		_ = stream.Close()
	})
	return &watcher{TB: w.T, stream: stream}
}

// next returns the next event: its type and the name of the resource.
func (s *watcher) next() (typ, name string) {
	s.Helper()
	if !s.stream.Receive() {
		s.Fatal("the stream has ended:", s.stream.Err())
	}
	return s.event()
}

// event returns the event that was received.
func (s *watcher) event() (typ, name string) {
	s.Helper()
	m := s.stream.Msg()
	fields := m.Descriptor().Fields()
	number := m.Get(fields.ByName("type")).Enum()
	s.cursor = m.Get(fields.ByName("cursor")).String()
	resource := m.Get(fields.ByName("widget")).Message()
	metadata := resource.Get(resource.Descriptor().Fields().ByName("metadata")).Message()
	return string(fields.ByName("type").Enum().Values().ByNumber(number).Name())[len("WATCH_EVENT_TYPE_"):],
		metadata.Get(metadata.Descriptor().Fields().ByName("name")).String()
}

// expect compares the next events: types and names in turn.
func (s *watcher) expect(want ...string) {
	s.Helper()
	for i := 0; i < len(want); i += 2 {
		if typ, name := s.next(); typ != want[i] || name != want[i+1] {
			s.Fatalf("%s %s, not %s %s", typ, name, want[i], want[i+1])
		}
	}
}

// end returns the error of a stream that has ended.
func (s *watcher) end() error {
	s.Helper()
	if s.stream.Receive() {
		s.Fatal("the stream goes on:", s.stream.Msg())
	}
	return s.stream.Err()
}

func TestWatch_TellsTheStateAndWhatHappensAndResumes(t *testing.T) {
	for name, options := range map[string][]connect.ClientOption{
		"gRPC": {connect.WithGRPC()}, "gRPC-Web": {connect.WithGRPCWeb()}, "Connect": nil,
	} {
		t.Run(name, func(t *testing.T) {
			w := open(t)
			w.options = options
			w.UpsertWidget(servicetest.Named("a"), "t")
			s := w.watch(`{"snapshot": true}`)
			s.expect("RESET", "", "SNAPSHOT", "a", "IN_SYNC", "")
			w.UpsertWidget(servicetest.Named("b"), "t")
			s.expect("ADDED", "b")
			from := s.cursor
			w.UpsertWidget(servicetest.Named("a"), "u")
			w.DeleteWidget(servicetest.Named("b"))
			s.expect("MODIFIED", "a", "DELETED", "b")
			again := w.watch(`{"cursor": "` + from + `"}`)
			again.expect("MODIFIED", "a", "DELETED", "b", "IN_SYNC", "")
			w.UpsertWidget(servicetest.WidgetIn("other", "c"), "t")
			again.expect("ADDED", "c")
			narrow := w.watch(`{"namespace": "other", "snapshot": true}`)
			narrow.expect("RESET", "", "SNAPSHOT", "c", "IN_SYNC", "")
		})
	}
}

func TestWatch_WhatCannotBeFollowedIsRefused(t *testing.T) {
	w := open(t)
	if got := refused(t, w.watch(`{"cursor": "x"}`).end(), connect.CodeInvalidArgument, failure.CodeCursorInvalid); got != "cursor: cursor: not a cursor of a change; take it from the cursor of an event" {
		t.Error(got)
	}
	old := backend.NewPosition(backend.Revision{Epoch: 1, Seq: 1})
	err := w.watch(`{"cursor": "` + old.String() + `"}`).end()
	refused(t, err, connect.CodeOutOfRange, failure.CodePositionExpired)
	if strings.Contains(err.Error(), "changeCursor") {
		t.Errorf("it names a field of GraphQL: %v", err)
	}
	w.user = "token:u"
	refused(t, w.watch(`{}`).end(), connect.CodePermissionDenied, failure.CodeForbidden)
}

// TestWatch_AnEventWithoutMemoryComesAfterTheCursor ends a stream at the second of three changes, which the store
// delivers together.
func TestWatch_AnEventWithoutMemoryComesAfterTheCursor(t *testing.T) {
	w := open(t)
	s := w.watch(`{}`)
	s.expect("IN_SYNC", "")
	from := s.cursor
	w.UpsertWidget(servicetest.Named("a"), "t")
	w.UpsertWidget(servicetest.Named("b"), "t")
	w.UpsertWidget(servicetest.Named("c"), "t")
	s.expect("ADDED", "a", "ADDED", "b", "ADDED", "c")
	events := 0
	expecting := func() error {
		events++
		if events == 2 {
			return &failure.Error{Code: failure.CodeUnavailable, Message: "no memory", Retryable: true}
		}
		return nil
	}
	w.expecting.Store(&expecting)
	s = w.watch(`{"cursor": "` + from + `"}`)
	s.expect("ADDED", "a")
	refused(t, s.end(), connect.CodeUnavailable, failure.CodeUnavailable)
	w.watch(`{"cursor": "`+s.cursor+`"}`).expect("ADDED", "b", "ADDED", "c", "IN_SYNC", "")
}

func TestWatch_FollowsTheRightsOfItsCaller(t *testing.T) {
	w := open(t)
	w.UpsertWidget(servicetest.Named("a"), "t")
	w.Give(servicetest.Allow("Widget", descriptor.VerbGet, descriptor.VerbList, descriptor.VerbWatch))
	w.user = "token:u"
	s := w.watch(`{"snapshot": true}`)
	s.expect("RESET", "", "SNAPSHOT", "a", "IN_SYNC", "")
	w.Role("role", servicetest.Allow("Site", descriptor.VerbGet))
	s.expect("DELETED", "a")
}

// TestWatch_RightsAreCheckedBeforeEachEvent takes the rights away after the first of several resources was sent, which
// were read together.
func TestWatch_RightsAreCheckedBeforeEachEvent(t *testing.T) {
	w := open(t)
	for _, name := range []string{"a", "b", "c"} {
		w.UpsertWidget(servicetest.Named(name), "t")
	}
	w.Give(servicetest.Allow("Widget", descriptor.VerbGet, descriptor.VerbList, descriptor.VerbWatch))
	w.user = "token:u"
	events := 0
	before := func() {
		events++
		if events == 3 { // RESET and one resource were sent
			w.Role("role", servicetest.Allow("Site", descriptor.VerbGet))
			w.awaitNoRights()
		}
	}
	w.beforeEvent.Store(&before)
	s := w.watch(`{"snapshot": true}`)
	s.expect("RESET", "", "SNAPSHOT", "a")
	for s.stream.Receive() {
		if typ, name := s.event(); typ != "RESET" && typ != "IN_SYNC" && typ != "DELETED" {
			t.Fatalf("%s %s is sent to a caller without rights", typ, name)
		} else if typ == "IN_SYNC" {
			return
		}
	}
	refused(t, s.stream.Err(), connect.CodePermissionDenied, failure.CodeForbidden)
}

// awaitNoRights waits until the policy of a caller without rights is in force.
func (w *world) awaitNoRights() {
	caller := access.WithCaller(context.Background(), servicetest.As("token:u"))
	for {
		if _, err := w.Service.Reader.Get(caller, servicetest.Named("a")); err != nil {
			return
		}
		time.Sleep(time.Millisecond)
	}
}
