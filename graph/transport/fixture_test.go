package transport_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/errcode"
	"github.com/99designs/gqlgen/graphql/handler/lru"
	"github.com/gorilla/websocket"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/parser"
	"github.com/vektah/gqlparser/v2/validator"

	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/graph/stream"
	"github.com/sluicegw/sluice/graph/transport"
)

const schema = `
type Query { hello: String! slow: String! panics: String! big(bytes: Int!): String! }
type Mutation { hello: String! }
type Subscription { feed(pad: Int! = 0): Int! count(to: Int!): Int! lags: Int! }
`

// api is an executable schema whose events the test makes.
type api struct {
	*ast.Schema
	// slow tells of each call of slow, which ends with its context.
	slow chan error

	mu    sync.Mutex
	feeds map[chan int]struct{}
	fed   chan struct{} // gets a token for each feed that began or ended
}

func newAPI() *api {
	return &api{
		Schema: gqlparser.MustLoadSchema(&ast.Source{Input: schema}),
		slow:   make(chan error, 1), feeds: map[chan int]struct{}{}, fed: make(chan struct{}, 100_000),
	}
}

// executable gives gqlgen the method name that the field has.
type executable struct{ *api }

func (e executable) Schema() *ast.Schema { return e.api.Schema }

func (executable) Complexity(context.Context, string, string, int, map[string]any) (int, bool) {
	return 0, false
}

// Exec answers the first field of an operation.
func (e executable) Exec(ctx context.Context) graphql.ResponseHandler {
	op := graphql.GetOperationContext(ctx)
	field := op.Operation.SelectionSet[0].(*ast.Field)
	args := field.ArgumentMap(op.Variables)
	if op.Operation.Operation == ast.Subscription { // for gqlgen's executor
		events := e.Subscribe(ctx, "")
		return func(ctx context.Context) *graphql.Response { return events.Next(ctx).Response }
	}
	answered := false
	return func(ctx context.Context) *graphql.Response {
		if answered {
			return nil
		}
		answered = true
		return e.answer(ctx, field, args)
	}
}

func (e executable) answer(ctx context.Context, field *ast.Field, args map[string]any) *graphql.Response {
	value := "world"
	switch field.Name {
	case "slow":
		e.slow <- nil
		<-ctx.Done()
		e.slow <- ctx.Err()
		return &graphql.Response{Data: []byte("null"), Errors: gqlerror.List{gqlerror.Errorf("slow: %v", ctx.Err())}}
	case "panics":
		panic("as it is told")
	case "big":
		value = strings.Repeat("x", int(args["bytes"].(int64)))
	}
	return &graphql.Response{Data: fmt.Appendf(nil, `{%q:%q}`, field.Alias, value)}
}

// events are the events of a subscription.
type events func(ctx context.Context) stream.Answer

func (e events) Next(ctx context.Context) stream.Answer { return e(ctx) }

// Lead begins no shared execution.
func (executable) Lead(context.Context, stream.Execution) stream.Execution { return nil }

// Subscribe answers the first field of an operation.
func (e executable) Subscribe(ctx context.Context, after string) stream.Events {
	op := graphql.GetOperationContext(ctx)
	field := op.Operation.SelectionSet[0].(*ast.Field)
	args := field.ArgumentMap(op.Variables)
	end := "}"
	if pad, _ := args["pad"].(int64); pad > 0 {
		end = `,"pad":"` + strings.Repeat("p", int(pad)) + `"}`
	}
	event := func(n int) stream.Answer {
		res := &graphql.Response{Data: fmt.Appendf(nil, `{%q:%d%s`, field.Alias, n, end)}
		return stream.Answer{Response: res, Cursor: fmt.Sprint("c", n)}
	}
	switch field.Name {
	case "count":
		n, to := 0, int(args["to"].(int64))
		if after != "" {
			_, _ = fmt.Sscanf(after, "c%d", &n)
		}
		return events(func(ctx context.Context) stream.Answer {
			if n >= to || ctx.Err() != nil {
				return stream.Answer{}
			}
			n++
			return event(n)
		})
	case "lags":
		first := true
		return events(func(context.Context) stream.Answer {
			if !first {
				err := &gqlerror.Error{Message: "too slow", Extensions: map[string]any{"code": "LAGGED", "cursor": "c1"}}
				return stream.Answer{Errors: gqlerror.List{err}}
			}
			first = false
			return event(1)
		})
	}
	queue := make(chan int, 1024)
	e.mu.Lock()
	e.feeds[queue] = struct{}{}
	e.mu.Unlock()
	e.fed <- struct{}{}
	context.AfterFunc(ctx, func() {
		e.mu.Lock()
		delete(e.feeds, queue)
		e.mu.Unlock()
		e.fed <- struct{}{}
	})
	return events(func(ctx context.Context) stream.Answer {
		select {
		case n, ok := <-queue:
			if !ok {
				return stream.Answer{}
			}
			return event(n)
		case <-ctx.Done():
			return stream.Answer{}
		}
	})
}

