// Package body parses the stored JSON of a resource in one pass, by the shape of its
// kind. It finds the position of each field's value, and checks types and required
// values. The values stay JSON.
package body

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/sluicegw/sluice/backend/descriptor"
)

// Shape is a compiled [descriptor.Shape]. The slot of a field is its index in Fields. A Shape is never changed and safe
// for concurrent use.
type Shape struct {
	// Name is the name of the type in the SDL, or the name of the kind for the root of a body.
	Name   string
	Fields []Field
	slots  map[string]int
	// required are the slots of the fields that must have a value.
	required []int
	// stored are the names in the order in which the service stores them. places has the index in stored for each slot.
	stored []storedName
	places []int
}

// storedName is the name of a field in the form in which a body has it, with quotes and colon.
type storedName struct {
	text string
	slot int
}

// Field is a compiled [descriptor.Field].
type Field struct {
	Name string
	Type descriptor.FieldType
	List bool
	// Shape is the shape of an object, or of the elements of a list of objects.
	Shape *Shape
	// Default is the effective value of an absent field, as JSON; nil if there is none.
	Default []byte
	// EnumNames maps the stored forms of an enum's values to their names.
	EnumNames map[string]string
	// object is set if the value must not be null. It is set for the parts of a body, such as the spec.
	object bool
}

// Slot returns the index of a field in the tables of the shape.
func (s *Shape) Slot(name string) (int, bool) {
	slot, ok := s.slots[name]
	return slot, ok
}

// Find follows a path of names joined by dots, which may lead through lists. It returns the slot of each step, and the
// field at the end.
func (s *Shape) Find(path string) ([]int, *Field, error) {
	var slots []int
	var f *Field
	for name := range strings.SplitSeq(path, ".") {
		if s == nil {
			return nil, nil, fmt.Errorf("path %s: nothing is below %s", path, f.Name)
		}
		slot, ok := s.slots[name]
		if !ok {
			return nil, nil, fmt.Errorf("path %s: %s has no field %s", path, s.Name, name)
		}
		f = &s.Fields[slot]
		slots, s = append(slots, slot), f.Shape
	}
	return slots, f, nil
}

// The slots in the root of a body.
const (
	SlotSubKind = iota
	SlotVersion
	SlotMetadata
	SlotSpec
	// SlotStatus exists only if the kind has a status.
	SlotStatus
)

// The slots in the metadata of a body.
const (
	SlotGeneration = iota
	SlotLabels
	SlotAnnotations
	SlotDescription
	SlotDeletionRequestedAt
	SlotFinalizers
	SlotWaits
	SlotUpdatedBy
)

// Compiler compiles the shapes of a catalogue. It compiles a shape that several kinds use only once. The zero value is
// ready to use. It is not safe for concurrent use.
type Compiler struct {
	metadata *Shape
	done     map[*descriptor.Shape]*Shape
}

// Kind compiles the shape of a kind's stored bodies.
func (c *Compiler) Kind(k *descriptor.Kind) *Shape {
	if c.metadata == nil {
		c.metadata = newShape("Metadata", []Field{
			SlotGeneration:          {Name: "generation", Type: descriptor.TypeSafeInt},
			SlotLabels:              {Name: "labels", Type: descriptor.TypeMap},
			SlotAnnotations:         {Name: "annotations", Type: descriptor.TypeMap},
			SlotDescription:         {Name: "description", Type: descriptor.TypeString},
			SlotDeletionRequestedAt: {Name: "deletionRequestedAt", Type: descriptor.TypeString},
			SlotFinalizers:          {Name: "finalizers", Type: descriptor.TypeString, List: true},
			SlotWaits:               {Name: "waits", Type: descriptor.TypeString, List: true},
			SlotUpdatedBy:           {Name: "updatedBy", Type: descriptor.TypeString},
		}, inOrder)
	}
	fields := []Field{
		SlotSubKind:  {Name: "subKind", Type: descriptor.TypeString},
		SlotVersion:  {Name: "version", Type: descriptor.TypeString},
		SlotMetadata: {Name: "metadata", Type: descriptor.TypeObject, Shape: c.metadata},
		SlotSpec:     {Name: "spec", Type: descriptor.TypeObject, Shape: c.Shape(k.Spec), object: true},
	}
	if k.Status != nil {
		fields = append(
			fields, Field{Name: "status", Type: descriptor.TypeObject, Shape: c.Shape(k.Status), object: true},
		)
	}
	s := newShape(k.Name, fields, inOrder)
	s.required = []int{SlotSpec}
	return s
}

// newShape returns a shape. before compares two fields by the order in which the service stores them.
func newShape(name string, fields []Field, before func(a, b storedName) int) *Shape {
	s := &Shape{Name: name, Fields: fields, slots: make(map[string]int, len(fields)), places: make([]int, len(fields))}
	for i := range fields {
		s.slots[fields[i].Name] = i
		s.stored = append(s.stored, storedName{`"` + fields[i].Name + `":`, i})
	}
	slices.SortStableFunc(s.stored, before)
	for place, name := range s.stored {
		s.places[name.slot] = place
	}
	return s
}

// inOrder compares fields by their slots, which have the order of declaration.
func inOrder(a, b storedName) int { return cmp.Compare(a.slot, b.slot) }

// Shape compiles a shape, including the shapes of its fields; nil for nil.
func (c *Compiler) Shape(s *descriptor.Shape) *Shape {
	if s == nil {
		return nil
	}
	if out := c.done[s]; out != nil {
		return out
	}
	if c.done == nil {
		c.done = map[*descriptor.Shape]*Shape{}
	}
	fields, required := make([]Field, len(s.Fields)), []int(nil)
	for i := range s.Fields {
		fields[i] = fieldOf(&s.Fields[i])
		if s.Fields[i].Required {
			required = append(required, i)
		}
	}
	// encoding/json writes maps in this order.
	out := newShape(s.Name, fields, func(a, b storedName) int { return cmp.Compare(a.text, b.text) })
	out.required = required
	c.done[s] = out
	for i := range s.Fields {
		out.Fields[i].Shape = c.Shape(s.Fields[i].Shape)
	}
	return out
}

// fieldOf compiles a field without the shape of its objects.
func fieldOf(f *descriptor.Field) Field {
	out := Field{Name: f.Name, Type: f.Type, List: f.List}
	if f.Default != nil {
		out.Default, _ = json.Marshal(f.Default) // a string, a number or a Boolean, which can always be encoded
	}
	if f.Enum != nil {
		out.EnumNames = make(map[string]string, len(f.Enum.Values))
		for _, v := range f.Enum.Values {
			out.EnumNames[v.Stored] = v.Name
		}
	}
	return out
}
