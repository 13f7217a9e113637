package failure

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"github.com/sluicegw/sluice/backend/descriptor"
)

// FieldNames is the set of names by which a caller knows the fields of resources. The path and the message of an
// error are in the names of the caller whose request it is about.
type FieldNames int

// The sets of names.
const (
	// StoredNames are the names in the store, and in JSON in stored form.
	StoredNames FieldNames = iota
	// APINames are the names in the API.
	APINames
	// ManifestNames are the names in manifests: the stored ones, but a field of a spec can stand at the top.
	ManifestNames
)

// Path is where a value stands in a resource, or in the arguments of a request. It is a chain: each path ends in
// one step, and knows the path that leads there. A step into a declared field has all names of the field, so a path
// has a text for each of [FieldNames]. The text is made only for what is reported, and shares no memory with the path: one
// that is made to look at a value need not be on the heap. Nil is the path of the whole.
type Path struct {
	in *Path
	// field is the declared field, nil if there is none: name is then the name of an argument, of a field that
	// the kind does not have, or the key of a map.
	field *descriptor.Field
	name  string
	// element is the number of an element of a list, counted from 1; 0 for a name.
	element int
}

// At returns the path of an argument, or of a part of a resource.
func At(name string) *Path { return &Path{name: name} }

// Name returns the path of what has a name in the object, or a key in the map, at p.
func (p *Path) Name(name string) *Path { return &Path{in: p, name: name} }

// Field returns the path of a declared field of the object at p.
func (p *Path) Field(f *descriptor.Field) *Path { return &Path{in: p, field: f} }

// Element returns the path of an element of the list at p, counted from 0.
func (p *Path) Element(i int) *Path { return &Path{in: p, element: i + 1} }

// Below returns a path in p whose last step is still to be set. A loop makes one and sets the step for each value.
func (p *Path) Below() Path { return Path{in: p} }

// SetName makes the last step one to a name or a key.
func (p *Path) SetName(name string) { p.name = name }

// SetField makes the last step one to a declared field.
func (p *Path) SetField(f *descriptor.Field) { p.field = f }

// SetElement makes the last step one to an element, counted from 0.
func (p *Path) SetElement(i int) { p.element = i + 1 }

// Text returns the path as people read it: spec.resource.tags[1]. A name that has other characters than names of
// the API, as the key of a map can, stands in brackets and quotes: spec.properties["a.b"].
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

// Steps returns the names (string) and indexes (int) of the path, as the extensions of errors have them.
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

// atTop reports whether the path leads to a field of the spec that stands at the top of manifests.
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

// Join is the path of what has a name in the object at a path.
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

// quote writes a name as JSON does.
func quote(name string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(name) // a string always marshals
	return strings.TrimSuffix(b.String(), "\n")
}

// Element is the path of an element of the list at a path.
func Element(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

// plain reports whether a name is written as it is: letters, digits, '_' and '-'.
func plain(name string) bool {
	for _, c := range []byte(name) {
		if c != '_' && c != '-' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return name != ""
}

// Steps are the names (string) and indexes (int) of a path.
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

// bracket reads what stands between brackets, an index or a quoted name, and returns
// what follows them.
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

// Text is the path with some steps.
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

// InList is an error about the element of a list of arguments: a copy with its path.
func InList(err error, list string, i int) error {
	if known, ok := errors.AsType[*Error](err); ok {
		return known.at(Element(list, i))
	}
	return err
}

// About is an error about the argument at a path, unless it has a path: a copy with that path.
func About(err error, path string) error {
	if known, ok := errors.AsType[*Error](err); ok && known.Path == "" {
		return known.at(path)
	}
	return err
}

// Within is an error about a value inside an argument, unless it has no path: a copy whose path begins with the
// argument.
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

// at returns a copy of the error with a path.
func (e *Error) at(path string) *Error {
	out := *e
	out.Path = path
	return &out
}
