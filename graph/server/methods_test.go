package server_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"
	"connectrpc.com/grpchealth"
	"connectrpc.com/grpcreflect"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/graph/proto"
	"github.com/sluicegw/sluice/graph/server"
)

// methods is a client of the standard methods of a server.
type methods struct {
	*changing
	address string
	client  *http.Client
	// messages are those that the client knows.
	messages *proto.Schema
	// shutDown ends the server and waits for it.
	shutDown func()
}

// newMethods serves the standard methods of the narrow catalogue.
func newMethods(t *testing.T, cfg server.Config) *methods {
	t.Helper()
	return newMethodsOver(t, plain, cfg)
}

// newMethodsOver is newMethods with another store.
func newMethodsOver(t *testing.T, wrap func(backend.Store) backend.Store, cfg server.Config) *methods {
	t.Helper()
	m := &methods{changing: newChangingOver(t, wrap, cfg)}
	var err error
	if m.numbers, err = proto.NewNumbers(proto.DefaultPackage); err != nil {
		t.Fatal(err)
	}
	m.serve(narrow)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m.address = listener.Addr().String()
	transport := &http.Transport{Protocols: new(http.Protocols), TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}}
	transport.Protocols.SetUnencryptedHTTP2(true)
	m.client = &http.Client{Transport: transport}
	ctx, stop := context.WithCancel(context.Background())
	var ran sync.WaitGroup
	ran.Go(func() {
		if err := m.server.ServeMethods(ctx, listener); err != nil {
			t.Error(err)
		}
	})
	m.shutDown = func() {
		stop()
		ran.Wait()
	}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		m.shutDown()
	})
	return m
}

// serve serves a catalogue, which the client then knows.
func (m *methods) serve(sdl string) {
	m.Helper()
	svc := m.replace(sdl)
	var err error
	if m.messages, err = proto.New(svc.Kinds(), m.numbers); err != nil {
		m.Fatal(err)
	}
}

// newClient returns a client of a method, and its descriptor.
func (m *methods) newClient(name string) (*connect.Client[dynamicpb.Message, dynamicpb.Message], protoreflect.MethodDescriptor) {
	m.Helper()
	services := m.messages.File.Services()
	for i := range services.Len() {
		method := services.Get(i).Methods().ByName(protoreflect.Name(name))
		if method == nil {
			continue
		}
		url := fmt.Sprintf("http://%s/%s/%s", m.address, services.Get(i).FullName(), name)
		return connect.NewClient[dynamicpb.Message, dynamicpb.Message](m.client, url, connect.WithGRPC(), connect.WithSchema(method),
			connect.WithResponseInitializer(func(_ connect.Spec, message any) error {
				*message.(*dynamicpb.Message) = *dynamicpb.NewMessage(method.Output())
				return nil
			})), method
	}
	m.Fatal("there is no method", name)
	return nil, nil
}

// request reads a request from JSON.
func (m *methods) request(of protoreflect.MethodDescriptor, text string) *connect.Request[dynamicpb.Message] {
	m.Helper()
	in := dynamicpb.NewMessage(of.Input())
	if err := protojson.Unmarshal([]byte(text), in); err != nil {
		m.Fatal(err)
	}
	req := connect.NewRequest(in)
	if m.token != "" {
		req.Header().Set("Authorization", "Bearer "+m.token)
	}
	return req
}

// call calls a method, and returns the answer as JSON.
func (m *methods) call(name, text string) (string, error) {
	m.Helper()
	client, method := m.newClient(name)
	res, err := client.CallUnary(m.Context(), m.request(method, text))
	if err != nil {
		return "", err
	}
	raw, err := protojson.Marshal(res.Msg)
	return strings.ReplaceAll(string(raw), `": `, `":`), err
}

