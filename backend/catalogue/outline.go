// Package catalogue compares catalogues of kinds. It finds out whether a catalogue can read the resources that were
// stored with another one, and which changes break clients. It keeps the record of the catalogues that a store has
// accepted.
package catalogue

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sluicegw/sluice/backend/descriptor"
)

// Outline is the part of a catalogue that decides whether stored resources can be read: its kinds and the fields of
// their bodies. Catalogues with equal outlines are the same catalogue for a store.
type Outline struct {
	// Kinds maps the names of kinds to their outlines.
	Kinds map[string]KindOutline `json:"kinds"`
}

// KindOutline is the part of an [Outline] about one kind.
type KindOutline struct {
	Scope descriptor.Scope `json:"scope"`
	// Sensitive reports whether write-only values are stored in separate records.
	Sensitive bool `json:"sensitive,omitempty"`
	// Service is the service that owns the resources, of which the store has a copy; empty if the gateway owns them.
	Service string `json:"service,omitempty"`
	// Fields maps the paths of fields to their outlines. A path begins at the root of the body and is joined by dots.
	Fields map[string]FieldOutline `json:"fields"`
}

// FieldOutline is the part of an [Outline] about one field.
type FieldOutline struct {
	Type     descriptor.FieldType `json:"type"`
	List     bool                 `json:"list,omitempty"`
	Required bool                 `json:"required,omitempty"`
	// WriteOnly reports whether stored values are never shown.
	WriteOnly bool `json:"writeOnly,omitempty"`
	// Values are the stored forms of an enum.
	Values []string `json:"values,omitempty"`
	// Refers is the kind to which a reference refers; empty if the field is not a reference.
	Refers string `json:"refers,omitempty"`
	// Guarded reports whether the target cannot be deleted while a resource relies on it.
	Guarded bool `json:"guarded,omitempty"`
}

// OutlineOf returns the outline of a catalogue.
func OutlineOf(kinds []descriptor.Kind) Outline {
	out := Outline{Kinds: map[string]KindOutline{}}
	for _, k := range kinds {
		o := KindOutline{
			Scope:     k.Scope,
			Sensitive: k.Sensitive,
			Service:   k.Service,
			Fields:    map[string]FieldOutline{},
		}
		o.add("spec", k.Spec)
		o.add("status", k.Status)
		for _, r := range k.References {
			if f, ok := o.Fields[r.Path]; ok {
				f.Refers, f.Guarded = r.Kind, r.Guarded
				o.Fields[r.Path] = f
			}
		}
		out.Kinds[k.Name] = o
	}
	return out
}

func (k KindOutline) add(path string, s *descriptor.Shape) {
	if s == nil {
		return
	}
	k.Fields[path] = FieldOutline{Type: descriptor.TypeObject, Required: path == "spec"}
	for i := range s.Fields {
		f := &s.Fields[i]
		at := path + "." + f.Name
		if f.Shape != nil {
			k.add(at, f.Shape)
		}
		out := FieldOutline{Type: f.Type, List: f.List, Required: f.Required, WriteOnly: f.WriteOnly}
		if f.Enum != nil {
			for _, v := range f.Enum.Values {
				out.Values = append(out.Values, v.Stored)
			}
		}
		k.Fields[at] = out
	}
}

// Hash returns a hash that identifies the outline, as 16 hexadecimal digits.
func (o Outline) Hash() string {
	raw, err := json.Marshal(o) // maps are written in the order of their keys
	if err != nil {
		panic(err) // an outline can always be encoded
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:8])
}

// Difference is one difference between an old catalogue and a new one.
type Difference struct {
	Severity Severity `json:"severity"`
	// Kind is the name of the kind. Path is the path of the field in it, empty if the change is about the kind.
	Kind string `json:"kind"`
	Path string `json:"path,omitempty"`
	// What describes the difference, such as "is new".
	What string `json:"message"`
	// Moves reports whether resources of the kind would be stored in another place, or get another owner: a service or
	// the gateway.
	Moves bool `json:"-"`
	// Place is the place of the new declaration, or of the type from which something was removed, as "file:line". It is
	// the folder for a removed kind, and empty if unknown.
	Place string `json:"place,omitempty"`

	// Rule is the expression of an added rule; empty for other changes.
	Rule string `json:"-"`
	// Default reports whether the effective default of a field was changed.
	Default bool `json:"-"`
	// Required reports whether a field has become required, or is new and required.
	Required bool `json:"-"`
	// ShortName reports whether a kind has lost a short name.
	ShortName bool `json:"-"`
	// Optional reports whether a field is no longer required.
	Optional bool `json:"-"`
	// Gone reports whether the kind or field was removed.
	Gone bool `json:"-"`

	// inType reports whether Place is the definition of the field's type.
	inType bool
	// shown reports whether a field is no longer @writeOnly.
	shown bool
	// kept is used instead of What if an older major version still shows the stored values. It is empty for changes
	// that an older major version cannot soften.
	kept string
}

// String returns the difference in one line.
func (c Difference) String() string {
	at := "kind " + c.Kind
	if c.Path != "" {
		at = c.Kind + "." + c.Path
	}
	at = prefix(c.Place) + at
	if mark := c.Severity.mark(); mark != "" {
		return at + " " + c.What + " (" + mark + ")"
	}
	return at + " " + c.What
}

