package descriptor

import "strings"

// InAPI returns the name of the field in the API.
func (f *Field) InAPI() string {
	if f.APIName != "" {
		return f.APIName
	}
	return f.Name
}

// InAPI returns the path of the reference in the names of the API.
func (r *Reference) InAPI() string {
	if r.APIPath != "" {
		return r.APIPath
	}
	return r.Path
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
