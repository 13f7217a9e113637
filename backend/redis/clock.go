package redis

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend"
)

// maxSkew is the greatest accepted difference between the clock of a node and the store's clock. A resource expires by
// the clock of its node, and times from several nodes can be compared only if their clocks are about the same.
const maxSkew = 2 * time.Second

// offset relates the clock of a server to the monotonic clock of the gateway. It is the latest measurement that was
// quick.
type offset struct {
	at    time.Time // the server's time when it was measured
	local time.Time // the same moment on the monotonic clock
	trip  time.Duration
}

// clockAge is how long a quick measurement is preferred to later, slower ones.
const clockAge = 10 * time.Second

// note records a measurement: the server's time, and when the request was sent and answered. A measurement that took
// longer replaces a quicker one only if that is older than clockAge, or if the clock of the server was changed.
func (o *offset) note(server, sent, answered time.Time) {
	trip, middle := answered.Sub(sent), sent.Add(answered.Sub(sent)/2)
	if o.local.IsZero() || trip <= o.trip || answered.Sub(o.local) > clockAge ||
		server.Sub(o.when(middle)).Abs() > trip+o.trip {
		o.at = server
		o.local = middle
		o.trip = trip
	}
}

// when returns the server's time at a local time.
func (o *offset) when(local time.Time) time.Time { return o.at.Add(local.Sub(o.local)).UTC() }

// clocks has the measured clocks of the nodes of a cluster, by address. Outside a cluster, the address of the server is
// "".
type clocks struct {
	mu    sync.Mutex // guards all below
	nodes map[string]*offset
	// refused reports, for each node, whether it is refused because its clock differs too much.
	refused map[string]bool
}

// note records a measurement of a node's clock.
func (c *clocks) note(node string, server, sent, answered time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.nodes[node] == nil {
		c.nodes[node] = &offset{}
	}
	c.nodes[node].note(server, sent, answered)
}

// known reports whether the clock of the node was measured.
func (c *clocks) known(node string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.nodes[node] != nil
}

// at estimates the time of a node. If its clock was not measured, at returns the median of the nodes' times.
func (c *clocks) at(node string) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if o := c.nodes[node]; o != nil {
		return o.when(time.Now())
	}
	return c.middle(time.Now())
}

// middle returns the median of the nodes' times at a local time; the local time itself if no node was measured. The
// caller holds mu.
func (c *clocks) middle(local time.Time) time.Time {
	all := make([]time.Time, 0, len(c.nodes))
	for _, o := range c.nodes {
		all = append(all, o.when(local))
	}
	if len(all) == 0 {
		return local.UTC()
	}
	slices.SortFunc(all, time.Time.Compare)
	return all[(len(all)-1)/2]
}

// ahead returns by how much the clock of a node is ahead of the store's clock; 0 if it was not measured.
func (c *clocks) ahead(node string) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	o, local := c.nodes[node], time.Now()
	if o == nil {
		return 0
	}
	return o.when(local).Sub(c.middle(local))
}

// keep forgets all nodes except the given ones.
func (c *clocks) keep(nodes map[string]bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for node := range c.nodes {
		if !nodes[node] {
			delete(c.nodes, node)
			delete(c.refused, node)
		}
	}
}

func (c *core) measure(ctx context.Context, node string, on goredis.UniversalClient) error {
	sent := time.Now()
	at, err := on.Time(ctx).Result()
	if err != nil {
		return err
	}
	c.clocks.note(node, at.Add(c.skew(node)), sent, time.Now())
	return nil
}

// measureAll measures the clocks of all nodes that have a shard, and forgets the clocks of other nodes.
func (s *Store) measureAll(ctx context.Context, ses *session) error {
	if s.core.cfg.Clock != nil {
		return nil
	}
	nodes := map[string]bool{}
	for i := range s.core.shards {
		on, err := ses.primary(ctx, &s.core.shards[i])
		if err != nil {
			return err
		}
		node := s.core.node(on)
		if nodes[node] {
			continue
		}
		nodes[node] = true
		if err := s.core.measure(ctx, node, on); err != nil {
			return err
		}
	}
	s.core.clocks.keep(nodes)
	return nil
}

