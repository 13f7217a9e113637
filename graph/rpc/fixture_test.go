package rpc_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/memory"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/servicetest"
	"github.com/sluicegw/sluice/graph/kinds/kindstest"
	"github.com/sluicegw/sluice/graph/proto"
	"github.com/sluicegw/sluice/graph/rpc"
)

// world is a handler over a service in memory, and a client.
type world struct {
	*servicetest.Fixture
	schema *proto.Schema
	url    string
	client *http.Client
	// user is who the client is; empty for an administrator.
	user    string
	options []connect.ClientOption
	// beforeEvent is called before each event of a stream.
	beforeEvent atomic.Pointer[func()]
	// room is the most bytes that a request may have in memory; 0 for any number. held is the most that one had.
	room, held atomic.Int64
	// decoded is called when the message of a call was decoded, and answered when a part of an answer was encoded.
	decoded  atomic.Pointer[func(ctx context.Context)]
	answered atomic.Pointer[func(ctx context.Context, bytes int)]
	// expecting is called before an event is encoded. Its error ends the stream.
	expecting atomic.Pointer[func() error]
	// refused are the methods of calls that were refused before they ran.
	refused refusedMethods
}

// refusedMethods collects names of methods.
type refusedMethods struct {
	mu    sync.Mutex
	names []string
}

func (r *refusedMethods) add(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.names = append(r.names, name)
}

// take returns the names, and forgets them.
func (r *refusedMethods) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := r.names
	r.names = nil
	return out
}

// edge takes the caller from a header, and bounds only the memory of requests.
type edge struct{ world *world }

func (e edge) Refuse(w http.ResponseWriter, r *http.Request, call rpc.Call, refused *rpc.Refusal) {
	e.Refused(r.Context(), call, refused.Error)
	if writer := connect.NewErrorWriter(); !refused.Foreign && writer.IsSupported(r) {
		_ = writer.Write(w, r, refused.Connect(r.Context()))
		return
	}
	w.WriteHeader(refused.Status)
	_, _ = w.Write([]byte(refused.Error.Message))
}

func (e edge) Refused(_ context.Context, call rpc.Call, err error) *failure.Error {
	e.world.refused.add(call.Method)
	return toCaller(err)
}

func (e edge) Receive(ctx context.Context, bytes int) error {
	if room := e.world.room.Load(); room > 0 && int64(bytes) > room {
		return &failure.Error{Code: failure.CodeUnavailable, Message: "no room", Retryable: true}
	}
	if decoded := e.world.decoded.Load(); decoded != nil && bytes == 0 && budget.From(ctx) != nil {
		(*decoded)(ctx)
	}
	for {
		held := e.world.held.Load()
		if int64(bytes) <= held || e.world.held.CompareAndSwap(held, int64(bytes)) {
			return nil
		}
	}
}

func (edge) Call(ctx context.Context, _ rpc.Call, run func(context.Context) error) *failure.Error {
	return toCaller(run(budget.With(ctx, budget.New(budget.Limits{}))))
}

func (edge) Stream(ctx context.Context, _ rpc.Call, run func(context.Context) error) *failure.Error {
	return toCaller(run(ctx))
}

func (e edge) Event(ctx context.Context) (context.Context, func()) {
	if before := e.world.beforeEvent.Load(); before != nil {
		(*before)()
	}
	return ctx, func() {}
}

func (e edge) Expect(context.Context, int) error {
	if expecting := e.world.expecting.Load(); expecting != nil {
		return (*expecting)()
	}
	return nil
}

func (e edge) Answer(ctx context.Context, bytes int) error {
	if answered := e.world.answered.Load(); answered != nil {
		(*answered)(ctx, bytes)
	}
	return nil
}

func toCaller(err error) *failure.Error {
	if err == nil {
		return nil
	}
	if known, ok := errors.AsType[*failure.Error](err); ok {
		return known
	}
	return failure.Of(err, backend.Key{})
}

// open serves kinds with access control.
func open(t testing.TB, kinds ...descriptor.Kind) *world {
	t.Helper()
	return openWith(t, 0, kinds...)
}

// openWith is open with an index in memory of a size.
func openWith(t testing.TB, indexMemory int64, kinds ...descriptor.Kind) *world {
	t.Helper()
	store, err := memory.Open(memory.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	if len(kinds) == 0 {
		kinds = []descriptor.Kind{servicetest.Widget(), servicetest.Site(), secret(t)}
	}
	w := &world{Fixture: servicetest.Guarded(t, store, indexMemory, kinds...)}
	w.Store = store
	numbers, err := proto.NewNumbers(proto.DefaultPackage)
	if err != nil {
		t.Fatal(err)
	}
	numbers.Add(w.Kinds())
	if w.schema, err = proto.New(w.Kinds(), numbers); err != nil {
		t.Fatal(err)
	}
	handler, err := rpc.New(rpc.Config{Messages: w.schema, Service: w.Service, Edge: edge{w}, MaxRequest: 4 << 20})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		caller := servicetest.Admin()
		if user := r.Header.Get("X-User"); user != "" {
			caller = servicetest.As(user)
		}
		caller.Request = "request-1"
		handler.ServeHTTP(rw, r.WithContext(access.WithCaller(r.Context(), caller)))
	}))
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	server.Config.Protocols = protocols
	server.Start()
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetUnencryptedHTTP2(true)
	w.url, w.client = server.URL, &http.Client{Transport: transport}
	w.options = []connect.ClientOption{connect.WithGRPC()}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		server.Close()
	})
	return w
}