// publish gives an event to all feeds. It returns how many were too slow, which
// is what the hub of the service cuts off.
func (a *api) publish(n int) (full int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for queue := range a.feeds {
		select {
		case queue <- n:
		default:
			full++
		}
	}
	return full
}

// complete ends all feeds.
func (a *api) complete() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for queue := range a.feeds {
		close(queue)
	}
	clear(a.feeds)
}

// gateway serves the transports on a listener.
type gateway struct {
	*api
	t testing.TB
	// wrap, if set, is given each connection that the gateway accepts.
	wrap func(net.Conn) net.Conn
	*transport.Transport
	// caller is who sends all requests; nil is unknown.
	caller *access.Identity
	server *http.Server
	dial   func() (net.Conn, error)
}

func executorOf(t testing.TB, es executableEngine, memory *budget.Memory) *transport.Executor {
	t.Helper()
	documents, err := transport.OpenNamedDocuments(transport.NamedDocumentsConfig{})
	if err != nil {
		t.Fatal(err)
	}
	return transport.NewExecutor(transport.ExecutorConfig{
		Engine: es, Named: documents, Memory: memory, Documents: newDocuments(es.Schema()),
		Accounts: accounts(func() {}), Present: graphql.DefaultErrorPresenter,
		Recover: func(context.Context, any) error {
			return &gqlerror.Error{Message: "internal error", Extensions: map[string]any{"code": "INTERNAL"}}
		},
	})
}

// accounts gives answers no budget. It is called for each answer.
type accounts func()

func (accounts) Open(ctx context.Context) context.Context { return ctx }

func (a accounts) Close(_ context.Context, res *graphql.Response) {
	if res != nil {
		a()
	}
}

// executableEngine is an engine with its schema.
type executableEngine interface {
	transport.Engine
	Schema() *ast.Schema
}

// documents parses as gqlgen does.
type documents struct {
	schema *ast.Schema
	known  *lru.LRU[*ast.QueryDocument]
}

func newDocuments(schema *ast.Schema) *documents {
	return &documents{schema, lru.New[*ast.QueryDocument](100)}
}

func (d *documents) Parse(ctx context.Context, query string) (transport.Document, gqlerror.List) {
	if doc, ok := d.known.Get(ctx, query); ok {
		return document{d.schema, doc}, nil
	}
	if query == "panic" {
		panic("as it is told")
	}
	doc, err := parser.ParseQuery(&ast.Source{Input: query})
	if err != nil {
		errcode.Set(err, errcode.ParseFailed)
		return nil, gqlerror.List{err.(*gqlerror.Error)}
	}
	errs := validator.ValidateWithRules(d.schema, doc, nil)
	for _, err := range errs {
		errcode.Set(err, errcode.ValidationFailed)
	}
	if len(errs) == 0 {
		d.known.Add(ctx, query, doc)
	}
	return document{d.schema, doc}, errs
}

type document struct {
	schema *ast.Schema
	tree   *ast.QueryDocument
}

func (d document) Tree() *ast.QueryDocument { return d.tree }

func (d document) Bind(oc *graphql.OperationContext, given map[string]any) *gqlerror.Error {
	values, err := validator.VariableValues(d.schema, oc.Operation, given)
	oc.Variables = values
	return gqlerror.Wrap(err)
}

// serve starts the transports over the test's own schema, on a loopback address.
func serve(t testing.TB, cfg transport.Config) *gateway {
	t.Helper()
	return serveWrapped(t, cfg, nil)
}

// serveWrapped does the same with connections that are wrapped, if wrap is not nil.
func serveWrapped(t testing.TB, cfg transport.Config, wrap func(net.Conn) net.Conn) *gateway {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &gateway{api: newAPI(), t: t, wrap: wrap, dial: func() (net.Conn, error) { return net.Dial("tcp", l.Addr().String()) }}
	g.start(l, executorOf(t, executable{g.api}, cfg.Memory), cfg)
	t.Cleanup(func() { g.stop(); noGoroutines(t) })
	return g
}

// serveInMemory does the same without a network. Within a bubble of
// testing/synctest time is the test's own; the test calls stop.
func serveInMemory(t testing.TB, cfg transport.Config) *gateway {
	t.Helper()
	l := &pipes{accept: make(chan net.Conn), closed: make(chan struct{})}
	g := &gateway{api: newAPI(), t: t, dial: l.dial}
	g.start(l, executorOf(t, executable{g.api}, cfg.Memory), cfg)
	return g
}

func (g *gateway) start(l net.Listener, exec *transport.Executor, cfg transport.Config) {
	g.t.Helper()
	l = &wrapping{Listener: l, g: g}
	cfg.Executor = func(context.Context) *transport.Executor { return exec }
	cfg.Body, cfg.Time = 1<<20, cmp.Or(cfg.Time, time.Minute)
	var err error
	if g.Transport, err = transport.New(cfg); err != nil {
		g.t.Fatal(err)
	}
	g.server = &http.Server{ReadTimeout: 30 * time.Second, WriteTimeout: 30 * time.Second, Handler: http.HandlerFunc(g.identify)}
	go func() { _ = g.server.Serve(l) }()
}

