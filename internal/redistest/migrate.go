package redistest

import "net"

// Migration moves one slot of a Cluster to another master, with its keys, while the slot is in use.
type Migration struct {
	c        *Nodes
	slot     int
	from, to *Server
}

// Migrate begins to move a slot to another master. From now on the old owner of the slot answers ASK for keys that it
// does not have, and TRYAGAIN for a command of which it has only some of the keys.
func (c *Nodes) Migrate(slot int, to *Server) *Migration {
	c.t.Helper()
	m := &Migration{c: c, slot: slot, from: c.Owner(slot), to: to}
	m.to.Do("CLUSTER", "SETSLOT", slot, "IMPORTING", c.id(m.from))
	m.from.Do("CLUSTER", "SETSLOT", slot, "MIGRATING", c.id(m.to))
	return m
}

// Move moves at most n keys and returns how many it has moved; 0 means that no keys were left.
func (m *Migration) Move(n int) int {
	m.c.t.Helper()
	keys := m.from.Do("CLUSTER", "GETKEYSINSLOT", m.slot, n).([]any)
	if len(keys) == 0 {
		return 0
	}
	host, port, err := net.SplitHostPort(m.to.Addr)
	if err != nil {
		m.c.t.Fatalf("redistest: migrate: %v", err)
	}
	args := []any{"MIGRATE", host, port, "", 0, 5000}
	if m.to.cfg.user != (credentials{}) {
		args = append(args, "AUTH2", adminName, adminPassword)
	}
	m.from.Do(append(append(args, "KEYS"), keys...)...)
	return len(keys)
}

// Finish moves the remaining keys and makes the other master the owner of the slot.
func (m *Migration) Finish() {
	m.c.t.Helper()
	for m.Move(100) > 0 {
	}
	// The new owner comes first, so that there always is an owner. Other masters get the change here, or from another
	// node.
	m.to.Do("CLUSTER", "SETSLOT", m.slot, "NODE", m.c.id(m.to))
	m.from.Do("CLUSTER", "SETSLOT", m.slot, "NODE", m.c.id(m.to))
	for _, s := range m.c.All {
		if s != m.from && s != m.to && !s.down && s.has("replication", "role:master") == nil {
			s.Do("CLUSTER", "SETSLOT", m.slot, "NODE", m.c.id(m.to))
		}
	}
}

func (c *Nodes) id(s *Server) string {
	for i, o := range c.All {
		if o == s {
			return c.ids[i]
		}
	}
	c.t.Fatalf("redistest: %s is no node of the cluster", s.Addr)
	return ""
}
