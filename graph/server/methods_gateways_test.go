package server_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/graph/server"
)

// TestServeMethods_ReadOnlyGatewaysAskForAPause since clients repeat what is UNAVAILABLE.
func TestServeMethods_ReadOnlyGatewaysAskForAPause(t *testing.T) {
	store := &pausedStore{}
	m := newMethodsOver(t, func(s backend.Store) backend.Store { store.Store = s; return store }, server.Config{})
	for _, paused := range []error{backend.ErrReadOnly, backend.ErrNoSpace, backend.ErrUnavailable} {
		store.paused.Store(&paused)
		_, err := m.call("CreateShelf", `{"shelf": {"metadata": {"name": "a"}, "spec": {"width": 3}}}`)
		if connect.CodeOf(err) != connect.CodeUnavailable || infoOf(err).GetReason() != "UNAVAILABLE" || retryOf(err) <= 0 {
			t.Errorf("%v: %v %v", paused, err, retryOf(err))
		}
	}
}

// pausedStore is a store that takes no changes while it has an error for them.
type pausedStore struct {
	backend.Store
	paused atomic.Pointer[error]
}

func (s *pausedStore) Apply(ctx context.Context, b backend.Batch) (backend.Result, error) {
	if err := s.paused.Load(); err != nil {
		return backend.Result{}, *err
	}
	return s.Store.Apply(ctx, b)
}

// retryOf returns the pause that an error asks for; 0 for none.
func retryOf(err error) time.Duration {
	var known *connect.Error
	if !errors.As(err, &known) {
		return 0
	}
	for _, d := range known.Details() {
		if value, err := d.Value(); err == nil {
			if info, ok := value.(*errdetails.RetryInfo); ok {
				return info.RetryDelay.AsDuration()
			}
		}
	}
	return 0
}

// TestServeMethods_GatewaysOfDifferentCataloguesShareResources has a field that one of two gateways does not know.
func TestServeMethods_GatewaysOfDifferentCataloguesShareResources(t *testing.T) {
	older := newMethods(t, server.Config{})
	newer := newMethodsOver(t, func(backend.Store) backend.Store { return older.store }, server.Config{})
	newer.serve(wide)
	stream := older.watch(`{}`)
	if !stream.Receive() {
		t.Fatal(stream.Err())
	}
	if _, err := newer.call("CreateShelf", `{"shelf": {"metadata": {"name": "a"}, "spec": {"width": 3, "depth": 5}}}`); err != nil {
		t.Fatal(err)
	}
	if !stream.Receive() {
		t.Fatal(stream.Err())
	}
	shown, _ := protojson.Marshal(stream.Msg())
	got, err := older.call("GetShelf", `{"name": "a"}`)
	if err != nil || !strings.Contains(got, `"width":3`) || strings.Contains(got+string(shown), "depth") {
		t.Fatal(got, string(shown), err)
	}
	// What the older gateway read and sends back changes nothing that it does not know.
	update := `{"shelf": ` + strings.Replace(got, `"width":3`, `"width":4`, 1) + `}`
	if got, err = older.call("UpdateShelf", update); err != nil || !strings.Contains(got, `"width":4`) {
		t.Fatal(got, err)
	}
	if got, err = newer.call("GetShelf", `{"name": "a"}`); err != nil || !strings.Contains(got, `"depth":5`) {
		t.Error("an older gateway has dropped a field:", got, err)
	}
}

// TestServeMethods_AStreamGoesOnAtAnotherGateway after the one at which it began has ended.
func TestServeMethods_AStreamGoesOnAtAnotherGateway(t *testing.T) {
	first := newMethods(t, server.Config{})
	second := newMethodsOver(t, func(backend.Store) backend.Store { return first.store }, server.Config{})
	stream := first.watch(`{}`)
	if !stream.Receive() {
		t.Fatal(stream.Err())
	}
	first.shutDown()
	for stream.Receive() {
	}
	cursor := infoOf(stream.Err()).GetMetadata()["cursor"]
	if connect.CodeOf(stream.Err()) != connect.CodeUnavailable || cursor == "" || retryOf(stream.Err()) <= 0 {
		t.Fatal(stream.Err())
	}
	if _, err := second.call("CreateShelf", `{"shelf": {"metadata": {"name": "a"}, "spec": {"width": 3}}}`); err != nil {
		t.Fatal(err)
	}
	resumed := second.watch(`{"cursor": "` + cursor + `"}`)
	if !resumed.Receive() {
		t.Fatal(resumed.Err())
	}
	if raw, _ := protojson.Marshal(resumed.Msg()); !strings.Contains(string(raw), "ADDED") {
		t.Error(string(raw))
	}
}

// TestServeMethods_AStreamOfAKindThatGoesEnds like all streams of a catalogue that was replaced three times. It cannot be
// resumed until the kind is back.
func TestServeMethods_AStreamOfAKindThatGoesEnds(t *testing.T) {
	m := newMethods(t, server.Config{})
	m.serve(wide)
	boxes := func(text string) *connect.ServerStreamForClient[dynamicpb.Message] {
		t.Helper()
		client, method := m.newClient("WatchBoxes")
		stream, err := client.CallServerStream(t.Context(), m.request(method, text))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = stream.Close() })
		return stream
	}
	stream := boxes(`{}`)
	if !stream.Receive() {
		t.Fatal(stream.Err())
	}
	wider := m.messages
	for range 3 {
		m.serve(narrow)
	}
	m.messages = wider
	for stream.Receive() {
	}
	info := infoOf(stream.Err())
	if info.GetReason() != "CATALOGUE_CHANGED" || info.GetMetadata()["cursor"] == "" {
		t.Fatal(stream.Err())
	}
	resume := `{"cursor": "` + info.GetMetadata()["cursor"] + `"}`
	gone := boxes(resume)
	if gone.Receive() || connect.CodeOf(gone.Err()) != connect.CodeUnimplemented || infoOf(gone.Err()).GetReason() != "NOT_FOUND" {
		t.Error(gone.Err())
	}
	m.serve(wide)
	if _, err := m.call("CreateBox", `{"box": {"metadata": {"name": "b"}, "spec": {"size": 1}}}`); err != nil {
		t.Fatal(err)
	}
	back := boxes(resume)
	if !back.Receive() {
		t.Fatal(back.Err())
	}
	if raw, _ := protojson.Marshal(back.Msg()); !strings.Contains(string(raw), "ADDED") {
		t.Error(string(raw))
	}
}

// TestServeMethods_AMessageOfAnOldClientIsUnderstoodAfterAReload since numbers never change.
func TestServeMethods_AMessageOfAnOldClientIsUnderstoodAfterAReload(t *testing.T) {
	m := newMethods(t, server.Config{})
	older := m.messages
	stream := m.watch(`{}`)
	if !stream.Receive() {
		t.Fatal(stream.Err())
	}
	m.serve(wide)
	if _, err := m.call("CreateShelf", `{"shelf": {"metadata": {"name": "a"}, "spec": {"width": 3, "depth": 5}}}`); err != nil {
		t.Fatal(err)
	}
	if !stream.Receive() { // it began before there were numbers for what is new
		t.Fatal(stream.Err())
	}
	if raw, _ := protojson.Marshal(stream.Msg()); !strings.Contains(string(raw), "ADDED") || strings.Contains(string(raw), "depth") {
		t.Error(string(raw))
	}
	m.messages = older
	got, err := m.call("GetShelf", `{"name": "a"}`)
	if err != nil || !strings.Contains(got, `"width":3`) {
		t.Error(got, err)
	}
}
