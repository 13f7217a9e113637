package kind

import (
	"context"

	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/failure"
)

// checkChange checks that a change of an object is allowed. It adds a violation for each immutable field whose
// effective value differs between next and old, if both have one, and for each rule with oldSelf that is not satisfied.
func (v *Violations) checkChange(ctx context.Context, s *Shape, at *failure.Path, next, old map[string]any) {
	before := len(v.found)
	inner := at.Below()
	for _, f := range s.ordered {
		inner.SetField(f.Field)
		now, ok1 := f.valueIn(next)
		was, ok2 := f.valueIn(old)
		if !ok1 || !ok2 || f.same(now, was, effective) {
			continue
		}
		if f.Immutable {
			v.Add(&inner, "immutable", nil, "cannot be changed to another value")
			continue
		}
		if f.shape == nil {
			continue
		}
		if m, ok := now.(map[string]any); ok {
			if o, ok := was.(map[string]any); ok {
				v.checkChange(ctx, f.shape, &inner, m, o)
			}
		}
		if f.ListType == descriptor.ListMap {
			v.checkChangedElements(ctx, f, &inner, now, was)
		}
	}
	if len(v.found) > before {
		return
	}
	for _, r := range s.rules {
		if r.transition {
			v.rule(ctx, r, at, map[string]any{"self": s.effective(next), "oldSelf": s.effective(old)})
		}
	}
}

// checkChangedElements calls checkChange for each pair of objects that have equal keys in two lists.
func (v *Violations) checkChangedElements(ctx context.Context, f *Field, at *failure.Path, now, was any) {
	next, _ := now.([]any)
	old, _ := was.([]any)
	before := f.elements(old)
	element := at.Below()
	for i, e := range next {
		m, ok := e.(map[string]any)
		if !ok {
			continue
		}
		element.SetElement(i)
		if b := before[f.identity(m)]; b != nil {
			if w, ok := b.last.(map[string]any); ok && !f.same(m, w, effective) {
				v.checkChange(ctx, f.shape, &element, m, w)
			}
		}
	}
}

// valueIn returns the effective value of the field in an object: the value itself, or else the default. It returns
// false if the field has neither.
func (f *Field) valueIn(tree map[string]any) (any, bool) {
	if value, ok := tree[f.Name]; ok {
		return value, true
	}
	return f.Default, f.Default != nil
}
