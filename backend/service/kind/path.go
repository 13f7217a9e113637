package kind

import (
	"strings"

	"github.com/sluicegw/sluice/backend/service/failure"
)

// Path returns the path of a declared field with all its names. It takes the path as declarations have it: from the
// root of the body, in stored names, without elements of lists. A step that leads to no field stays as it is. What a view
// does not have has the names of the kind of which it is one.
func (k *Kind) Path(stored string) *failure.Path {
	for k.whole != nil {
		if f, _ := k.FieldAt(stored); f != nil {
			break
		}
		k = k.whole
	}
	part, rest, more := strings.Cut(stored, ".")
	at := failure.At(part)
	s := map[string]*Shape{"spec": k.Spec, "status": k.Status}[part]
	for more {
		var name string
		name, rest, more = strings.Cut(rest, ".")
		if s == nil || s.fields[name] == nil {
			at = at.Name(name)
			s = nil
			continue
		}
		f := s.fields[name]
		at = at.Field(f.Field)
		s = f.shape
	}
	return at
}
