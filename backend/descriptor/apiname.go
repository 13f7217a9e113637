package descriptor

import (
	"slices"
	"strings"
)

// InAPI returns the name that the field has in the API.
func (f *Field) InAPI() string {
	if f.APIName != "" {
		return f.APIName
	}
	return f.Name
}

// APIPath converts a path of stored names to names of the API. The path begins at the root of the body. For example,
// "spec.import.id" may become "spec.import.cloudId". Steps that are not fields are unchanged.
func (k *Kind) APIPath(path string) string {
	steps := strings.Split(path, ".")
	var s *Shape
	for i, step := range steps {
		name, _, _ := strings.Cut(step, "[")
		switch {
		case i == 0:
			s = map[string]*Shape{"spec": k.Spec, "status": k.Status}[name]
		case s != nil:
			f := s.Field(name)
			if f == nil {
				return strings.Join(steps, ".")
			}
			steps[i], s = f.InAPI()+step[len(name):], f.Shape
		}
	}
	return strings.Join(steps, ".")
}

// StoredPath converts a path of names of the API to stored names. It is the inverse of [Kind.APIPath].
func (k *Kind) StoredPath(path string) string {
	steps := strings.Split(path, ".")
	s := map[string]*Shape{"spec": k.Spec, "status": k.Status}[steps[0]]
	for i := 1; i < len(steps) && s != nil; i++ {
		at := slices.IndexFunc(s.Fields, func(f Field) bool { return f.InAPI() == steps[i] })
		if at < 0 {
			return path
		}
		steps[i], s = s.Fields[at].Name, s.Fields[at].Shape
	}
	return strings.Join(steps, ".")
}
