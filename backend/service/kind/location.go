package kind

import (
	"strings"

	"github.com/sluicegw/sluice/backend/service/failure"
)

// location is where a value stands. Its path is written only if something is to be said
// of the value: most values are acceptable.
type location struct {
	// in is where the object or the list is, nil for the place where a path begins.
	in *location
	// name in the object, or the whole path where one begins.
	name string
	// element is the place in a list, counted from 1; 0: the value has a name.
	element int
}

// with is where what has a name in the object is.
func (l *location) with(name string) *location { return &location{in: l, name: name} }

// String is the path. It shares no memory with the location, so that this need not be on
// the heap.
func (l *location) String() string {
	name := strings.Clone(l.name)
	switch {
	case l.in == nil:
		return name
	case l.element > 0:
		return failure.Element(l.in.String(), l.element-1)
	}
	return failure.Join(l.in.String(), name)
}
