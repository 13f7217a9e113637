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

// Sentinels are three Sentinels that watch a primary and its replicas, with a quorum of two. They regard a primary as
// dead if it does not answer for 700 ms.
type Sentinels struct {
	// Name is the name by which URLs refer to the watched primary.
	Name string
	// Addrs are the addresses of the Sentinels.
	Addrs []string
	// Data are the servers with the data. The first one starts as the primary.
	Data []*Server

	t         testing.TB
	sentinels []*Server
}

// Sentinel starts a primary, replicas and Sentinels, and returns when the Sentinels know all of them. It skips the test
// if the flag -short is set.
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
		// The Sentinels send messages more often than by default. If a process did not run for a while, it leaves the
		// mode TILT, in which it does nothing, after one second instead of half a minute.
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

// ready returns an error unless a Sentinel knows the primary, all replicas and the other Sentinels.
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

// URL returns the URL by which a gateway uses the Sentinels.
func (g *Sentinels) URL() string {
	return "redis-sentinel://" + strings.Join(g.Addrs, ",") + "/" + g.Name + "?db=0"
}

// Protect sets the password of the Sentinels. Clients and the Sentinels themselves must then use it.
func (g *Sentinels) Protect(password string) {
	g.t.Helper()
	for _, s := range g.sentinels {
		s.Do("SENTINEL", "CONFIG", "SET", "sentinel-pass", password)
		s.Do("ACL", "SETUSER", "default", "resetpass", ">"+password)
	}
}

// Primary waits until the Sentinels agree on a primary that accepts writes, and returns this primary.
func (g *Sentinels) Primary() *Server {
	g.t.Helper()
	return g.awaitPrimary(func(*Server) error { return nil })
}

// AwaitFailover waits until another server than from is the primary, and returns this server.
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
