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

// table has the watches of one attribute by their values.
type table struct {
	watches map[string][]*Watcher
	// all has every watch of the table once.
	all map[*Watcher]struct{}
}

// register attaches a watch: changes are offered to it. The caller holds mu.
func (h *Hub) register(w *Watcher) {
	w.attachedAt = len(h.attached)
	h.attached = append(h.attached, w)
	if w.lookup == nil {
		w.askedAt = len(h.asked)
		h.asked = append(h.asked, w)
		return
	}
	t := h.tables[w.lookup.By]
	if t == nil {
		t = &table{watches: map[string][]*Watcher{}, all: map[*Watcher]struct{}{}}
		h.tables[w.lookup.By] = t
	}
	t.all[w] = struct{}{}
	for _, v := range w.lookup.Values {
		t.watches[v] = append(t.watches[v], w)
	}
}

// deregister takes a watch off the lists by which changes are offered. The caller holds mu.
func (h *Hub) deregister(w *Watcher) {
	if w.lookup == nil {
		last := len(h.asked) - 1
		h.asked[w.askedAt] = h.asked[last]
		h.asked[w.askedAt].askedAt = w.askedAt
		h.asked[last] = nil
		h.asked = h.asked[:last]
		return
	}
	t := h.tables[w.lookup.By]
	delete(t.all, w)
	if len(t.all) == 0 {
		delete(h.tables, w.lookup.By)
		return
	}
	for _, v := range w.lookup.Values {
		if rest := without(t.watches[v], w); len(rest) > 0 {
			t.watches[v] = rest
		} else {
			delete(t.watches, v)
		}
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
		out[by] = make([]found, len(events))
	}
	h.mu.Unlock()
	for by, all := range out {
		for i := range events {
			all[i].values, all[i].all = by.Values(&events[i])
		}
	}
	return out
}

// offer offers changes to the watches of a table that they may concern by their values: to all
// if there are none, because the table is new. The caller holds the hub's mu.
func (t *table) offer(entries []entry, values []found) {
	for i := range entries {
		one := entries[i : i+1]
		if values == nil || values[i].all {
			for w := range t.all {
				w.offerOrDetach(one)
			}
			continue
		}
		for n, v := range values[i].values {
			list := t.watches[string(v)]
			for j := len(list) - 1; j >= 0; j-- { // a watch that is detached makes room for one behind it
				if w := list[j]; !w.hasAny(values[i].values[:n]) {
					w.offerOrDetach(one)
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

func (w *Watcher) offerOrDetach(entries []entry) {
	if !w.offer(entries) {
		w.hub.detach(w)
	}
}
