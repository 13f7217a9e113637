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
	// change, so it must be quick and must not use the hub.
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
	w.slot = len(h.attached)
	h.attached = append(h.attached, w)
	if w.lookup == nil {
		w.place = len(h.asked)
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
		h.asked[w.place] = h.asked[last]
		h.asked[w.place].place = w.place
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

// find offers one change to the watches of a table that it may concern. The caller
// holds the hub's mu.
func (t *table) find(by Attribute, one []entry) {
	values, all := by.Values(one[0].event)
	if all {
		for w := range t.all {
			w.offerOrDetach(one)
		}
		return
	}
	for i, v := range values {
		list := t.watches[string(v)]
		for j := len(list) - 1; j >= 0; j-- { // a watch that is detached makes room for one behind it
			if w := list[j]; !w.among(values[:i]) {
				w.offerOrDetach(one)
			}
		}
	}
}

// among says whether the watch has one of some values, so that it was found by that already.
func (w *Watcher) among(values [][]byte) bool {
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
