package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/sluicegw/sluice/backend/hub"
	"github.com/sluicegw/sluice/backend/redis"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/cmd/sluice/config"
	"github.com/sluicegw/sluice/cmd/sluice/version"
	"github.com/sluicegw/sluice/graph/server"
)

// debugStatePath is the path whose answer is a [debugState].
const debugStatePath = "/debug/state"

// listenDebug listens on the address in debug-listen; nil if there is none.
func (s *Gateway) listenDebug() (net.Listener, error) {
	if s.DebugListen == "" {
		return nil, nil
	}
	listener, err := net.Listen("tcp", s.DebugListen)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("debug-listen: %s is in use by another process; choose another address", s.DebugListen)
	}
	if err != nil {
		return nil, fmt.Errorf("debug-listen: %w", err)
	}
	sampleAllocations()
	return listener, nil
}

// bytesPerSample is the average number of allocated bytes per sample of the heap profile. It is Go's default.
const bytesPerSample = 512 << 10

// sampleAllocations turns on the sampling for the profiles heap and allocs, which main has turned off.
var sampleAllocations = sync.OnceFunc(func() { runtime.MemProfileRate = bytesPerSample })

// serveDebug serves requests on the listener until ctx ends. A profile that is then in progress is aborted.
func serveDebug(ctx context.Context, on net.Listener, state func() debugState) error {
	srv := &http.Server{
		Handler:           debugHandler(state),
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       time.Minute,
	}
	stop := context.AfterFunc(ctx, func() { _ = srv.Close() })
	defer stop()
	if err := srv.Serve(on); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("debug-listen: %w", err)
	}
	return nil
}

// debugHandler returns the handler of profiles and the state. The command line is not available, because it may have a
// URL with a password.
func debugHandler(state func() debugState) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("POST /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	mux.HandleFunc("GET /debug/pprof/cmdline", http.NotFound)
	mux.HandleFunc("GET "+debugStatePath, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		_ = encoder.Encode(state())
	})
	return localOnly(mux)
}

// localOnly refuses requests from web pages: from other origins, and to a host that is not this machine, to which DNS
// may have directed the browser.
func localOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if name, _, err := net.SplitHostPort(host); err == nil {
			host = name
		}
		switch {
		case !config.Loopback(host):
			http.Error(w, "the Host of a request is an address of this machine or localhost", http.StatusForbidden)
		case r.Header.Get("Origin") != "" || fromAnotherSite(r):
			http.Error(w, "requests of pages are refused", http.StatusForbidden)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// fromAnotherSite reports whether a page of another site has caused a request. A browser sends no Origin with the
// request for an image, which could start a profile or a collection of garbage.
func fromAnotherSite(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	return site == "cross-site" || site == "same-site"
}

// debugState describes what a gateway is doing: what is waiting, what is locked, what is being loaded, and which
// callers cause most of the work. It has names of resources and callers, but no values.
type debugState struct {
	Version string       `json:"version"`
	Now     time.Time    `json:"now"`
	Server  server.State `json:"server"`
	Store   debugStore   `json:"store"`
	Writes  debugWrites  `json:"writes"`
	Streams debugStreams `json:"streams"`
	Index   *debugIndex  `json:"index,omitempty"`
	Waiting debugWaiting `json:"waiting"`
	// Services are the lines about resource services in /readyz?verbose.
	Services []string `json:"services,omitempty"`
	// AuditBehind is the number of changes that are not in the audit log yet; nil if there is no audit log.
	AuditBehind *uint64 `json:"auditBehind,omitempty"`
}

// debugStore describes the calls that wait for the store.
type debugStore struct {
	// Kind is "embedded" or "redis".
	Kind          string      `json:"kind"`
	WritesWaiting int         `json:"writesWaiting"`
	Connections   *redis.Pool `json:"connections,omitempty"`
}

// debugWrites describes the resources that are being written.
type debugWrites struct {
	// Locked is the number of resources that writers have locked. Busiest are the resources with the most writers.
	Locked  int                 `json:"locked"`
	Busiest []service.LockState `json:"busiest"`
}

type debugStreams struct {
	Subscribers int        `json:"subscribers"`
	Lagged      uint64     `json:"lagged"`
	Queues      hub.Queues `json:"queues"`
}

type debugIndex struct {
	Bytes     int64  `json:"bytes"`
	Limit     int64  `json:"limit"`
	Kinds     int    `json:"kinds"`
	Served    int    `json:"served"`
	Filling   int    `json:"filling"`
	Resources int    `json:"resources"`
	Behind    uint64 `json:"behindChanges"`
	// Progress has a line for each kind that is not completely in memory yet.
	Progress []string `json:"progress,omitempty"`
}

// debugWaiting describes the resources that wait for other resources, and those whose deletion waits.
type debugWaiting struct {
	Resources      int        `json:"resources"`
	Since          *time.Time `json:"since,omitempty"`
	Deletions      int        `json:"deletions"`
	DeletionsSince *time.Time `json:"deletionsSince,omitempty"`
}

// maxBusiest is the maximum number of locked resources in a [debugState].
const maxBusiest = 20

// state returns the present activity of the gateway.
func (c *catalogues) state(on shared) debugState {
	svc := c.current()
	out := debugState{Version: version.Text(), Now: time.Now().UTC(), Server: c.server.State(), Services: c.services()}
	out.Store.Kind = "embedded"
	if store, ok := on.store.(remoteStore); ok {
		pool := store.Pool()
		out.Store.Kind = "redis"
		out.Store.Connections = &pool
	}
	if store, ok := on.store.(writeQueue); ok {
		out.Store.WritesWaiting = store.WritesWaiting()
	}
	out.Writes.Busiest, out.Writes.Locked = svc.Writer.Locks(maxBusiest)
	out.Streams = debugStreams{
		Subscribers: on.changes.Subscribers(), Lagged: on.changes.Lagged(), Queues: on.changes.Queues(),
	}
	if x := svc.Index(); x != nil {
		s := x.Stats()
		out.Index = &debugIndex{
			Bytes:     s.Bytes,
			Limit:     s.Limit,
			Kinds:     s.Kinds,
			Served:    s.Served,
			Filling:   s.Filling,
			Resources: s.Resources,
			Behind:    s.Behind,
			Progress:  x.Progress(),
		}
	}
	waiting, since := svc.Waiting()
	out.Waiting = debugWaiting{
		Resources:      waiting,
		Since:          timeOrNil(since),
		Deletions:      svc.DeletionsBefore(svc.Now()),
		DeletionsSince: timeOrNil(svc.OldestDeletion()),
	}
	if on.audit != nil {
		behind := on.audit.Behind()
		out.AuditBehind = &behind
	}
	return out
}

func timeOrNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