// secret is the sensitive kind of the catalogue.
func secret(t testing.TB) descriptor.Kind {
	t.Helper()
	for _, k := range kindstest.Kinds(t) {
		if k.Sensitive {
			return k
		}
	}
	t.Fatal("no kind is sensitive")
	return descriptor.Kind{}
}

// with makes t the test that uses the world until it ends. A fuzz test opens one world for all inputs, because that
// takes much longer than an input.
func (w *world) with(t *testing.T) {
	before := w.T
	w.T = t
	t.Cleanup(func() { w.T = before })
}

// method returns a method by its name.
func (w *world) method(name string) protoreflect.MethodDescriptor {
	w.T.Helper()
	services := w.schema.File.Services()
	for i := range services.Len() {
		if m := services.Get(i).Methods().ByName(protoreflect.Name(name)); m != nil {
			return m
		}
	}
	w.T.Fatal("there is no method", name)
	return nil
}

// message reads a request from JSON.
func (w *world) message(of protoreflect.MessageDescriptor, text string) *dynamicpb.Message {
	w.T.Helper()
	out := dynamicpb.NewMessage(of)
	if err := protojson.Unmarshal([]byte(text), out); err != nil {
		w.T.Fatal(err)
	}
	return out
}

// newClient returns a client of a method.
func (w *world) newClient(m protoreflect.MethodDescriptor) *connect.Client[dynamicpb.Message, dynamicpb.Message] {
	options := append([]connect.ClientOption{
		connect.WithSchema(m),
		connect.WithResponseInitializer(func(_ connect.Spec, message any) error {
			*message.(*dynamicpb.Message) = *dynamicpb.NewMessage(m.Output())
			return nil
		}),
	}, w.options...)
	url := w.url + "/" + string(m.Parent().FullName()) + "/" + string(m.Name())
	return connect.NewClient[dynamicpb.Message, dynamicpb.Message](w.client, url, options...)
}

// call sends a request and returns the answer.
func (w *world) call(name, text string) (*connect.Response[dynamicpb.Message], error) {
	w.T.Helper()
	m := w.method(name)
	return w.send(m, w.message(m.Input(), text))
}

func (w *world) send(m protoreflect.MethodDescriptor, in *dynamicpb.Message) (*connect.Response[dynamicpb.Message], error) {
	req := connect.NewRequest(in)
	req.Header().Set("X-User", w.user)
	return w.newClient(m).CallUnary(w.T.Context(), req)
}

// must is call that succeeds; it returns the answer as JSON, with the revision, the uid and the times left out.
func (w *world) must(name, text string) string {
	w.T.Helper()
	res, err := w.call(name, text)
	if err != nil {
		w.T.Fatalf("%s: %v", name, err)
	}
	return shown(res.Msg)
}

// shown returns a message as JSON without what is different each time.
func shown(m *dynamicpb.Message) string {
	eachMetadata(m, func(metadata protoreflect.Message) {
		for _, name := range []protoreflect.Name{"uid", "revision", "create_time", "update_time"} {
			metadata.Clear(metadata.Descriptor().Fields().ByName(name))
		}
	})
	raw, _ := protojson.MarshalOptions{UseProtoNames: true}.Marshal(m)
	return strings.ReplaceAll(string(raw), `": `, `":`)
}

// eachMetadata visits the metadata of the resources in an answer.
func eachMetadata(m protoreflect.Message, visit func(protoreflect.Message)) {
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.Message() == nil || f.IsMap():
		case f.Message().Name() == "ResourceMetadata":
			visit(v.Message())
		case f.IsList():
			for i := range v.List().Len() {
				eachMetadata(v.List().Get(i).Message(), visit)
			}
		default:
			eachMetadata(v.Message(), visit)
		}
		return true
	})
}

// revisionOf returns the revision of a resource in an answer.
func revisionOf(m *dynamicpb.Message) (out string) {
	eachMetadata(m, func(metadata protoreflect.Message) {
		out = metadata.Get(metadata.Descriptor().Fields().ByName("revision")).String()
	})
	return out
}

// refused checks the code and the reason of an error, and returns its violations, a line each.
func refused(t *testing.T, err error, code connect.Code, reason failure.Code) string {
	t.Helper()
	var known *connect.Error
	if !errors.As(err, &known) || known.Code() != code {
		t.Fatalf("%v, not %v", err, code)
	}
	var out []string
	found := false
	for _, d := range known.Details() {
		value, err := d.Value()
		if err != nil {
			t.Fatal(err)
		}
		switch value := value.(type) {
		case *errdetails.ErrorInfo:
			found = value.Reason == string(reason) && value.Domain == rpc.Domain && value.Metadata["requestId"] != ""
		case *errdetails.BadRequest:
			for _, v := range value.FieldViolations {
				out = append(out, v.Field+": "+v.Description)
			}
		}
	}
	if !found {
		t.Errorf("%v has no reason %s", err, reason)
	}
	return strings.Join(out, "\n")
}
