package failure

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
)

// The path of a value is written as people read it: spec.resource.tags[1]. A name
// that is none of the API's, as the key of a map can be, stands in brackets and
// quotes: spec.properties["a.b"].

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

// at returns a copy of the error with a path.
func (e *Error) at(path string) *Error {
	out := *e
	out.Path = path
	return &out
}