// Diff returns the differences between two outlines, in the order of kinds and paths.
func Diff(from, to Outline) []Difference {
	var out []Difference
	for _, name := range bothKeys(from.Kinds, to.Kinds) {
		was, before := from.Kinds[name]
		is, after := to.Kinds[name]
		switch {
		case !before:
			out = append(out, Difference{Kind: name, What: "is new"})
		case !after:
			out = append(
				out,
				Difference{
					Kind:     name,
					What:     "is gone: its resources are kept and not served",
					Severity: BreaksStored,
					Gone:     true,
					kept:     "is gone: only clients of the older major see its resources",
				},
			)
		default:
			if was.Scope != is.Scope {
				out = append(
					out,
					Difference{
						Kind: name,
						What: fmt.Sprintf(
							"was %s and is %s: keys of its resources mean others",
							was.Scope,
							is.Scope,
						),
						Severity: BreaksStored,
						Moves:    true,
					},
				)
			}
			if was.Sensitive != is.Sensitive {
				what := map[bool]string{true: "is sensitive now", false: "is not sensitive any more"}[is.Sensitive]
				out = append(out, Difference{Kind: name, What: what + ": what is @writeOnly is looked for elsewhere than it is stored", Severity: BreaksStored, Moves: true})
			}
			if was.Service != is.Service {
				out = append(out, diffService(name, was.Service, is.Service))
			}
			out = append(out, diffFields(name, was.Fields, is.Fields)...)
		}
	}
	return out
}

// Breaking returns the changes that break stored resources.
func Breaking(changes []Difference) []Difference {
	return slices.DeleteFunc(slices.Clone(changes), func(c Difference) bool { return c.Severity != BreaksStored })
}

func bothKeys[V any](a, b map[string]V) []string {
	all := slices.Concat(slices.Collect(maps.Keys(a)), slices.Collect(maps.Keys(b)))
	slices.Sort(all)
	return slices.Compact(all)
}

func diffFields(kind string, from, to map[string]FieldOutline) []Difference {
	var out []Difference
	add := func(path string, severity Severity, format string, args ...any) {
		out = append(out, Difference{Kind: kind, Path: path, What: fmt.Sprintf(format, args...), Severity: severity})
	}
	for _, path := range bothKeys(from, to) {
		was, before := from[path]
		is, after := to[path]
		switch {
		case !before && isNewBelow(path, from):
		case !before && is.Required && hasParent(path, from):
			add(path, BreaksStored, "is new and required: what is stored does not have it and cannot be read")
			out[len(out)-1].Required = true
		case !before:
			add(path, Safe, "is new")
		case !after && isNewBelow(path, to):
		case !after:
			hint := renameHint(path, from, to)
			add(path, BreaksStored, "is gone: what is stored of it is not shown any more%s", hint)
			out[len(out)-1].Gone = true
			out[len(out)-1].kept = "is gone: only clients of the older major see what is stored of it" + hint
		case was.Type != is.Type || was.List != is.List:
			add(path, BreaksStored, "was %s and is %s: resources that have it cannot be read", was, is)
		default:
			if was.WriteOnly && !is.WriteOnly {
				add(path, BreaksStored, "was @writeOnly and is not: what is stored would be shown")
				out[len(out)-1].shown = true
			} else if !was.WriteOnly && is.WriteOnly {
				add(path, BreaksClients, "is @writeOnly now: it is not shown any more")
			}
			switch {
			case was.Refers != "" && was.Refers != is.Refers:
				add(path, BreaksStored, "does not refer to kind %s any more: nothing waits for what it names, or keeps it from being deleted", was.Refers)
			case was.Guarded && !is.Guarded:
				add(path, BreaksStored, "is not guarded any more: what it refers to can be deleted while it is relied on")
			case is.Refers != "" && was.Refers == "":
				add(path, Dangerous, "refers to kind %s now", is.Refers)
			case is.Guarded && !was.Guarded:
				add(path, Dangerous, "is guarded now: what it refers to stays while it is relied on")
			}
			if is.Required && !was.Required {
				add(path, BreaksStored, "is required now: resources without it cannot be read")
				out[len(out)-1].Required = true
			} else if was.Required && !is.Required {
				add(path, BreaksClients, "is not required any more: it can be null in answers")
				out[len(out)-1].Optional = true
			}
			for _, v := range was.Values {
				if !slices.Contains(is.Values, v) {
					add(path, BreaksStored, "has no value %q any more: resources that have it cannot be written with it", v)
					out[len(out)-1].inType = true
					out[len(out)-1].kept = fmt.Sprintf("has no value %q any more: only clients of the older major can write it", v)
				}
			}
			for _, v := range is.Values {
				if !slices.Contains(was.Values, v) {
					add(path, Dangerous, "has the new value %q", v)
				}
			}
		}
	}
	return out
}

// renameHint returns a hint how to rename a field and keep its values, if exactly one similar field was added beside
// the removed one. Otherwise it returns "".
func renameHint(path string, from, to map[string]FieldOutline) string {
	parent := path[:strings.LastIndex(path, ".")+1]
	var like []string
	for other, is := range to {
		name, beside := strings.CutPrefix(other, parent)
		was := from[path]
		if _, known := from[other]; !known && beside && !strings.Contains(name, ".") && is.Type == was.Type &&
			is.List == was.List && is.Refers == was.Refers {
			like = append(like, name)
		}
	}
	if len(like) != 1 {
		return ""
	}
	return fmt.Sprintf("; if %s is its new name, @stored(as: %q) there keeps the values", like[0], strings.TrimPrefix(path, parent))
}

// isNewBelow reports whether an object that contains the field is missing in the other catalogue, too. Then only the
// object is reported, not each of its fields.
func isNewBelow(path string, other map[string]FieldOutline) bool {
	return strings.Contains(path, ".") && !hasParent(path, other)
}

func hasParent(path string, fields map[string]FieldOutline) bool {
	i := strings.LastIndex(path, ".")
	if i < 0 {
		return true
	}
	_, ok := fields[path[:i]]
	return ok
}

// String returns the type for messages, such as "a list of String".
func (f FieldOutline) String() string {
	if f.List {
		return "a list of " + string(f.Type)
	}
	return string(f.Type)
}
