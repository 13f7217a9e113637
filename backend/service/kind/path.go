package kind

import (
	"strings"

	"github.com/sluicegw/sluice/backend/service/failure"
)

// Path returns the path of a declared field with all names of its steps. stored is the path as
// declarations have it: from the root of the body, in stored names, without list elements. A step
// that leads to no field is kept as it is. A view without a field uses the names of the whole kind.
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
