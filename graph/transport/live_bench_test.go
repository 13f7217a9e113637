package transport_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/handler"
	"github.com/99designs/gqlgen/graphql/handler/lru"
	stock "github.com/99designs/gqlgen/graphql/handler/transport"
	"github.com/gorilla/websocket"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/sluicegw/sluice/backend/memory"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/graph/engine/enginetest"
	"github.com/sluicegw/sluice/graph/transport"
)

// stage is what a benchmark of live events drives.
type stage struct {
	address string
	query   string
	skip    int // frames of each listener before the first event
	publish func()
	close   func()
}

const (
	feedQuery    = "subscription{feed(pad:300)}"
	networkQuery = "subscription{networkChanges{type cursor revision network{id metadata{name revision labels{key value}}}}}"
)

// BenchmarkLive gives events to equal subscribers in another process. "write" writes a
// ready frame to each socket; "stock" is gqlgen's own transport. "feed" costs
// next to nothing to execute, and each subscriber has its own execution; "network" is a
// change of the catalogue's API, which ours executes once. The CPU is that of this
// process, in user and system time, and so is the memory that a delivery takes.
func BenchmarkLive(b *testing.B) {
	const subscribers = 1000
	for _, burst := range []int{1, 16} {
		for _, c := range []struct {
			name  string
			stage func(testing.TB) *stage
		}{
			{"write", ready}, {"feed/ours", feedOurs}, {"feed/stock", feedStock}, {"network/ours", networkOurs}, {"network/stock", networkStock},
		} {
			b.Run(fmt.Sprintf("%s/burst=%d/subscribers=%d", c.name, burst, subscribers), func(b *testing.B) {
				live(b, c.stage(b), subscribers, burst)
			})
		}
	}
}

func live(b *testing.B, s *stage, subscribers, burst int) {
	defer s.close()
	before, goroutines := inUse(), runtime.NumGoroutine()
	c := startCrowd(b, s.address, subscribers, s.skip, s.query)
	idle := float64(inUse()-before) / float64(subscribers)
	each := float64(runtime.NumGoroutine()-goroutines) / float64(subscribers)
	user, system := cpu()
	var begin, end runtime.MemStats
	runtime.ReadMemStats(&begin)
	b.ResetTimer()
	for b.Loop() {
		for range burst {
			s.publish()
		}
		for range burst {
			c.wait("all")
		}
	}
	b.StopTimer()
	user2, system2 := cpu()
	runtime.ReadMemStats(&end)
	deliveries := float64(b.N * burst * subscribers)
	b.ReportMetric(float64(end.TotalAlloc-begin.TotalAlloc)/deliveries, "B/delivery")
	b.ReportMetric(float64(end.Mallocs-begin.Mallocs)/deliveries, "allocs/delivery")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/deliveries, "ns/delivery")
	b.ReportMetric(float64((user2-user).Nanoseconds())/deliveries, "user-ns/delivery")
	b.ReportMetric(float64((user2+system2-user-system).Nanoseconds())/deliveries, "cpu-ns/delivery")
	b.ReportMetric(idle, "B/subscriber")
	b.ReportMetric(each, "goroutines/subscriber")
	c.stop()
}

// BenchmarkIdleListeners has listeners in another process that hear of nothing, each with a
// WebSocket connection and one subscription: what each of them takes of heap and stacks,
// and of resident memory, after some collections.
func BenchmarkIdleListeners(b *testing.B) {
	const listeners = 5000
	for b.Loop() {
		s := networkOurs(b)
		before, resident, goroutines := inUse(), rss(b), runtime.NumGoroutine()
		c := startCrowd(b, s.address, listeners, s.skip, s.query)
		b.ReportMetric(float64(inUse()-before)/listeners, "B/listener")
		b.ReportMetric(float64(rss(b)-resident)/listeners, "resident-B/listener")
		b.ReportMetric(float64(runtime.NumGoroutine()-goroutines)/listeners, "goroutines/listener")
		c.stop()
		s.close()
	}
}

// rss is the resident memory of this process, in bytes.
func rss(tb testing.TB) int64 {
	debug.FreeOSMemory()
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		tb.Skip(err)
	}
	var size, resident int64
	if _, err := fmt.Sscan(string(text), &size, &resident); err != nil {
		tb.Fatal(err)
	}
	return resident * int64(os.Getpagesize())
}

