package kind

import (
	"strings"

	"github.com/sluicegw/sluice/backend/service/failure"
)

// Path returns the path of a declared field, which can be written with any [failure.FieldNames]. stored is the path as
// declarations write it, such as spec.networks.name: stored names from the root of the body, without list elements. A
// step that is not a field keeps its name. If a view does not have the field, the names of the whole kind are used.
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
