package hub

import (
	"slices"

	"github.com/sluicegw/sluice/backend"
)

// Lookup finds the watches that a change may concern by its values, where asking
// each whether it covers the change would be as many questions as there are watches.
type Lookup struct {
	// By says what the values are of. Watches of equal By share a table.
	By Attribute
	// Values, each once, of which a change has at least one, before or after, if it
	// concerns the watch.
	Values []string
}

// Attribute is something of which changes have values. It is comparable.
type Attribute interface {
	// Values are those that a change has, before and after. all says that they are not
	// known, so that the change may concern every watch. The hub calls it for every
	// change, so it must be quick.
	Values(e *backend.Event) (values [][]byte, all bool)
}

// table has watches by the values of an attribute.
type table struct {
	watches map[string][]*Watcher
	// all has every watch of the table once.
	all []*Watcher
}

// each does something with all watches of the table, and detaches those for which it returns
// false. The caller holds the hub's mu.
func (t *table) each(do func(*Watcher) bool) {
	for i := len(t.all) - 1; i >= 0; i-- { // one that is detached makes room for one behind it
		if w := t.all[i]; !do(w) {
			w.hub.detach(w)
		}
	}
}

// each does something with all watches that changes are offered to, and detaches those for which
// it returns false. The caller holds mu.
func (h *Hub) each(do func(*Watcher) bool) {
	for _, t := range h.tables {
		t.each(do)
	}
}

// by is what the watch is found by.
func (w *Watcher) by() (by Attribute, values []string) {
	if w.lookup == nil {
		return nil, nil
	}
	return w.lookup.By, w.lookup.Values
}

// attach has changes offered to a watch. The caller holds mu.
func (h *Hub) attach(w *Watcher) {
	by, values := w.by()
	t := h.tables[by]
	if t == nil {
		t = &table{watches: map[string][]*Watcher{}}
		h.tables[by] = t
	}
	w.slot, t.all = len(t.all), append(t.all, w)
	for _, v := range values {
		t.watches[v] = append(t.watches[v], w)
	}
}

// detach ends that. The caller holds mu.
func (h *Hub) detach(w *Watcher) {
	delete(h.alone, w)
	if w.slot < 0 {
		return
	}
	by, values := w.by()
	t := h.tables[by]
	for _, v := range values {
		if rest := without(t.watches[v], w); len(rest) > 0 {
			t.watches[v] = rest
		} else {
			delete(t.watches, v)
		}
	}
	last := len(t.all) - 1
	t.all[w.slot], t.all[last].slot = t.all[last], w.slot
	t.all[last] = nil
	if t.all, w.slot = t.all[:last], -1; last == 0 {
		delete(h.tables, by)
	}
}

// without takes a watch out of a list of which the order does not matter.
func without(list []*Watcher, w *Watcher) []*Watcher {
	i, last := slices.Index(list, w), len(list)-1
	list[i], list[last] = list[last], nil
	return list[:last]
}

// found are the values that a change has of an attribute.
type found struct {
	values [][]byte
	all    bool
}

// valuesOf are the values of changes of each attribute by which watches are found now. They are
// read without mu: that may take as long as to read a body.
func (h *Hub) valuesOf(events []backend.Event) map[Attribute][]found {
	h.mu.Lock()
	out := make(map[Attribute][]found, len(h.tables))
	for by := range h.tables {
		if by != nil {
			out[by] = make([]found, len(events))
		}
	}
	h.mu.Unlock()
	for by, all := range out {
		for i := range events {
			if all[i].values, all[i].all = by.Values(&events[i]); all[i].all {
				all[i].values = nil
			}
		}
	}
	return out
}

// offer offers changes to the watches of a table that they may concern by their values: to all
// if there are none, because the watches are not found by any, or the table is new. The caller
// holds the hub's mu.
func (t *table) offer(entries []entry, values []found) {
	if values == nil {
		t.each(func(w *Watcher) bool { return w.offer(entries) })
		return
	}
	for i := range entries {
		one := entries[i : i+1]
		if values[i].all {
			t.each(func(w *Watcher) bool { return w.offer(one) })
		}
		for n, v := range values[i].values {
			list := t.watches[string(v)]
			for j := len(list) - 1; j >= 0; j-- { // a watch that is detached makes room for one behind it
				if w := list[j]; !w.hasAny(values[i].values[:n]) && !w.offer(one) {
					w.hub.detach(w)
				}
			}
		}
	}
}

// hasAny reports whether the watch wants one of some values, so that it was found by that already.
func (w *Watcher) hasAny(values [][]byte) bool {
	for _, v := range values {
		if slices.Contains(w.lookup.Values, string(v)) {
			return true
		}
	}
	return false
}
