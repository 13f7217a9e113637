package hub

import (
	"slices"

	"github.com/sluicegw/sluice/backend"
)

// Lookup restricts a watch to changes with certain values. The hub finds these changes by a table, and calls
// Watch.Covers only for them.
type Lookup struct {
	// By is the attribute whose values are looked up. Watches with an equal By share a table.
	By Attribute
	// Values are the wanted values, without duplicates. A change that concerns the watch must have one of them, either
	// in the state before it or in the state after it.
	Values []string
}

// Attribute extracts from a change the values that a [Lookup] is compared with. Implementations must be comparable.
type Attribute interface {
	// Values returns the values before and after a change. If unknown is true, the values are not known, and the change
	// may concern every watch. Values is called for every change, so it must be quick.
	Values(e *backend.Event) (values [][]byte, unknown bool)
}

// lookupTable has the attached watches whose Lookup has the same attribute.
type lookupTable struct {
	byValue map[string][]*Watcher
	// watches has each watch of the table once.
	watches []*Watcher
}

// retain detaches the watches of the table for which keep returns false. The caller holds the hub's mu.
func (t *lookupTable) retain(keep func(*Watcher) bool) {
	for i := len(t.watches) - 1; i >= 0; i-- { // backwards: detach moves the last watch to the place of w
		if w := t.watches[i]; !keep(w) {
			w.hub.detach(w)
		}
	}
}

// retain detaches the watches for which keep returns false. The caller holds mu.
func (h *Hub) retain(keep func(*Watcher) bool) {
	for _, t := range h.tables {
		t.retain(keep)
	}
}

// by returns the attribute and the values of the watch's Lookup; nil if it has none.
func (w *Watcher) by() (by Attribute, values []string) {
	if w.lookup == nil {
		return nil, nil
	}
	return w.lookup.By, w.lookup.Values
}

// attach adds w to its table. The caller holds mu.
func (h *Hub) attach(w *Watcher) {
	by, values := w.by()
	t := h.tables[by]
	if t == nil {
		t = &lookupTable{byValue: map[string][]*Watcher{}}
		h.tables[by] = t
	}
	w.slot, t.watches = len(t.watches), append(t.watches, w)
	for _, v := range values {
		t.byValue[v] = append(t.byValue[v], w)
	}
}

// detach removes w from its table or from alone. The caller holds mu.
func (h *Hub) detach(w *Watcher) {
	delete(h.alone, w)
	if w.slot < 0 {
		return
	}
	by, values := w.by()
	t := h.tables[by]
	for _, v := range values {
		if rest := without(t.byValue[v], w); len(rest) > 0 {
			t.byValue[v] = rest
		} else {
			delete(t.byValue, v)
		}
	}
	last := len(t.watches) - 1
	t.watches[w.slot], t.watches[last].slot = t.watches[last], w.slot
	t.watches[last] = nil
	t.watches, w.slot = t.watches[:last], -1
	if last == 0 {
		delete(h.tables, by)
	}
}

// without removes a watch from a list, without preserving the order.
func without(list []*Watcher, w *Watcher) []*Watcher {
	i, last := slices.Index(list, w), len(list)-1
	list[i], list[last] = list[last], nil
	return list[:last]
}

// found is the result of [Attribute.Values] for a change.
type found struct {
	values  [][]byte
	unknown bool
}

// valuesOf returns the values of events, for each attribute that has a table. They are computed without mu, because an
// attribute may have to decode a body.
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
			all[i].values, all[i].unknown = by.Values(&events[i])
		}
	}
	return out
}

// dispatch offers each change to the watches whose Lookup has one of the change's values. values has the values of each
// entry. It is nil if the table has no attribute, or was created after valuesOf was called; all changes are then
// offered to all watches. The caller holds the hub's mu.
func (t *lookupTable) dispatch(entries []entry, values []found) {
	if values == nil {
		t.retain(func(w *Watcher) bool { return w.offer(entries) })
		return
	}
	for i := range entries {
		one := entries[i : i+1]
		if values[i].unknown {
			t.retain(func(w *Watcher) bool { return w.offer(one) })
			continue
		}
		for n, v := range values[i].values {
			list := t.byValue[string(v)]
			for j := len(list) - 1; j >= 0; j-- { // backwards, as in retain
				if w := list[j]; !w.hasAny(values[i].values[:n]) && !w.offer(one) {
					w.hub.detach(w)
				}
			}
		}
	}
}

// hasAny reports whether the Lookup of the watch has any of values. If so, dispatch has already offered the change to
// the watch.
func (w *Watcher) hasAny(values [][]byte) bool {
	for _, v := range values {
		if slices.Contains(w.lookup.Values, string(v)) {
			return true
		}
	}
	return false
}
