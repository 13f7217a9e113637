package failure

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"github.com/sluicegw/sluice/backend/descriptor"
)

// FieldNames selects the names of fields in the paths and messages of errors. Callers see the names that they use
// themselves.
type FieldNames int

// The names that a [FieldNames] selects.
const (
	// StoredNames are the names in stored JSON.
	StoredNames FieldNames = iota
	// APINames are the names in the GraphQL API.
	APINames
	// ManifestNames are the names in manifests. They equal StoredNames, except for fields of the spec that stand at the
	// top level of a manifest.
	ManifestNames
)

// Path is the position of a value in a resource, or in the arguments of a request. Each Path has one step and a pointer
// to the path before this step; nil is the path of the whole. A step into a declared field knows all names of the
// field, so the same path can be written with any [FieldNames]. The text of a path is built only when an error needs
// it, and does not share memory with the path. So paths can stay on the stack.
type Path struct {
	in *Path
	// field is the declared field of the step. It is nil for an argument, an unknown field or a key of a map; name then
	// has the name.
	field *descriptor.Field
	name  string
	// element is the number of a list element, counted from 1; 0 if the step is a name.
	element int
}

// At returns the path of a part of a resource, or of an argument.
func At(name string) *Path { return &Path{name: name} }

// Name returns the path of a member of the object or map at p.
func (p *Path) Name(name string) *Path { return &Path{in: p, name: name} }

// Field returns the path of a declared field of the object at p.
func (p *Path) Field(f *descriptor.Field) *Path { return &Path{in: p, field: f} }

// Element returns the path of an element of the list at p, counted from 0.
func (p *Path) Element(i int) *Path { return &Path{in: p, element: i + 1} }

// Below returns a path below p whose last step is set later. A loop uses one such path, and sets its last step for each
// value.
func (p *Path) Below() Path { return Path{in: p} }

// SetName sets the last step to a name or a key.
func (p *Path) SetName(name string) { p.name = name }

// SetField sets the last step to a declared field.
func (p *Path) SetField(f *descriptor.Field) { p.field = f }

// SetElement sets the last step to an element, counted from 0.
func (p *Path) SetElement(i int) { p.element = i + 1 }

// Text returns the path as text, such as spec.resource.tags[1]. A name that is not valid in the API, such as a key of a
// map, is written in brackets and quotes: spec.properties["a.b"].
func (p *Path) Text(names FieldNames) string {
	switch {
	case p == nil:
		return ""
	case p.element > 0:
		return Element(p.in.Text(names), p.element-1)
	case p.atTop(names):
		return strings.Clone(p.field.ManifestAt)
	}
	return Join(p.in.Text(names), p.last(names))
}

// Steps returns the steps of the path as the extensions of errors have them: names as strings and indexes as ints.
func (p *Path) Steps(names FieldNames) []any {
	switch {
	case p == nil:
		return nil
	case p.element > 0:
		return append(p.in.Steps(names), p.element-1)
	case p.atTop(names):
		return []any{strings.Clone(p.field.ManifestAt)}
	}
	return append(p.in.Steps(names), p.last(names))
}

// atTop reports whether the path names a field of the spec that stands at the top level of a manifest.
func (p *Path) atTop(names FieldNames) bool {
	return names == ManifestNames && p.field != nil && p.field.ManifestAt != "" &&
		p.in != nil && p.in.in == nil && p.in.name == "spec"
}

// last returns the name of the last step.
func (p *Path) last(names FieldNames) string {
	switch {
	case p.field == nil:
		return strings.Clone(p.name)
	case names == APINames:
		return strings.Clone(p.field.InAPI())
	}
	return strings.Clone(p.field.Name)
}

// Join returns the path of the member called name of the object at path.
func Join(path, name string) string {
	name = Shorten(name)
	switch {
	case path == "" && plain(strings.TrimPrefix(name, "@")): // a directive stands before its argument: @include.if
		return name
	case !plain(name):
		return path + "[" + quote(name) + "]"
	}
	return path + "." + name
}

// quote returns a name as a JSON string.
func quote(name string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(name) // a string always marshals
	return strings.TrimSuffix(b.String(), "\n")
}

// Element returns the path of element i of the list at path.
func Element(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

// plain reports whether a name can be written in a path without quotes: it has only letters, digits, '_' and '-'.
func plain(name string) bool {
	for _, c := range []byte(name) {
		if c != '_' && c != '-' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return name != ""
}

// Steps splits a path into names (string) and indexes (int).
func Steps(path string) []any {
	var out []any
	for path != "" {
		if path[0] == '.' {
			path = path[1:]
		}
		if !strings.HasPrefix(path, "[") {
			end := strings.IndexAny(path, ".[")
			if end < 0 {
				end = len(path)
			}
			if end > 0 {
				out = append(out, path[:end])
			}
			path = path[end:]
			continue
		}
		step, rest := bracket(path[1:])
		out, path = append(out, step), rest
	}
	return out
}

// bracket parses an index or a quoted name at the beginning of text, up to the closing bracket. It returns the rest of
// the text.
func bracket(text string) (step any, rest string) {
	if strings.HasPrefix(text, `"`) {
		d := json.NewDecoder(strings.NewReader(text))
		var name string
		if err := d.Decode(&name); err == nil {
			return name, strings.TrimPrefix(text[d.InputOffset():], "]")
		}
	}
	inside, rest, _ := strings.Cut(text, "]")
	if i, err := strconv.Atoi(inside); err == nil {
		return i, rest
	}
	return inside, rest
}

// Text joins steps to a path. It is the reverse of [Steps].
func Text(steps []any) string {
	out := ""
	for _, step := range steps {
		switch step := step.(type) {
		case int:
			out = Element(out, step)
		case string:
			out = Join(out, step)
		}
	}
	return out
}

// InList returns a copy of err with the path of an element of a list argument. list is the name of the argument, and i
// is the index of the element.
func InList(err error, list string, i int) error {
	if known, ok := errors.AsType[*Error](err); ok {
		return known.at(Element(list, i))
	}
	return err
}

// About returns a copy of err with the path of an argument. If err has a path, About returns err.
func About(err error, path string) error {
	if known, ok := errors.AsType[*Error](err); ok && known.Path == "" {
		return known.at(path)
	}
	return err
}

// Within returns a copy of err with argument before its path. If err has no path, Within returns err.
func Within(err error, argument string) error {
	known, ok := errors.AsType[*Error](err)
	switch {
	case !ok || known.Path == "":
		return err
	case strings.HasPrefix(known.Path, "["):
		return known.at(argument + known.Path)
	}
	return known.at(argument + "." + known.Path)
}

// at returns a copy of the error with another path.
func (e *Error) at(path string) *Error {
	out := *e
	out.Path = path
	return &out
}
