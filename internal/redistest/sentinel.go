package redistest

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// Sentinels are three Sentinels with a quorum of two over a primary and its
// replicas. They find a primary dead after 700 ms.
type Sentinels struct {
	// Name of what they watch, for a URL.
	Name string
	// Addrs of the Sentinels.
	Addrs []string
	// Data are the servers with the data; the first one starts as the primary.
	Data []*Server

	t         testing.TB
	sentinels []*Server
}

// Sentinel starts a primary, replicas and Sentinels, and returns when they know each
// other. It skips short tests.
func Sentinel(t testing.TB, replicas int, opts ...Option) *Sentinels {
	t.Helper()
	if testing.Short() {
		t.Skip("long: make test-all")
	}
	g := &Sentinels{Name: "mymaster", t: t, Data: []*Server{Start(t, opts...)}}
	for range replicas {
		g.Data = append(g.Data, Start(t, append([]Option{ReplicaOf(g.Data[0].Addr)}, opts...)...))
	}
	host, port, err := net.SplitHostPort(g.Data[0].Addr)
	if err != nil {
		t.Fatalf("redistest: sentinel: %v", err)
	}
	for range 3 {
		s := Start(t, func(c *config) { c.sentinel = true },
			Set("sentinel", "monitor", g.Name, host, port, "2"),
			Set("sentinel", "down-after-milliseconds", g.Name, "700"),
			Set("sentinel", "failover-timeout", g.Name, "3000"))
		// They talk more often than they do by default, and a process that got no
		// time for a while does not make them go blind (TILT) for half a minute.
		s.Do("SENTINEL", "DEBUG", "info-period", "200", "publish-period", "100", "ask-period", "100", "ping-period", "200",
			"tilt-trigger", "20000", "tilt-period", "1000")
		g.sentinels = append(g.sentinels, s)
		g.Addrs = append(g.Addrs, s.Addr)
	}
	for _, s := range g.sentinels {
		Await(t, "sentinel "+s.Addr, func() error { return g.ready(s) })
	}
	return g
}

// ready wants the Sentinel to know all others.
func (g *Sentinels) ready(s *Server) error {
	state := redis.NewMapStringStringCmd(g.t.Context(), "SENTINEL", "MASTER", g.Name)
	if err := s.client.Process(g.t.Context(), state); err != nil {
		return err
	}
	m, want := state.Val(), strconv.Itoa(len(g.Data)-1)
	if m["flags"] != "master" || m["num-slaves"] != want || m["num-other-sentinels"] != "2" {
		return fmt.Errorf(
			"flags %q, %s replicas, %s other sentinels", m["flags"], m["num-slaves"], m["num-other-sentinels"],
		)
	}
	return nil
}

// URL is what a user configures.
func (g *Sentinels) URL() string {
	return "redis-sentinel://" + strings.Join(g.Addrs, ",") + "/" + g.Name + "?db=0"
}

// Protect makes the Sentinels ask for a password, of clients and of each other.
func (g *Sentinels) Protect(password string) {
	g.t.Helper()
	for _, s := range g.sentinels {
		s.Do("SENTINEL", "CONFIG", "SET", "sentinel-pass", password)
		s.Do("ACL", "SETUSER", "default", "resetpass", ">"+password)
	}
}

// Primary is the server that the Sentinels agree on, once they do and it accepts writes.
func (g *Sentinels) Primary() *Server {
	g.t.Helper()
	return g.awaitPrimary(func(*Server) error { return nil })
}

// AwaitFailover returns the primary once it is another than the given one.
func (g *Sentinels) AwaitFailover(from *Server) *Server {
	g.t.Helper()
	return g.awaitPrimary(func(s *Server) error {
		if s == from {
			return fmt.Errorf("%s is still the primary", from.Addr)
		}
		return nil
	})
}

func (g *Sentinels) awaitPrimary(accept func(*Server) error) *Server {
	g.t.Helper()
	var primary *Server
	Await(g.t, "primary of the sentinels", func() error {
		primary = nil
		for _, s := range g.sentinels {
			addr, err := s.client.Do(g.t.Context(), "SENTINEL", "GET-MASTER-ADDR-BY-NAME", g.Name).StringSlice()
			if err != nil {
				return err
			}
			named := g.server(net.JoinHostPort(addr[0], addr[1]))
			if primary != nil && named != primary {
				return fmt.Errorf("sentinels name %s and %s", primary.Addr, named.Addr)
			}
			primary = named
		}
		if err := accept(primary); err != nil {
			return err
		}
		return primary.has("replication", "role:master")
	})
	return primary
}

func (g *Sentinels) server(addr string) *Server {
	g.t.Helper()
	i := slices.IndexFunc(g.Data, func(s *Server) bool { return s.Addr == addr })
	if i < 0 {
		g.t.Fatalf("redistest: the sentinels know %s, which is not ours", addr)
	}
	return g.Data[i]
}
