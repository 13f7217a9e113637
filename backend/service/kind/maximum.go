package kind

import (
	"unicode/utf8"

	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/jsontree"
)

// Maxima checks that nothing in a status is larger than it may be, and nothing else of
// it. A nil shape has no maxima. A value that is no larger than the largest that is stored
// in the same field is taken: a controller that reports all of a status can keep what the
// gateway wrote there, and what was stored before there was a maximum.
func (v *Violations) Maxima(s *Shape, path string, status map[string]any, stored func() map[string]any) {
	if s == nil {
		return
	}
	var largest map[measure]int
	m := meter{tell: func(x excess) bool {
		if largest == nil {
			largest = s.excesses(stored())
		}
		if x.size <= largest[x.measure] {
			return true
		}
		v.Add(x.at.String(), x.rule, x.most, x.says(), x.most, x.size)
		return false
	}}
	m.object(s, path, status)
}

// excesses are the sizes of what is larger in a tree than it may be, the largest of each
// measure.
func (s *Shape) excesses(tree map[string]any) map[measure]int {
	out := map[measure]int{}
	m := meter{tell: func(x excess) bool {
		out[x.measure] = max(out[x.measure], x.size)
		return true
	}}
	m.object(s, "", tree)
	return out
}

// measure is what the values of a field are measured by.
type measure struct {
	field *Field
	rule  string
}

// The rules of maxima.
const (
	maxLength     = "maxLength"
	maxItems      = "maxItems"
	maxProperties = "maxProperties"
	keyMaxLength  = "keyMaxLength"
)

// says is what is said of an excess, with its maximum and its size.
func (m measure) says() string {
	switch m.rule {
	case maxItems:
		return "must have at most %d elements, has %d"
	case maxProperties:
		return "must have at most %d keys, has %d"
	case keyMaxLength:
		return "the key must have at most %d characters, has %d"
	}
	return "must have at most %d characters, has %d"
}

// excess is a value that is larger than it may be.
type excess struct {
	measure
	at         place
	most, size int
}

// place is where a value stands: what has a name in the object at a path, or an element
// of it; -1 is none.
type place struct {
	path, name string
	element    int
}

// String is the path of the place.
func (p place) String() string {
	path := failure.Join(p.path, p.name)
	if p.element < 0 {
		return path
	}
	return failure.Element(path, p.element)
}

// meter looks for values that are larger than they may be. What is not of the type of its
// field has no size.
type meter struct {
	// tell is told of each, and says whether to look into it.
	tell func(excess) bool
}

func (m meter) object(s *Shape, path string, tree map[string]any) {
	for _, f := range s.bounded {
		value, ok := tree[f.Name]
		if !ok {
			continue
		}
		if !f.List {
			m.value(f, value, place{path, f.Name, -1})
			continue
		}
		list, _ := value.([]any)
		if most := f.Constraint.MaxItems; most != nil && len(list) > *most && !m.tell(excess{measure{f, maxItems}, place{path, f.Name, -1}, *most, len(list)}) {
			continue
		}
		for i, e := range list {
			m.value(f, e, place{path, f.Name, i})
		}
	}
}

// value measures what a field has, or an element of its list.
func (m meter) value(f *Field, value any, at place) {
	switch value := value.(type) {
	case string:
		if f.Type == descriptor.TypeString {
			m.text(measure{f, maxLength}, f.Constraint.MaxLength, value, at)
		}
	case map[string]any:
		switch {
		case f.Type == descriptor.TypeMap:
			m.mapping(f, value, at)
		case f.shape != nil && len(f.shape.bounded) > 0:
			m.object(f.shape, at.String(), value)
		}
	}
}

// text measures a text in characters, of which each has a byte or more.
func (m meter) text(of measure, most *int, text string, at place) {
	if most == nil || len(text) <= *most {
		return
	}
	if n := utf8.RuneCountInString(text); n > *most {
		m.tell(excess{of, at, *most, n})
	}
}

// mapping measures a map of strings.
func (m meter) mapping(f *Field, entries map[string]any, at place) {
	c := f.Constraint
	if most := c.MaxItems; most != nil && len(entries) > *most && !m.tell(excess{measure{f, maxProperties}, at, *most, len(entries)}) {
		return
	}
	if c.KeyMaxLength == nil && c.MaxLength == nil {
		return
	}
	path := at.String()
	for _, key := range jsontree.Keys(entries) {
		m.text(measure{f, keyMaxLength}, c.KeyMaxLength, key, place{path, key, -1})
		if text, ok := entries[key].(string); ok {
			m.text(measure{f, maxLength}, c.MaxLength, text, place{path, key, -1})
		}
	}
}