// identify serves a request of the caller.
func (g *gateway) identify(w http.ResponseWriter, r *http.Request) {
	if g.caller != nil {
		r = r.WithContext(access.WithCaller(r.Context(), access.Caller{Identity: g.caller}))
	}
	g.ServeHTTP(w, r)
}

// stop drains and ends everything.
func (g *gateway) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	g.Drain(ctx)
	if ctx.Err() != nil {
		g.t.Error("the gateway did not drain")
	}
	if err := g.server.Shutdown(ctx); err != nil {
		g.t.Error(err)
	}
}

// noGoroutines fails if something of this package still runs.
func noGoroutines(t testing.TB) {
	t.Helper()
	var stacks string
	for limit := time.Now().Add(30 * time.Second); time.Now().Before(limit); runtime.Gosched() {
		buf := make([]byte, 4<<20)
		stacks = string(buf[:runtime.Stack(buf, true)])
		left := false
		for stack := range strings.SplitSeq(stacks, "\n\n") {
			left = left || strings.Contains(stack, "/graph/transport.(") || strings.Contains(stack, "/graph/stream.(") || strings.Contains(stack, "net/http.(*conn).serve")
		}
		if !left {
			return
		}
	}
	t.Errorf("goroutines are left:\n%s", stacks)
}

// wrapping lets a test look into the connections of a listener.
type wrapping struct {
	net.Listener
	g *gateway
}

func (w *wrapping) Accept() (net.Conn, error) {
	c, err := w.Listener.Accept()
	if err == nil && w.g.wrap != nil {
		c = w.g.wrap(c)
	}
	return c, err
}

// pipes is a listener whose connections have no network and no buffer.
type pipes struct {
	accept chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (p *pipes) dial() (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case p.accept <- theirs:
		return ours, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.accept:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

// patience is how long a test waits for what must come.
const patience = time.Minute

// peer is a client that says exactly what the test wants.
type peer struct {
	t testing.TB
	*websocket.Conn
	saying sync.WaitGroup
}

// connect opens a connection that offers subprotocols.
func (g *gateway) connect(protocols ...string) *peer {
	g.t.Helper()
	p, err := g.tryConnect(protocols...)
	if err != nil {
		g.t.Fatal(err)
	}
	return p
}

func (g *gateway) tryConnect(protocols ...string) (*peer, error) {
	d := websocket.Dialer{Subprotocols: protocols, NetDial: func(string, string) (net.Conn, error) { return g.dial() }, WriteBufferSize: 512}
	conn, _, err := d.Dial("ws://localhost/graphql", nil)
	if err != nil {
		return nil, err
	}
	_ = conn.SetReadDeadline(time.Now().Add(patience))
	return &peer{t: g.t, Conn: conn}, nil
}

// open is a connection that is ready for operations.
func (g *gateway) open() *peer {
	g.t.Helper()
	p := g.connect("graphql-transport-ws")
	p.say(`{"type":"connection_init"}`)
	p.hear(`{"type":"connection_ack"}`)
	return p
}

func (p *peer) say(message string) {
	p.t.Helper()
	if err := p.WriteMessage(websocket.TextMessage, []byte(message)); err != nil {
		p.t.Fatal(err)
	}
}

func (p *peer) subscribe(id, query string) {
	p.t.Helper()
	payload, _ := json.Marshal(map[string]any{"query": query})
	p.say(fmt.Sprintf(`{"id":%q,"type":"subscribe","payload":%s}`, id, payload))
}

// read is the next message.
func (p *peer) read() string {
	p.t.Helper()
	_, data, err := p.ReadMessage()
	if err != nil {
		p.t.Fatal(err)
	}
	return string(data)
}

func (p *peer) hear(want string) {
	p.t.Helper()
	if got := p.read(); got != want {
		p.t.Fatalf("heard %s, want %s", got, want)
	}
}

// hearError reads a message that ends an operation and returns the code of its first error.
func (p *peer) hearError(id string) string {
	p.t.Helper()
	text := p.read()
	var m struct {
		ID, Type string
		Payload  gqlerror.List
	}
	if err := json.Unmarshal([]byte(text), &m); err != nil || m.ID != id || m.Type != "error" || len(m.Payload) == 0 {
		p.t.Fatalf("heard %s, want an error of %s", text, id)
	}
	code, _ := m.Payload[0].Extensions["code"].(string)
	return code
}

// closed reads until the connection ends, and returns how.
func (p *peer) closed() (code int, reason string) {
	p.t.Helper()
	defer func() { _ = p.Close() }()
	for {
		_, _, err := p.ReadMessage()
		var closed *websocket.CloseError
		if errors.As(err, &closed) {
			return closed.Code, closed.Text
		}
		if err != nil {
			p.t.Fatalf("the connection ended without a code: %v", err)
		}
	}
}