// inUse is the memory of heap and stacks. A collection halves a stack of which little is used.
func inUse() int64 {
	for range 4 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// cpu is what the process has used so far.
func cpu() (user, system time.Duration) {
	var r syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &r)
	return time.Duration(r.Utime.Nano()), time.Duration(r.Stime.Nano())
}

// ready writes one ready frame to each socket.
func ready(tb testing.TB) *stage {
	var mu sync.Mutex
	var conns []net.Conn
	u := websocket.Upgrader{ReadBufferSize: 512, WriteBufferPool: new(sync.Pool), Subprotocols: []string{"graphql-transport-ws"}}
	frame := append([]byte{0x81, 126, 1, 120}, make([]byte, 376)...)
	return onAddress(tb, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := u.Upgrade(w, r, nil)
		if err != nil {
			tb.Error(err)
			return
		}
		go func() { _, _, _ = conn.NextReader() }()
		mu.Lock()
		defer mu.Unlock()
		conns = append(conns, conn.NetConn())
	}), stage{publish: func() {
		for _, c := range conns {
			if _, err := c.Write(frame); err != nil {
				tb.Error(err)
			}
		}
	}, close: func() {
		for _, c := range conns {
			_ = c.Close()
		}
	}})
}

// onAddress serves a handler.
func onAddress(tb testing.TB, h http.Handler, s stage) *stage {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	srv := &http.Server{Handler: h}
	go func() { _ = srv.Serve(l) }()
	end := s.close
	s.close = func() { end(); _ = srv.Close() }
	s.address = l.Addr().String()
	return &s
}

func feedOurs(tb testing.TB) *stage {
	a := newAPI()
	return ours(tb, executorOf(tb, executable{a}, nil), stage{query: feedQuery, publish: func() { a.publish(1) }, close: func() {}})
}

func feedStock(tb testing.TB) *stage {
	a := newAPI()
	return onAddress(tb, stockOf(executable{a}), stage{query: feedQuery, publish: func() { a.publish(1) }, close: a.complete})
}

func networkOurs(tb testing.TB) *stage {
	s := openStoreForAll(tb, memory.Config{})
	return ours(tb, s.exec, stage{query: networkQuery, skip: 1, publish: s.change(tb), close: func() {}})
}

func networkStock(tb testing.TB) *stage {
	s := openStoreForAll(tb, memory.Config{})
	srv := stockOf(enginetest.New(tb, nil, s.Service))
	return onAddress(tb, srv, stage{query: networkQuery, skip: 1, publish: s.change(tb), close: func() {}})
}

func ours(tb testing.TB, exec *transport.Executor, s stage) *stage {
	sockets, err := transport.New(transport.Config{Executor: func(context.Context) *transport.Executor { return exec }})
	if err != nil {
		tb.Fatal(err)
	}
	end := s.close
	s.close = func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		sockets.Drain(ctx)
		end()
	}
	return onAddress(tb, sockets, s)
}

func stockOf(es graphql.ExecutableSchema) *handler.Server {
	srv := handler.New(es)
	srv.SetQueryCache(lru.New[*ast.QueryDocument](100))
	srv.AddTransport(stock.Websocket{})
	return srv
}

// change returns what makes one event: a network that differs each time.
func (s *store) change(tb testing.TB) func() {
	n := 0
	return func() {
		n++
		_, err := s.Writer.Upsert(context.Background(), service.UpsertRequest{
			Identity: kind.Identity{Kind: "Network", Name: "net"},
			Spec:     map[string]any{"cloudCredentialsRef": map[string]any{"secretName": "s", "cloudName": "c"}, "resource": map[string]any{"description": fmt.Sprint(n)}},
		})
		if err != nil {
			tb.Error(err)
		}
	}
}

// TestThousandsOfSubscribersGetAllEvents has many subscribers to a change of the
// catalogue's API ten times a second.
func TestThousandsOfSubscribersGetAllEvents(t *testing.T) {
	subscribers, events := 5000, 30
	if small() {
		subscribers, events = 300, 10
	}
	s := networkOurs(t)
	defer s.close()
	c := startCrowd(t, s.address, subscribers, s.skip, "subscription{networkChanges{type cursor}}")
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	begin := time.Now()
	for range events {
		s.publish()
		<-tick.C
	}
	for range events {
		c.wait("all")
	}
	t.Logf("%d events to %d subscribers, published in %v, all there after %v", events, subscribers, time.Duration(events)*100*time.Millisecond, time.Since(begin))
	c.stop()
}
