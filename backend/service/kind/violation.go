package kind

import (
	"errors"
	"fmt"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/backend/service/failure"
)

// Violations collects the violations of an input, up to a bound.
type Violations struct {
	found   []failure.Violation
	dropped int
	// stopped is the reason why a rule was not evaluated to its end; nil if all were.
	stopped error
	// spent is the budget of the operation, which is charged for patterns and rules.
	spent *budget.Budget
	// unchanged reports whether the value being checked equals the stored one: it may then break
	// constraints and rules.
	unchanged bool
	// kept are values that are accepted because they are stored already.
	kept keptValues
	// hidden reports whether the value being checked is write-only: messages then show no part of
	// it, not even its length or a map's keys.
	hidden bool
	// FieldNames selects the names by which the caller knows fields. In manifests, enum values have
	// their stored form.
	FieldNames failure.FieldNames
}

// maxViolations is the most violations that an answer lists.
const maxViolations = 100

// full reports whether further violations are only counted.
func (v *Violations) full() bool { return len(v.found) >= maxViolations }

// Add notes that the value at a path breaks a rule. limit is the rule's limit: a number, a text, or nil if it
// has none.
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

// Err returns VALIDATION_FAILED if there are violations, else the reason why a rule was not
// evaluated to its end, else nil.
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

// charge takes steps from the budget of the operation. It returns false if the budget
// has fewer.
func (v *Violations) charge(steps int) bool {
	err := v.spent.Spend(budget.Steps, steps)
	if err != nil {
		v.stop(err)
	}
	return err == nil
}

// Clone returns an independent copy.
func (v *Violations) Clone() Violations {
	return Violations{
		found:      v.found[:len(v.found):len(v.found)],
		dropped:    v.dropped,
		stopped:    v.stopped,
		FieldNames: v.FieldNames,
	}
}
