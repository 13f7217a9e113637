package proto

import (
	"github.com/sluicegw/sluice/backend/descriptor"
)

// catalogueTypes has the object types and enums of kinds, without duplicates, in the order in which they were found.
type catalogueTypes struct {
	objects []*objectType
	enums   []*enumType
	// byName maps the names of object types to them. enumNamed does the same for enums.
	byName    map[string]*objectType
	enumNamed map[string]*enumType
}

// objectType is an object type of the SDL. If the type occurs with different fields, for example in a spec and in a
// status, it has all of them.
type objectType struct {
	name   string
	fields []*descriptor.Field
	seen   map[string]bool // by stored name and type
}

// enumType is an enum of the SDL.
type enumType struct {
	name   string
	values []descriptor.EnumValue
	seen   map[string]bool // by stored form
}

// typesOf finds the types of kinds.
func typesOf(kinds []*descriptor.Kind) *catalogueTypes {
	out := &catalogueTypes{byName: map[string]*objectType{}, enumNamed: map[string]*enumType{}}
	done := map[*descriptor.Shape]bool{}
	for _, k := range kinds {
		out.add(k.Spec, done)
		out.add(k.Status, done)
	}
	return out
}

// add adds the type of a shape, and the types of its fields. done has the shapes that were already added.
func (c *catalogueTypes) add(s *descriptor.Shape, done map[*descriptor.Shape]bool) {
	if s == nil || done[s] {
		return
	}
	done[s] = true
	t := c.byName[s.Name]
	if t == nil {
		t = &objectType{name: s.Name, seen: map[string]bool{}}
		c.byName[s.Name] = t
		c.objects = append(c.objects, t)
	}
	for i := range s.Fields {
		f := &s.Fields[i]
		key := typeOf(f) + " " + f.Name
		if !t.seen[key] {
			t.seen[key] = true
			t.fields = append(t.fields, f)
		}
		if f.Enum != nil {
			c.addEnum(f.Enum)
		}
		c.add(f.Shape, done)
	}
}

func (c *catalogueTypes) addEnum(e *descriptor.Enum) {
	t := c.enumNamed[e.Name]
	if t == nil {
		t = &enumType{name: e.Name, seen: map[string]bool{}}
		c.enumNamed[e.Name] = t
		c.enums = append(c.enums, t)
	}
	for _, v := range e.Values {
		if !t.seen[v.Stored] {
			t.seen[v.Stored] = true
			t.values = append(t.values, v)
		}
	}
}

// typeOf returns the type of a field in the form of [Numbers].
func typeOf(f *descriptor.Field) string {
	var out string
	switch f.Type {
	case descriptor.TypeInt:
		out = "int32"
	case descriptor.TypeSafeInt:
		out = "int64"
	case descriptor.TypeFloat:
		out = "double"
	case descriptor.TypeBoolean:
		out = "bool"
	case descriptor.TypeTime:
		out = "time"
	case descriptor.TypeMap:
		out = "map"
	case descriptor.TypeEnum:
		out = "enum:" + f.Enum.Name
	case descriptor.TypeObject:
		out = "message:" + f.Shape.Name
	default:
		out = "string"
	}
	if f.List {
		return "[]" + out
	}
	return out
}
