package body

import (
	"slices"

	"github.com/sluicegw/sluice/backend/descriptor"
)

// Viewer creates shapes for showing bodies in the form of another catalogue: with the type names, enum names and
// defaults of that catalogue. A body that was read with the original shape can be used with the other one, because both
// have the same slots. The zero value is ready to use. It is not safe for concurrent use.
type Viewer struct {
	done map[viewKey]*Shape
}

// viewKey is a shape, together with its description in the other catalogue.
type viewKey struct {
	shape *Shape
	of    *descriptor.Shape
}

// Kind returns the shape of a kind's bodies for another descriptor of the kind. Fields that the
// descriptor lacks, or has with another type, stay unchanged.
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
