package service

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/ext"

	"github.com/sluicegw/sluice/backend/body"
	"github.com/sluicegw/sluice/backend/descriptor"
)

// kind is a descriptor with what is compiled from it.
type kind struct {
	*descriptor.Kind
	spec, status *shape
	// body is the shape of stored bodies.
	body *body.Shape
	// rows says which index rows and references its resources have.
	rows *definitionOfRows
	// placed are the names of the fields of the spec that stand at the top of a
	// manifest, by their keys there.
	placed map[string]string
}

// shape is a compiled [descriptor.Shape].
type shape struct {
	*descriptor.Shape
	fields map[string]*field
	rules  []rule
	// hides says that a field is write-only, or one of an object below.
	hides bool
}

type field struct {
	*descriptor.Field
	pattern, keyPattern *regexp.Regexp
	shape               *shape
}

type rule struct {
	descriptor.Rule
	program cel.Program
	// transition: the rule mentions oldSelf.
	transition bool
}

// catalogue finds kinds by name.
type catalogue struct {
	ordered []*kind
	byName  map[string]*kind
}

// oldSelf recognises a rule about a change.
var oldSelf = regexp.MustCompile(`\boldSelf\b`)

// ruleCost bounds the evaluation of one rule, in CEL's cost units.
const ruleCost = 1_000_000

// NewRuleEnv is the CEL environment of rules: the object as self, what is
// stored as oldSelf, the standard library and the string extensions.
func NewRuleEnv() (*cel.Env, error) {
	return cel.NewEnv(cel.Variable("self", cel.DynType), cel.Variable("oldSelf", cel.DynType), ext.Strings())
}

// compile compiles the rules and patterns of kinds.
func compile(kinds []descriptor.Kind) (catalogue, error) {
	env, err := NewRuleEnv()
	if err != nil {
		return catalogue{}, fmt.Errorf("rules: %w", err)
	}
	c := catalogue{byName: map[string]*kind{}}
	var bodies body.Compiler
	var errs []error
	for i := range kinds {
		k := &kind{Kind: &kinds[i], body: bodies.Kind(&kinds[i])}
		comp := compiler{env: env, done: map[*descriptor.Shape]*shape{}}
		k.spec, k.placed = comp.shape(k.Spec), placedOf(k.Spec)
		k.status = comp.shape(k.Status)
		if comp.err != nil {
			errs = append(errs, fmt.Errorf("kind %s: %w", k.Name, comp.err))
		}
		if k.rows, err = compileRows(k.Kind); err != nil {
			errs = append(errs, fmt.Errorf("kind %s: %w", k.Name, err))
		}
		c.ordered = append(c.ordered, k)
		for _, name := range []string{k.Name, k.Singular, k.Plural} {
			if o := c.byName[strings.ToLower(name)]; o != nil && o.Name != k.Name {
				errs = append(errs, fmt.Errorf("kind %s: name %q belongs to kind %s", k.Name, name, o.Name))
			}
			c.byName[strings.ToLower(name)] = k
		}
	}
	return c, errors.Join(errs...)
}

type compiler struct {
	env  *cel.Env
	done map[*descriptor.Shape]*shape
	err  error
}

func (c *compiler) shape(s *descriptor.Shape) *shape {
	if s == nil {
		return nil
	}
	if out := c.done[s]; out != nil {
		return out
	}
	out := &shape{Shape: s, fields: make(map[string]*field, len(s.Fields))}
	c.done[s] = out
	for i := range s.Fields {
		f := &field{Field: &s.Fields[i]}
		if p := f.Constraint.Pattern; p != "" {
			var err error
			if f.pattern, err = regexp.Compile(p); err != nil {
				c.fail(fmt.Errorf("%s.%s: pattern: %w", s.Name, f.Name, err))
			}
		}
		if p := f.Constraint.KeyPattern; p != "" {
			var err error
			if f.keyPattern, err = regexp.Compile(p); err != nil {
				c.fail(fmt.Errorf("%s.%s: key pattern: %w", s.Name, f.Name, err))
			}
		}
		f.shape = c.shape(f.Shape)
		out.fields[f.Name] = f
		out.hides = out.hides || f.WriteOnly || f.shape != nil && f.shape.hides
	}
	for _, r := range s.Rules {
		ast, iss := c.env.Compile(r.CEL)
		if iss.Err() != nil {
			c.fail(fmt.Errorf("%s: rule %q: %w", s.Name, r.CEL, iss.Err()))
			continue
		}
		p, err := c.env.Program(ast, cel.CostLimit(ruleCost), cel.InterruptCheckFrequency(1000))
		if err != nil {
			c.fail(fmt.Errorf("%s: rule %q: %w", s.Name, r.CEL, err))
			continue
		}
		out.rules = append(out.rules, rule{Rule: r, program: p, transition: oldSelf.MatchString(r.CEL)})
	}
	return out
}

func (c *compiler) fail(err error) { c.err = errors.Join(c.err, err) }

// find finds a kind by its name, singular or plural, in any case.
func (c catalogue) find(name string) (*kind, error) {
	if k := c.byName[strings.ToLower(name)]; k != nil {
		return k, nil
	}
	known := make([]string, len(c.ordered))
	for i, k := range c.ordered {
		known[i] = k.Name
	}
	return nil, &Error{Code: CodeBadUserInput, Path: "kind", Kind: shorten(name), Message: fmt.Sprintf("kind %q is not known; known kinds: %s", shorten(name), strings.Join(known, ", "))}
}

// body is the shape of the stored bodies of a kind, nil if the kind is not known.
func (c catalogue) body(kind string) *body.Shape {
	if k := c.byName[strings.ToLower(kind)]; k != nil {
		return k.body
	}
	return nil
}

// placedOf are the names of such fields by their keys at the top.
func placedOf(spec *descriptor.Shape) map[string]string {
	if spec == nil {
		return nil
	}
	var out map[string]string
	for i := range spec.Fields {
		if f := &spec.Fields[i]; f.ManifestAt != "" {
			if out == nil {
				out = map[string]string{}
			}
			out[f.ManifestAt] = f.Name
		}
	}
	return out
}

// all are the kinds, in the order of the catalogue.
func (c catalogue) all() []*kind { return c.ordered }

// descriptors are those of all kinds, in the order of the catalogue.
func (c catalogue) descriptors() []*descriptor.Kind {
	out := make([]*descriptor.Kind, len(c.ordered))
	for i, k := range c.ordered {
		out[i] = k.Kind
	}
	return out
}