// infoOf returns the ErrorInfo of an error, nil for none.
func infoOf(err error) *errdetails.ErrorInfo {
	var known *connect.Error
	if !errors.As(err, &known) {
		return nil
	}
	for _, d := range known.Details() {
		if value, err := d.Value(); err == nil {
			if info, ok := value.(*errdetails.ErrorInfo); ok {
				return info
			}
		}
	}
	return nil
}

func TestServeMethods_CallersNeedACredential(t *testing.T) {
	var mu sync.Mutex
	var refused []failure.Code
	m := newMethods(t, server.Config{Refused: func(_ context.Context, e *failure.Error) {
		mu.Lock()
		defer mu.Unlock()
		refused = append(refused, e.Code)
	}})
	if got, err := m.call("CreateShelf", `{"shelf": {"metadata": {"name": "a"}, "spec": {"width": 3}}}`); err != nil || !strings.Contains(got, `"width":3`) {
		t.Fatal(got, err)
	}
	token := m.token
	m.token = ""
	_, err := m.call("GetShelf", `{"name": "a"}`)
	if connect.CodeOf(err) != connect.CodeUnauthenticated || infoOf(err).GetReason() != "UNAUTHENTICATED" {
		t.Error(err)
	}
	m.token = token + "x"
	if _, err := m.call("GetShelf", `{"name": "a"}`); connect.CodeOf(err) != connect.CodeUnauthenticated {
		t.Error(err)
	}
	m.token = token
	if _, err := m.call("CreateAccessRole", `{"access_role": {"metadata": {"name": "a"}, "spec": {}}}`); connect.CodeOf(err) != connect.CodePermissionDenied {
		t.Error(err)
	}
	if fmt.Sprint(refused) != "[UNAUTHENTICATED UNAUTHENTICATED FORBIDDEN]" {
		t.Error("the audit log has", refused)
	}
}

func TestServeMethods_HealthNeedsNoCredential(t *testing.T) {
	away := errors.New("the store is away")
	var ready atomic.Pointer[error]
	ready.Store(&away)
	m := newMethods(t, server.Config{Ready: func(context.Context) error { return *ready.Load() }})
	client := grpchealth.NewClient(m.client, "http://"+m.address, connect.WithGRPC())
	check := func(service string) (grpchealth.Status, error) {
		res, err := client.Check(t.Context(), &grpchealth.CheckRequest{Service: service})
		if err != nil {
			return 0, err
		}
		return res.Status, nil
	}
	if status, err := check(""); err != nil || status != grpchealth.StatusNotServing {
		t.Error(status, err)
	}
	ready.Store(new(error))
	for _, service := range []string{"", "sluice.kinds.v1.ShelfService"} {
		if status, err := check(service); err != nil || status != grpchealth.StatusServing {
			t.Error(status, err)
		}
	}
	if _, err := check("none"); connect.CodeOf(err) != connect.CodeNotFound {
		t.Error(err)
	}
}

func TestServeMethods_LimitsAreThoseOfTheCaller(t *testing.T) {
	m := newMethods(t, server.Config{Caller: server.CallerLimits{Subscriptions: 1, Rate: 4}, Limits: server.Limits{Body: 64 << 10}})
	stream := m.watch(`{}`)
	if !stream.Receive() {
		t.Fatal(stream.Err())
	}
	over := m.watch(`{}`)
	if over.Receive() || connect.CodeOf(over.Err()) != connect.CodeResourceExhausted || infoOf(over.Err()).GetMetadata()["setting"] != "limit-caller-subscriptions" {
		t.Error(over.Err())
	}
	_, err := m.call("CreateShelf", `{"shelf": {"metadata": {"name": "a", "annotations": {"a": "`+strings.Repeat("x", 64<<10)+`"}}, "spec": {"width": 3}}}`)
	if connect.CodeOf(err) != connect.CodeResourceExhausted || infoOf(err).GetMetadata()["setting"] != "limit-body" {
		t.Error(err)
	}
	for range 100 {
		if _, err = m.call("ListShelves", `{}`); err != nil {
			break
		}
	}
	if infoOf(err).GetMetadata()["setting"] != "limit-caller-rate" {
		t.Error(err)
	}
}

