package coercion

import "github.com/vektah/gqlparser/v2/ast"

// Path is the path of a value in a request: from an argument, or from a variable. Its list is made only for errors.
type Path struct {
	// In is the path of the object or the list that has the value; nil for none.
	In *Path
	// Name of an argument, a variable or a field; empty for an element of a list.
	Name  string
	Index int
}

// List returns the steps of the path.
func (p *Path) List() ast.Path {
	switch {
	case p == nil:
		return nil
	case p.Name == "":
		return append(p.In.List(), ast.PathIndex(p.Index))
	}
	return append(p.In.List(), ast.PathName(p.Name))
}

// Steps returns the steps of the path as the extensions of an error have them.
func (p *Path) Steps() []any {
	switch {
	case p == nil:
		return nil
	case p.Name == "":
		return append(p.In.Steps(), p.Index)
	}
	return append(p.In.Steps(), p.Name)
}
