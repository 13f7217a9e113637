package service_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/memory"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/graph/kinds/kindstest"
)

// sample is a value that a field accepts.
func sample(f *descriptor.Field) any {
	one := sampleOne(f)
	if !f.List {
		return one
	}
	list := []any{one}
	if n := f.Constraint.MinItems; n != nil && *n == 0 {
		return []any{}
	}
	return list
}

func sampleOne(f *descriptor.Field) any {
	c := f.Constraint
	switch f.Type {
	case descriptor.TypeObject:
		return minimal(f.Shape)
	case descriptor.TypeBoolean:
		return true
	case descriptor.TypeEnum:
		return f.Enum.Values[0].Stored
	case descriptor.TypeMap:
		return map[string]any{"k": "v"}
	case descriptor.TypeInt, descriptor.TypeInt64, descriptor.TypeFloat:
		if c.Min != nil {
			return *c.Min
		}
		return 1
	}
	switch {
	case len(c.In) > 0:
		return c.In[0]
	case c.Format == descriptor.FormatUUID:
		return "123e4567-e89b-12d3-a456-426614174000"
	case c.Format == descriptor.FormatCIDR:
		return "10.0.0.0/24"
	case c.Format == descriptor.FormatDuration:
		return "1h"
	case c.Format == descriptor.FormatDateTime:
		return "2026-01-01T00:00:00Z"
	}
	if c.MinLength != nil && *c.MinLength > 1 {
		return strings.Repeat("a", *c.MinLength)
	}
	return "a"
}

// minimal is an object with what its shape requires, and one field more where
// it must have one.
func minimal(s *descriptor.Shape) map[string]any {
	out := map[string]any{}
	for i := range s.Fields {
		if f := &s.Fields[i]; f.Required {
			out[f.Name] = sample(f)
		}
	}
	for i := range s.Fields {
		if len(out) >= s.MinProperties {
			break
		}
		out[s.Fields[i].Name] = sample(&s.Fields[i])
	}
	return out
}

// breach is a value that breaks one rule of a field.
type breach struct {
	rule  string
	value any
	// at is where below the field the violation lies.
	at string
}

// breaches returns one refused value for each constraint of a field.
func breaches(f *descriptor.Field) []breach {
	c, at := f.Constraint, ""
	wrap := func(v any) any { return v }
	if f.List {
		at, wrap = "[0]", func(v any) any { return []any{v} }
	}
	var out []breach
	add := func(rule string, v any) { out = append(out, breach{rule, wrap(v), at}) }
	if c.MinLength != nil && *c.MinLength > 0 {
		add("minLength", strings.Repeat("a", *c.MinLength-1))
	}
	if c.MaxLength != nil {
		add("maxLength", strings.Repeat("a", *c.MaxLength+1))
	}
	if c.Pattern != "" {
		for _, bad := range []string{",", "!", "a b", "-"} {
			if !regexp.MustCompile(c.Pattern).MatchString(bad) {
				add("pattern", bad)
				break
			}
		}
	}
	if c.Format != "" {
		add("format", "?")
	}
	if len(c.In) > 0 {
		add("in", "?")
	}
	if c.Min != nil {
		add("min", *c.Min-1)
	}
	if c.Max != nil {
		add("max", *c.Max+1)
	}
	if f.Type == descriptor.TypeEnum {
		add("enum", "?")
	}
	if f.Type != descriptor.TypeObject {
		add("type", map[string]any{"no": []any{}})
	}
	if f.Type == descriptor.TypeEnum {
		out = out[:len(out)-1] // a value of another type is one that the enum does not have
	}
	if f.List && c.MaxItems != nil {
		many := make([]any, *c.MaxItems+1)
		for i := range many {
			many[i] = sampleOne(f)
		}
		out = append(out, breach{"maxItems", many, ""})
	}
	if f.ListType == descriptor.ListSet || f.ListType == descriptor.ListMap || c.Unique {
		out = append(out, breach{"unique", []any{sampleOne(f), sampleOne(f)}, "[1]"})
	}
	if f.Required {
		out = append(out, breach{"required", nil, ""})
	}
	if f.Shape != nil && f.Shape.MinProperties > 0 && len(minimal(f.Shape)) == f.Shape.MinProperties {
		out = append(out, breach{"minProperties", wrap(map[string]any{}), at})
	}
	return out
}

