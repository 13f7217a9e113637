package server

import (
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/validator"

	"github.com/sluicegw/sluice/graph/coercion"
)

// listEnumValues returns a validation rule whose errors about literals of an enum name values of the enum.
func listEnumValues(rule validator.RuleFunc) validator.RuleFunc {
	return func(observers *validator.Events, addError validator.AddErrFunc) {
		var value *ast.Value
		observers.OnValue(func(_ *validator.Walker, v *ast.Value) { value = v })
		rule(observers, func(options ...validator.ErrorOption) {
			if value.Definition.Kind == ast.Enum {
				options = append(options, nameValues(value))
			}
			addError(options...)
		})
	}
}

// nameValues adds values of an enum to gqlparser's error about a literal. The error about a string is replaced, since
// it ends with the string, which may be long.
func nameValues(v *ast.Value) validator.ErrorOption {
	return func(err *gqlerror.Error) {
		if v.Kind == ast.StringValue || v.Kind == ast.BlockValue {
			err.Message = coercion.RefuseEnum(v.Definition, v.Raw).Error() + "; enum values are written without quotes"
			return
		}
		err.Message += " Its values are " + coercion.EnumValues(v.Definition) + "."
	}
}
