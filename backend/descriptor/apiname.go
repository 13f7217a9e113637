package descriptor

import (
	"slices"
	"strings"
)

// InAPI returns the name of the field in the API.
func (f *Field) InAPI() string {
	if f.APIName != "" {
		return f.APIName
	}
	return f.Name
}

// APIPath returns a path from the body's root, or a part of it, in the names of the API: for
// "spec.import.id" it may be "spec.import.cloudId". What is no field stays as it is.
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

// StoredPath translates a path from the names of the API to the names of the store. It reverses
// [Kind.APIPath].
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
