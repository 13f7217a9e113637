package body

import (
	"slices"

	"github.com/sluicegw/sluice/backend/descriptor"
)

// Viewer makes the shapes of bodies as another catalogue describes them: with its names of types and of values of
// enums, and its defaults. Fields have the slots, and bodies are readable, as in the shape of which one is a view. So
// a body that was read by either can be used with the other. The zero value is ready; it is not safe for concurrent
// use.
type Viewer struct {
	done map[viewKey]*Shape
}

// viewKey is a shape, and what the other catalogue says of it.
type viewKey struct {
	shape *Shape
	of    *descriptor.Shape
}

// Kind returns the shape of a kind's bodies as another descriptor of the kind describes it. Fields that the descriptor
// does not have, or has as another type, stay as they are.
func (v *Viewer) Kind(s *Shape, k *descriptor.Kind) *Shape {
	out := *s
	out.Name = k.Name
	out.Fields = slices.Clone(s.Fields)
	out.Fields[SlotSpec].Shape = v.shape(s.Fields[SlotSpec].Shape, k.Spec)
	if len(out.Fields) > SlotStatus {
		out.Fields[SlotStatus].Shape = v.shape(s.Fields[SlotStatus].Shape, k.Status)
	}
	return &out
}

func (v *Viewer) shape(s *Shape, of *descriptor.Shape) *Shape {
	if s == nil || of == nil {
		return s
	}
	key := viewKey{s, of}
	if out := v.done[key]; out != nil {
		return out
	}
	if v.done == nil {
		v.done = map[viewKey]*Shape{}
	}
	out := *s
	out.Name = of.Name
	out.Fields = slices.Clone(s.Fields)
	v.done[key] = &out
	for i := range of.Fields {
		slot, ok := s.slots[of.Fields[i].Name]
		if !ok || s.Fields[slot].Type != of.Fields[i].Type || s.Fields[slot].List != of.Fields[i].List {
			continue
		}
		field := fieldOf(&of.Fields[i])
		field.Shape = v.shape(s.Fields[slot].Shape, of.Fields[i].Shape)
		field.object = s.Fields[slot].object
		out.Fields[slot] = field
	}
	return &out
}
