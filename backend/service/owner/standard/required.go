package standard

import "google.golang.org/protobuf/reflect/protoreflect"

// Only proto2 has required fields. A message without one of them can neither be sent nor read.

// hasRequired reports whether a message, or a message within it, has required fields. seen has the messages that were
// already checked.
func hasRequired(m protoreflect.MessageDescriptor, seen map[protoreflect.FullName]bool) bool {
	if seen[m.FullName()] {
		return false
	}
	seen[m.FullName()] = true
	for i := range m.Fields().Len() {
		f := m.Fields().Get(i)
		if f.Cardinality() == protoreflect.Required {
			return true
		}
		if f.Message() != nil && hasRequired(f.Message(), seen) {
			return true
		}
	}
	return false
}

// setRequired gives required fields of m without a value their defaults. It does the same in the messages that m
// contains. depth is the depth of m.
func setRequired(m protoreflect.Message, depth int) {
	if depth > maxDepth {
		return
	}
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		switch {
		case f.Cardinality() != protoreflect.Required || m.Has(f):
		case f.Message() != nil:
			m.Mutable(f)
		default:
			m.Set(f, f.Default())
		}
	}
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.IsMap() && f.MapValue().Message() != nil:
			v.Map().Range(func(_ protoreflect.MapKey, value protoreflect.Value) bool {
				setRequired(value.Message(), depth+1)
				return true
			})
		case f.IsMap() || f.Message() == nil:
		case f.IsList():
			list := v.List()
			for i := range list.Len() {
				setRequired(list.Get(i).Message(), depth+1)
			}
		default:
			setRequired(v.Message(), depth+1)
		}
		return true
	})
}