// watch begins a stream of the changes of shelves.
func (m *methods) watch(text string) *connect.ServerStreamForClient[dynamicpb.Message] {
	m.Helper()
	client, method := m.newClient("WatchShelves")
	stream, err := client.CallServerStream(m.Context(), m.request(method, text))
	if err != nil {
		m.Fatal(err)
	}
	m.Cleanup(func() { _ = stream.Close() })
	return stream
}

func TestServeMethods_AReplacedCatalogueChangesWhatIsServed(t *testing.T) {
	m := newMethods(t, server.Config{})
	stream := m.watch(`{}`)
	if !stream.Receive() {
		t.Fatal(stream.Err())
	}
	var calls sync.WaitGroup
	stop := make(chan struct{})
	for i := range 4 {
		client, method := m.newClient("UpsertShelf")
		request := m.request(method, fmt.Sprintf(`{"shelf": {"metadata": {"name": "s%d"}, "spec": {"width": 3}}}`, i)).Msg
		token := m.token
		calls.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				req := connect.NewRequest(request)
				req.Header().Set("Authorization", "Bearer "+token)
				if _, err := client.CallUnary(context.Background(), req); err != nil {
					t.Error("a call is dropped:", err)
					return
				}
			}
		})
	}
	for range 3 {
		m.serve(wide)
		if got, err := m.call("UpsertBox", `{"box": {"metadata": {"name": "b"}, "spec": {"size": 1}}}`); err != nil {
			t.Error(got, err)
		}
		if got, err := m.call("UpsertShelf", `{"shelf": {"metadata": {"name": "t"}, "spec": {"width": 3, "depth": 5}}}`); err != nil || !strings.Contains(got, `"depth":5`) {
			t.Error(got, err)
		}
		wider := m.messages
		m.serve(narrow)
		m.messages = wider
		if _, err := m.call("GetBox", `{"name": "b"}`); connect.CodeOf(err) != connect.CodeUnimplemented {
			t.Error(err)
		}
		if _, err := m.call("UpsertShelf", `{"shelf": {"metadata": {"name": "t"}, "spec": {"width": 3, "depth": 5}}}`); connect.CodeOf(err) != connect.CodeInvalidArgument {
			t.Error("a field that is not served any more is dropped:", err)
		}
	}
	close(stop)
	calls.Wait()
	for stream.Receive() { // until the narrow catalogue hides what the wide one had, or the third one follows
	}
	info := infoOf(stream.Err())
	if info.GetReason() != "CATALOGUE_CHANGED" || info.GetMetadata()["cursor"] == "" {
		t.Fatal(stream.Err())
	}
	resumed := m.watch(`{"cursor": "` + info.GetMetadata()["cursor"] + `"}`)
	if !resumed.Receive() {
		t.Error(resumed.Err())
	}
}

func TestServeMethods_AnEndEndsStreams(t *testing.T) {
	m := newMethods(t, server.Config{})
	stream := m.watch(`{}`)
	if !stream.Receive() {
		t.Fatal(stream.Err())
	}
	m.shutDown()
	if stream.Receive() || connect.CodeOf(stream.Err()) != connect.CodeUnavailable || infoOf(stream.Err()).GetMetadata()["cursor"] == "" {
		t.Error(stream.Err())
	}
}

// TestServeMethods_StreamsGoOnDuringTheDrainDelay so that clients do not come back to a gateway that is leaving.
func TestServeMethods_StreamsGoOnDuringTheDrainDelay(t *testing.T) {
	const delay = 500 * time.Millisecond
	m := newMethods(t, server.Config{DrainDelay: delay})
	stream := m.watch(`{}`)
	if !stream.Receive() {
		t.Fatal(stream.Err())
	}
	begin := time.Now()
	var down sync.WaitGroup
	down.Go(m.shutDown)
	for !m.server.State().Draining {
		time.Sleep(time.Millisecond)
	}
	late := m.watch(`{}`)
	if !late.Receive() && time.Since(begin) < delay {
		t.Error("a stream that begins in the delay ends:", late.Err())
	}
	down.Wait()
	if stream.Receive() || connect.CodeOf(stream.Err()) != connect.CodeUnavailable {
		t.Error(stream.Err())
	}
}

