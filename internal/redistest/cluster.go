package redistest

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The properties of a cluster: see [Nodes].
const (
	masters     = 3
	slots       = 16384
	nodeTimeout = "1000" // in milliseconds, until a node is suspected
)

// Nodes are a Redis Cluster of three masters with a replica each.
type Nodes struct {
	// All has all nodes. The first three nodes start as masters. Node i+3 starts as the replica of node i.
	All []*Server

	t   testing.TB
	ids []string
}

// Cluster starts a Redis Cluster and returns when the cluster is complete: see [Nodes.AwaitWhole]. It skips the test if
// the flag -short is set.
func Cluster(t testing.TB, opts ...Option) *Nodes {
	t.Helper()
	if testing.Short() {
		t.Skip("long: make test-all")
	}
	c := &Nodes{t: t}
	for i := range 2 * masters {
		s := Start(t, append([]Option{
			Set("cluster-enabled", "yes"), Set("cluster-node-timeout", nodeTimeout),
			// No replica moves to another master, so the order of Nodes.All is as documented.
			Set("cluster-allow-replica-migration", "no"),
		}, opts...)...)
		c.All = append(c.All, s)
		c.ids = append(c.ids, s.Do("CLUSTER", "MYID").(string))
		s.Do("CLUSTER", "SET-CONFIG-EPOCH", i+1) // otherwise the nodes first have to agree on epochs
	}
	for i, s := range c.All[:masters] {
		s.Do("CLUSTER", "ADDSLOTSRANGE", slots*i/masters, slots*(i+1)/masters-1)
	}
	host, port, err := net.SplitHostPort(c.All[0].Addr)
	if err != nil {
		t.Fatalf("redistest: cluster: %v", err)
	}
	for _, s := range c.All[1:] {
		s.Do("CLUSTER", "MEET", host, port)
	}
	for i, s := range c.All[masters:] {
		Await(t, "replica "+s.Addr, func() error { // it fails until the node knows its master
			return s.client.ClusterReplicate(t.Context(), c.ids[i]).Err()
		})
	}
	c.AwaitWhole()
	return c
}

// URL returns the URL by which a gateway uses the cluster.
func (c *Nodes) URL() string {
	addrs := make([]string, len(c.All))
	for i, s := range c.All {
		addrs[i] = s.Addr
	}
	return "redis-cluster://" + strings.Join(addrs, ",")
}

// AwaitWhole waits until each node knows all other nodes, no node has failed, all slots are served, and all replicas
// are in sync.
func (c *Nodes) AwaitWhole() {
	c.t.Helper()
	for _, s := range c.All {
		Await(c.t, "cluster node "+s.Addr, func() error { return c.whole(s) })
	}
}

func (c *Nodes) whole(s *Server) error {
	info, err := s.client.ClusterInfo(c.t.Context()).Result()
	if err != nil {
		return err
	}
	for _, want := range []string{
		"cluster_state:ok", "cluster_slots_ok:" + strconv.Itoa(slots),
		"cluster_known_nodes:" + strconv.Itoa(len(c.All)),
	} {
		if !strings.Contains(info, want) {
			return fmt.Errorf("no %s in %q", want, info)
		}
	}
	lines, err := c.nodes(s)
	if err != nil {
		return err
	}
	replicas := 0
	for _, f := range lines {
		if flags := f[2]; strings.Contains(flags, "fail") || strings.Contains(flags, "handshake") {
			return fmt.Errorf("%s is %s", f[1], flags)
		}
		if strings.Contains(f[2], "slave") {
			replicas++
		}
	}
	if replicas != len(c.All)-masters {
		return fmt.Errorf("%d replicas are known", replicas)
	}
	if s.has("replication", "role:slave") == nil {
		return s.has("replication", "master_link_status:up")
	}
	return nil
}

// nodes returns the lines of CLUSTER NODES in the answer of s, split into fields.
func (c *Nodes) nodes(s *Server) ([][]string, error) {
	text, err := s.client.ClusterNodes(c.t.Context()).Result()
	if err != nil {
		return nil, err
	}
	var out [][]string
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 8 {
			return nil, fmt.Errorf("cluster nodes: %q", line)
		}
		out = append(out, f)
	}
	return out, nil
}

// Slot returns the slot of a key.
func (c *Nodes) Slot(key string) int {
	c.t.Helper()
	return int(c.All[0].Do("CLUSTER", "KEYSLOT", key).(int64))
}

// Owner returns the master that serves a slot according to its own CLUSTER NODES. It waits until there is such a master
// that the test has not stopped or killed.
func (c *Nodes) Owner(slot int) *Server {
	c.t.Helper()
	return c.awaitOwner(slot, func(*Server) error { return nil })
}

// AwaitFailover waits until another node than from serves the slot, and returns this node.
func (c *Nodes) AwaitFailover(slot int, from *Server) *Server {
	c.t.Helper()
	return c.awaitOwner(slot, func(s *Server) error {
		if s == from {
			return fmt.Errorf("%s still owns slot %d", from.Addr, slot)
		}
		return nil
	})
}

func (c *Nodes) awaitOwner(slot int, accept func(*Server) error) *Server {
	c.t.Helper()
	var owner *Server
	Await(c.t, fmt.Sprint("owner of slot ", slot), func() error {
		for i, s := range c.All {
			if s.down || accept(s) != nil {
				continue
			}
			lines, err := c.nodes(s)
			if err != nil {
				return err
			}
			self := slices.IndexFunc(lines, func(f []string) bool { return f[0] == c.ids[i] })
			if self >= 0 && strings.Contains(lines[self][2], "master") && servesSlot(lines[self][8:], slot) {
				owner = s
				return nil
			}
		}
		return fmt.Errorf("none of %d nodes", len(c.All))
	})
	return owner
}

// servesSlot reports whether a slot is in ranges. A range has a form of CLUSTER NODES: "0-5460", "7", or "[7->-id]" for
// a slot that is being moved.
func servesSlot(ranges []string, slot int) bool {
	return slices.ContainsFunc(ranges, func(r string) bool {
		first, last, ok := strings.Cut(r, "-")
		if !ok {
			last = first
		}
		a, err1 := strconv.Atoi(first)
		b, err2 := strconv.Atoi(last)
		return err1 == nil && err2 == nil && a <= slot && slot <= b
	})
}