// unfit returns an error that names the nodes which are refused because of their clocks; nil if there are none.
func (c *core) unfit() error {
	var refused []error
	c.clocks.mu.Lock()
	nodes := slices.Sorted(maps.Keys(c.clocks.nodes))
	c.clocks.mu.Unlock()
	for _, node := range nodes {
		refused = append(refused, c.fit(node))
	}
	return errors.Join(refused...)
}

// fit returns an error if a node is refused because of its clock. It logs when that changes.
func (c *core) fit(node string) error {
	ahead := c.clocks.ahead(node)
	c.clocks.mu.Lock()
	defer c.clocks.mu.Unlock()
	was := c.clocks.refused[node]
	c.clocks.refused[node] = ahead.Abs() > maxSkew
	if !c.clocks.refused[node] {
		if was {
			c.cfg.Logger.Info("a node takes changes again: its clock is right", zap.String("node", node))
		}
		return nil
	}
	side := "ahead of"
	if ahead < 0 {
		side = "behind"
	}
	err := fmt.Errorf("the clock of node %s is %v %s that of the others, at most %v is accepted; synchronise the clocks of the nodes: %w",
		node, ahead.Abs().Round(time.Millisecond), side, maxSkew, backend.ErrUnavailable)
	if !was {
		c.cfg.Logger.Error("a node takes no changes", zap.Error(err))
	}
	return err
}

// checkClock returns the name of a node to which a change will be sent, or an error if the node is refused because of
// its clock. If the clock was not measured yet, checkClock does that first.
func (s *Store) checkClock(ctx context.Context, on *goredis.Client) (node string, err error) {
	node = s.core.node(on)
	if s.core.cfg.Clock != nil || node == "" {
		return node, nil
	}
	if !s.core.clocks.known(node) {
		if err := s.core.measure(ctx, node, on); err != nil {
			return node, &refusal{err: fmt.Errorf("time: %w", err)}
		}
	}
	if err := s.core.fit(node); err != nil {
		return node, &refusal{err: err, final: true}
	}
	return node, nil
}

// node returns the key of a server in core.clocks.
func (c *core) node(on *goredis.Client) string {
	if !c.at.Cluster {
		return ""
	}
	return on.Options().Addr
}

// nodeTime returns the time of the node that has a shard.
func (s *Store) nodeTime(ctx context.Context, ses *session, sh *shard) time.Time {
	if s.core.cfg.Clock != nil {
		return s.core.now()
	}
	node := ""
	if s.core.at.Cluster {
		if on, err := ses.primary(ctx, sh); err == nil {
			node = s.core.node(on)
		}
	}
	return s.core.clocks.at(node)
}

// now returns the store's time: the median of the nodes' times, or the time of Config.Clock.
func (c *core) now() time.Time {
	if c.cfg.Clock != nil {
		return c.cfg.Clock().UTC()
	}
	c.clocks.mu.Lock()
	defer c.clocks.mu.Unlock()
	return c.clocks.middle(time.Now())
}

// skew returns by how much a test advances the clock of a node.
func (c *core) skew(node string) time.Duration {
	if c.cfg.skew == nil {
		return 0
	}
	return c.cfg.skew(node)
}

// clockArgument returns the clock argument of a script. Except in tests it is empty, and the script uses the server's
// time.
func (c *core) clockArgument(node string) string {
	switch {
	case c.cfg.Clock != nil:
		return micros(c.cfg.Clock())
	case c.cfg.skew != nil:
		return micros(time.Now().Add(c.cfg.skew(node)))
	}
	return ""
}

func micros(t time.Time) string { return strconv.FormatInt(t.UnixMicro(), 10) }

// deadlineArgument converts the deadline of a batch from the store's clock to the clock of a node.
func (c *core) deadlineArgument(deadline time.Time, node string) string {
	if deadline.IsZero() {
		return ""
	}
	if c.cfg.Clock != nil && c.cfg.Clock().After(deadline) {
		return "0" // the script compares microseconds, which may be equal
	}
	return micros(deadline.Add(c.clocks.ahead(node)))
}