// deadlines is an answer that records whether the deadline for reading its request was removed.
type deadlines struct {
	*httptest.ResponseRecorder
	removed chan struct{}
}

func (d *deadlines) SetReadDeadline(at time.Time) error {
	if at.IsZero() {
		close(d.removed)
	}
	return nil
}

func (d *deadlines) SetWriteDeadline(time.Time) error { return nil }

// readerFunc is a function as a reader.
type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// TestServeMethods_TheRequestOfAStreamHasADeadline until it was read, so that a client that sends none does not stay.
func TestServeMethods_TheRequestOfAStreamHasADeadline(t *testing.T) {
	m := newMethods(t, server.Config{})
	answer := &deadlines{ResponseRecorder: httptest.NewRecorder(), removed: make(chan struct{})}
	text := strings.NewReader("\x00\x00\x00\x00\x02{}")
	body := readerFunc(func(p []byte) (int, error) {
		select {
		case <-answer.removed:
			t.Error("the deadline is removed before the request was read")
		default:
		}
		return text.Read(p)
	})
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	req := httptest.NewRequestWithContext(ctx, http.MethodPost, "/sluice.kinds.v1.ShelfService/WatchShelves", body)
	req.Host = "localhost"
	req.Header.Set("Content-Type", "application/connect+json")
	req.Header.Set("Authorization", "Bearer "+m.token)
	var served sync.WaitGroup
	served.Go(func() { m.server.MethodsHandler().ServeHTTP(answer, req) })
	<-answer.removed
	stop()
	served.Wait()
}

func TestServeMethods_ReflectionIsHiddenWithIntrospection(t *testing.T) {
	for _, hidden := range []bool{false, true} {
		m := newMethods(t, server.Config{HideIntrospection: hidden})
		stream := grpcreflect.NewClient(m.client, "http://"+m.address, connect.WithGRPC()).NewStream(
			t.Context(), grpcreflect.WithRequestHeaders(http.Header{"Authorization": {"Bearer " + m.token}}),
		)
		names, err := stream.ListServices()
		if _, endErr := stream.Close(); endErr != nil && !hidden {
			t.Error(endErr)
		}
		if hidden && (len(names) > 0 || connect.CodeOf(err) != connect.CodeUnimplemented) {
			t.Error(names, err)
		}
		if !hidden && (len(names) == 0 || err != nil) {
			t.Error(names, err)
		}
	}
}

func TestServeMethods_CallsAreInTheAccessLog(t *testing.T) {
	core, lines := observer.New(zap.InfoLevel)
	m := newMethods(t, server.Config{AccessLog: true, Logger: zap.New(core)})
	_, _ = m.call("GetShelf", `{"name": "a"}`)
	found := lines.FilterMessage("access").FilterField(zap.String("operationName", "GetShelf")).All()
	if len(found) != 1 {
		t.Fatal(lines.All())
	}
	got := found[0].ContextMap()
	for key, want := range map[string]any{"operationType": "call", "kind": "Shelf", "code": "NOT_FOUND", "caller": "token:ci"} {
		if fmt.Sprint(got[key]) != want {
			t.Errorf("%s is %v, not %v", key, got[key], want)
		}
	}
}