// prober tries values in a spec that is otherwise acceptable.
type prober struct {
	t      *testing.T
	svc    *service.Service
	kind   *descriptor.Kind
	tested map[string]int
	sent   int
}

// send returns the violations of a spec, as "path rule".
func (p *prober) send(spec map[string]any) map[string]bool {
	p.t.Helper()
	p.sent++
	_, err := p.svc.Create(context.Background(), anon, service.CreateRequest{Identity: kind.Identity{Kind: p.kind.Name, Name: fmt.Sprintf("n%d", p.sent)}, Spec: spec})
	out := map[string]bool{}
	var e *failure.Error
	if errors.As(err, &e) {
		if e.Code != failure.CodeValidationFailed {
			p.t.Fatalf("%v", err)
		}
		for _, v := range e.Violations {
			if v.Message == "" || v.Path == "" {
				p.t.Errorf("violation %+v says too little", v)
			}
			out[v.Path+" "+v.Rule] = true
		}
	}
	return out
}

// field tries every constraint of a field, then of those below it. build puts
// a value of the field into a whole spec.
func (p *prober) field(path string, f *descriptor.Field, build func(any) map[string]any) {
	if bad := p.send(build(sample(f))); p.touches(bad, path) {
		p.t.Errorf("%s: %v is refused: %v", path, sample(f), bad)
	}
	for _, b := range breaches(f) {
		p.tested[b.rule]++
		if bad := p.send(build(b.value)); !bad[path+b.at+" "+b.rule] {
			p.t.Errorf("%s: %.60v breaks %s and is not refused for it: %v", path, text(b.value), b.rule, bad)
		}
	}
	if f.Shape == nil {
		return
	}
	at := path
	if f.List {
		at += "[0]"
	}
	for i := range f.Shape.Fields {
		inner := &f.Shape.Fields[i]
		p.field(at+"."+inner.Name, inner, func(v any) map[string]any {
			object := minimal(f.Shape)
			if f.Shape.MaxProperties == 1 {
				object = map[string]any{}
			}
			if object[inner.Name] = v; v == nil {
				delete(object, inner.Name)
			}
			if f.List {
				return build([]any{object})
			}
			return build(object)
		})
	}
}

// touches says whether there is a violation at a path or below it, cross-field rules aside.
func (p *prober) touches(bad map[string]bool, path string) bool {
	for v := range bad {
		if strings.HasPrefix(v, path) && !strings.HasSuffix(v, " rule") && !strings.HasSuffix(v, "Properties") {
			return true
		}
	}
	return false
}

func TestEveryConstraintOfEveryFieldOfEveryKindAcceptsAndRefuses(t *testing.T) {
	store, err := memory.Open(memory.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	kinds := kindstest.Kinds(t)
	svc, err := service.New(service.Config{Kinds: kinds, Store: store})
	if err != nil {
		t.Fatal(err)
	}
	tested := map[string]int{}
	for i := range kinds {
		k := &kinds[i]
		t.Run(k.Name, func(t *testing.T) {
			p := &prober{t: t, svc: svc, kind: k, tested: tested}
			base := minimal(k.Spec)
			for j := range k.Spec.Fields {
				f := &k.Spec.Fields[j]
				p.field("spec."+f.Name, f, func(v any) map[string]any {
					raw, _ := json.Marshal(base)
					var spec map[string]any
					_ = json.Unmarshal(raw, &spec)
					if spec[f.Name] = v; v == nil {
						delete(spec, f.Name)
					}
					return spec
				})
			}
		})
	}
	for _, rule := range []string{"minLength", "maxLength", "pattern", "format", "min", "max", "enum", "type", "maxItems", "unique", "required"} {
		if tested[rule] == 0 {
			t.Errorf("no field has rule %s: the test looks at the wrong thing", rule)
		}
	}
}
