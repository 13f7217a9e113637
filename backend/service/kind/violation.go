package kind

import (
	"errors"
	"fmt"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/backend/service/failure"
)

// Violations collects the violations in an input. It keeps the first maxViolations and only counts the others.
type Violations struct {
	found   []failure.Violation
	dropped int
	// stopped is the reason why a rule could not be evaluated; nil if all rules could be evaluated.
	stopped error
	// spent is the budget of the operation, to which patterns and rules are charged.
	spent *budget.Budget
	// unchanged reports whether the value that is being validated equals the stored value. Such a value may violate
	// constraints and rules.
	unchanged bool
	// kept are stored values that are accepted although a new object could not have them.
	kept keptValues
	// hidden reports whether the value that is being validated is write-only. Messages then reveal nothing of the
	// value, not even its length or its keys.
	hidden bool
	// FieldNames selects the names of fields in messages. With ManifestNames, enum values have their stored form.
	FieldNames failure.FieldNames
}

// maxViolations is the maximum number of violations in an answer.
const maxViolations = 100

// full reports whether further violations are only counted.
func (v *Violations) full() bool { return len(v.found) >= maxViolations }

// Add adds the violation of a rule by the value at a path. limit is the limit of the rule, which is a number or a
// string; nil if the rule has none.
func (v *Violations) Add(at *failure.Path, rule string, limit any, format string, args ...any) {
	if v.full() {
		v.dropped++
		return
	}
	v.found = append(v.found, failure.Violation{
		Path:    at.Text(v.FieldNames),
		Rule:    rule,
		Limit:   limit,
		Message: fmt.Sprintf(format, args...),
	})
}

// Err returns VALIDATION_FAILED if there are violations. Otherwise it returns the reason why a rule could not be
// evaluated, or nil.
func (v *Violations) Err(key backend.Key) error {
	if len(v.found) == 0 {
		if v.stopped == nil {
			return nil
		}
		if over, ok := errors.AsType[*budget.ExceededError](v.stopped); ok {
			return over
		}
		return failure.Of(v.stopped, key).At(key)
	}
	e := &failure.Error{
		Code:       failure.CodeValidationFailed,
		Violations: v.found,
		Message:    v.found[0].Path + ": " + v.found[0].Message,
	}
	if n := len(v.found) + v.dropped; n > 1 {
		e.Message = fmt.Sprintf("%d values are not acceptable; the first: %s", n, e.Message)
	}
	return e.At(key)
}

// charge takes steps from the budget of the operation. It returns false if the budget does not suffice.
func (v *Violations) charge(steps int) bool {
	err := v.spent.Spend(budget.Steps, steps)
	if err != nil {
		v.stop(err)
	}
	return err == nil
}

// Clone returns an independent copy of the violations, with the same FieldNames. The copy begins with no budget and no
// stored value.
func (v *Violations) Clone() Violations {
	return Violations{
		found:      v.found[:len(v.found):len(v.found)],
		dropped:    v.dropped,
		stopped:    v.stopped,
		FieldNames: v.FieldNames,
	}
}