// TestServeMethods_ACancelledCallLeavesNothing cancels calls and streams at any time.
func TestServeMethods_ACancelledCallLeavesNothing(t *testing.T) {
	m := newMethods(t, server.Config{Caller: server.CallerLimits{Requests: 2, Subscriptions: 2}})
	for i := range 40 {
		ctx, stop := context.WithTimeout(t.Context(), time.Duration(i)*200*time.Microsecond)
		if i%2 == 0 {
			client, method := m.newClient("UpsertShelf")
			_, _ = client.CallUnary(ctx, m.request(method, `{"shelf": {"metadata": {"name": "s"}, "spec": {"width": 3}}}`))
		} else {
			client, method := m.newClient("WatchShelves")
			if stream, err := client.CallServerStream(ctx, m.request(method, `{"snapshot": true}`)); err == nil {
				for stream.Receive() {
				}
				_ = stream.Close()
			}
		}
		stop()
	}
	// What the cancelled calls had is given back soon.
	for end := time.Now().Add(time.Minute); ; {
		_, err := m.call("ListShelves", `{}`)
		stream := m.watch(`{}`)
		if err == nil && stream.Receive() {
			return
		}
		_ = stream.Close()
		if time.Now().After(end) {
			t.Fatal(err, stream.Err())
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// TestServeMethods_WhatNoMethodSeesIsLoggedAndCountedToo sends requests that do not keep to their protocol.
func TestServeMethods_WhatNoMethodSeesIsLoggedAndCountedToo(t *testing.T) {
	core, lines := observer.New(zap.InfoLevel)
	m := newMethods(t, server.Config{AccessLog: true, Logger: zap.New(core)})
	send := func(path, contentType, body string) *http.Response {
		t.Helper()
		url := "http://" + m.address + path
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", contentType)
		req.Header.Set("Authorization", "Bearer "+m.token)
		res, err := m.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		return res
	}
	const get = "/sluice.kinds.v1.ShelfService/GetShelf"
	for _, c := range []struct{ path, contentType, body, name, code string }{
		{get, "application/json", "{", "GetShelf", "BAD_USER_INPUT"},
		{get, "text/plain", "{}", "GetShelf", "BAD_USER_INPUT"},
		{get, "application/grpc", "\x00\x00", "GetShelf", "BAD_USER_INPUT"},
		{"/sluice.kinds.v1.ShelfService/FrobShelf", "application/grpc", "", "", "NOT_FOUND"},
		{"/other", "text/plain", "", "", "NOT_FOUND"},
	} {
		lines.TakeAll()
		res := send(c.path, c.contentType, c.body)
		found := lines.FilterMessage("access").All()
		if len(found) != 1 {
			t.Fatal(c, found)
		}
		got := found[0].ContextMap()
		if got["code"] != c.code || got["caller"] != "token:ci" || got["requestId"] != res.Header.Get("X-Request-Id") {
			t.Error(c, got)
		}
		if name, _ := got["operationName"].(string); name != c.name {
			t.Error(c, got)
		}
	}
	text := m.at(http.MethodGet, "/metrics", "Authorization", "Bearer "+m.token).Body.String()
	for _, want := range []string{
		`sluice_operation_errors_total{code="BAD_USER_INPUT",kind="Shelf",type="call"} 3`,
		`sluice_operation_errors_total{code="NOT_FOUND",kind="none",type="call"} 2`,
	} {
		if !strings.Contains(text, want) {
			t.Error("no", want)
		}
	}
}

func TestServeMethods_ARefusedStreamIsInTheAccessLog(t *testing.T) {
	core, lines := observer.New(zap.InfoLevel)
	m := newMethods(t, server.Config{AccessLog: true, Logger: zap.New(core)})
	client, method := m.newClient("WatchAccessRoles")
	stream, err := client.CallServerStream(t.Context(), m.request(method, `{}`))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stream.Close() }()
	if stream.Receive() || connect.CodeOf(stream.Err()) != connect.CodePermissionDenied {
		t.Fatal(stream.Err())
	}
	if got := lines.FilterMessage("access").FilterField(zap.String("code", "FORBIDDEN")).Len(); got != 1 {
		t.Error(lines.All())
	}
}
