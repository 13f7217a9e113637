package kinds

import (
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/sluicegw/sluice/backend/descriptor"
)

// The name of the status field with the conditions, and the name of its type in the API.
const (
	conditions = "conditions"
	condition  = "Condition"
)

// The maximum numbers of characters in the type, the reason and the message of a condition.
const (
	maxConditionType    = 316
	maxConditionReason  = 1024
	maxConditionMessage = 32768
)

// conditionType sets the type of a field to Condition, or reports why it cannot have that type.
func (l *loader) conditionType(out *descriptor.Field, in *typed) {
	if in.part != inStatus || len(in.above) != 1 || out.Name != conditions {
		l.report(in.at, "%s: %s is the type of the field %s of a status, and of no other", in.where, condition, conditions)
		return
	}
	def := l.api.Definitions.ForName(condition)
	l.fieldCount += len(def.Fields)
	out.Type, out.Shape = descriptor.TypeObject, conditionShape(def)
}

// conditionShape returns the shape of a condition. Type and status are required.
func conditionShape(def *ast.Definition) *descriptor.Shape {
	most := map[string]int{"type": maxConditionType, "reason": maxConditionReason, "message": maxConditionMessage}
	s := &descriptor.Shape{Name: def.Name}
	for _, f := range def.Fields {
		field := descriptor.Field{
			Name:        f.Name,
			Description: f.Description,
			Type:        descriptor.FieldType(f.Type.NamedType),
			Required:    f.Type.NonNull,
		}
		if n, bounded := most[f.Name]; bounded {
			field.Constraint.MaxLength = &n
		}
		s.Fields = append(s.Fields, field)
	}
	return s
}
