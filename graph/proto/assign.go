package proto

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sluicegw/sluice/backend/descriptor"
)

// The numbers of the fields that all resource messages have. RFD 153 defines these numbers.
const (
	numberKind = 1 + iota
	numberSubKind
	numberVersion
	numberMetadata
	firstPart // of the spec, in a message that has no numbers yet
)

// Add assigns a number to each field and enum value without one, and a protobuf name to each type without one. It
// renames fields and values whose names in the API were changed. It returns a line for each change.
func (n *Numbers) Add(kinds []*descriptor.Kind) (added []string) {
	missing, renamed := n.add(kinds)
	return append(missing, renamed...)
}

// add is like [Numbers.Add]. It returns separately what had no number, and what was only renamed.
func (n *Numbers) add(kinds []*descriptor.Kind) (missing, renamed []string) {
	a := assigner{numbers: n, top: map[string]bool{}, values: map[string]bool{}}
	types := typesOf(kinds)
	a.takeNames(kinds, types)
	for _, k := range kinds {
		a.resource(k)
	}
	for _, t := range types.objects {
		a.object(t)
	}
	for _, t := range types.enums {
		a.enum(t)
	}
	return a.missing, a.renamed
}

// assigner is the state of [Numbers.Add].
type assigner struct {
	numbers *Numbers
	// top has the names of the package's messages, services and enums. values has the names of enum values. All are
	// folded, see [folded].
	top, values      map[string]bool
	missing, renamed []string
}

// takeNames marks names as used: the names of the kinds and of their methods, and the names in the file.
func (a *assigner) takeNames(kinds []*descriptor.Kind, types *catalogueTypes) {
	for _, name := range sharedNames() {
		a.top[folded(name)] = true
	}
	for _, k := range kinds {
		for _, name := range namesOf(k) {
			a.top[folded(name)] = true
		}
	}
	for _, s := range a.numbers.messages {
		a.top[folded(s.as)] = true
	}
	for _, s := range a.numbers.enums {
		a.top[folded(s.as)] = true
		a.values[folded(zeroName(s.as))] = true
		for _, l := range s.lines {
			a.values[folded(l.name)] = true
		}
	}
	for _, t := range types.enums {
		a.values[folded(zeroName(t.name))] = true
	}
}

// resource assigns numbers to the spec and the status of a kind. They have numbers because a later version may have
// other types for them.
func (a *assigner) resource(k *descriptor.Kind) {
	s := a.numbers.messages[k.Name]
	if s == nil {
		s = &section{name: k.Name, as: k.Name}
		a.numbers.messages[k.Name] = s
	}
	a.fields(s, partsOf(k), firstPart)
}

// partsOf returns the spec and the status of a kind as fields.
func partsOf(k *descriptor.Kind) (out []*descriptor.Field) {
	for name, shape := range map[string]*descriptor.Shape{"spec": k.Spec, "status": k.Status} {
		if shape != nil {
			out = append(out, &descriptor.Field{Name: name, Type: descriptor.TypeObject, Shape: shape})
		}
	}
	slices.SortFunc(out, func(a, b *descriptor.Field) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// object assigns a name to an object type, and numbers to its fields.
func (a *assigner) object(t *objectType) {
	s := a.numbers.messages[t.name]
	if s == nil {
		s = &section{name: t.name, as: free(t.name, a.top)}
		a.top[folded(s.as)] = true
		a.numbers.messages[t.name] = s
		a.missing = append(a.missing, "message "+t.name)
	}
	a.fields(s, t.fields, 1)
}

// fields assigns names and numbers to the fields of a message. The first number is at least first.
func (a *assigner) fields(s *section, fields []*descriptor.Field, first int32) {
	used := map[int32]bool{}
	for _, f := range fields {
		if l := s.find(typeOf(f), f.Name); l != nil {
			used[l.number] = true
		}
	}
	for _, f := range fields {
		typ := typeOf(f)
		base := snake(f.InAPI())
		l := s.find(typ, f.Name)
		switch {
		case l == nil:
			number := s.next(first)
			name := free(base, s.taken(f.Name, number, used))
			s.lines = append(s.lines, line{number: number, typ: typ, name: name, stored: f.Name})
			used[number] = true
			a.missing = append(a.missing, fmt.Sprintf("%s.%s", s.name, f.InAPI()))
		case !isNumbered(l.name, base):
			l.name = free(base, s.taken(f.Name, l.number, used))
			a.renamed = append(a.renamed, fmt.Sprintf("%s.%s, which has another name", s.name, f.InAPI()))
		}
	}
}

// taken returns the folded names that must not be given to the field with the number. These are the names of all other
// lines. Unused lines count too, because their fields may be used again. The exception is an unused line with the same
// stored name: it is for the same field with an earlier type, so its name may be used. used has the numbers of the
// lines in use.
func (s *section) taken(stored string, number int32, used map[int32]bool) map[string]bool {
	out := map[string]bool{}
	for _, l := range s.lines {
		if l.number != number && (l.stored != stored || used[l.number]) {
			out[folded(l.name)] = true
		}
	}
	return out
}

// enum assigns a name to an enum, and numbers to its values.
func (a *assigner) enum(t *enumType) {
	s := a.numbers.enums[t.name]
	if s == nil {
		s = &section{name: t.name, as: free(t.name, a.top)}
		a.top[folded(s.as)] = true
		a.values[folded(zeroName(s.as))] = true
		a.numbers.enums[t.name] = s
		a.missing = append(a.missing, "enum "+t.name)
	}
	for _, v := range t.values {
		base := valuePrefix(s.as) + strings.ToUpper(snake(v.Name))
		l := s.find("", v.Stored)
		switch {
		case l == nil:
			name := free(base, a.values)
			a.values[folded(name)] = true
			s.lines = append(s.lines, line{number: s.next(1), name: name, stored: v.Stored})
			a.missing = append(a.missing, fmt.Sprintf("%s.%s", t.name, v.Name))
		case !isNumbered(l.name, base):
			l.name = free(base, a.values)
			a.values[folded(l.name)] = true
			a.renamed = append(a.renamed, fmt.Sprintf("%s.%s, which has another name", t.name, v.Name))
		}
	}
}

// valuePrefix returns the prefix for the names of an enum's values. Without it names would clash, because the values of
// all enums share a scope.
func valuePrefix(enum string) string { return strings.ToUpper(snake(enum)) + "_" }

// zeroName returns the name of the value 0 of an enum. It means that the field is not set.
func zeroName(enum string) string { return valuePrefix(enum) + "UNSPECIFIED" }

// MissingError means that parts of kinds have no numbers.
type MissingError struct {
	// Missing are the types, fields and values without numbers.
	Missing []string
}

// maxMissing is the maximum number of parts that the message of a MissingError names.
const maxMissing = 5

func (e *MissingError) Error() string {
	shown := e.Missing[:min(len(e.Missing), maxMissing)]
	text := strings.Join(shown, "; ")
	if more := len(e.Missing) - len(shown); more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return "there are no numbers for " + text
}
