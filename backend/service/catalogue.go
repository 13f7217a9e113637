package service

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync/atomic"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/ext"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/body"
)

// kind is a descriptor with what is compiled from it.
type kind struct {
	*backend.Kind
	spec, status *shape
	// body is the shape of stored bodies.
	body    *body.Shape
	indexes []index
	// placed are the names of the fields of the spec that stand at the top of a
	// manifest, by their keys there.
	placed map[string]string
	// fingerprint of the definition that makes index rows and references.
	fingerprint string
	// stale is a hint, see [Service.indexed].
	stale atomic.Bool
	// mean is about how large its resources are, in bytes, see [size]; 0 if none was read.
	mean atomic.Int64
}

// shape is a compiled [backend.Shape].
type shape struct {
	*backend.Shape
	fields map[string]*field
	rules  []rule
	// hides says that a field is write-only, or one of an object below.
	hides bool
}

type field struct {
	*backend.Field
	pattern, keyPattern *regexp.Regexp
	shape               *shape
}

type rule struct {
	backend.Rule
	program cel.Program
	// transition: the rule mentions oldSelf.
	transition bool
}

// catalogue finds kinds by name.
type catalogue struct {
	ordered []*backend.Kind
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

func newCatalogue(kinds []backend.Kind) (catalogue, error) {
	env, err := NewRuleEnv()
	if err != nil {
		return catalogue{}, fmt.Errorf("rules: %w", err)
	}
	c := catalogue{byName: map[string]*kind{}}
	var bodies body.Compiler
	var errs []error
	for i := range kinds {
		k := &kind{Kind: &kinds[i], body: bodies.Kind(&kinds[i])}
		comp := compiler{env: env, done: map[*backend.Shape]*shape{}}
		k.spec, k.placed = comp.shape(k.Spec), placedOf(k.Spec)
		k.status = comp.shape(k.Status)
		if comp.err != nil {
			errs = append(errs, fmt.Errorf("kind %s: %w", k.Name, comp.err))
		}
		if k.indexes, err = k.compileIndexes(); err != nil {
			errs = append(errs, fmt.Errorf("kind %s: %w", k.Name, err))
		}
		k.fingerprint = fingerprint(k.indexes, k.References)
		c.ordered = append(c.ordered, k.Kind)
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
	done map[*backend.Shape]*shape
	err  error
}

func (c *compiler) shape(s *backend.Shape) *shape {
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

// Body is the shape of the stored bodies of a kind, nil if the kind is not known.
func (s *Service) Body(kind string) *body.Shape {
	if k := s.kinds.byName[strings.ToLower(kind)]; k != nil {
		return k.body
	}
	return nil
}

// Kinds is the catalogue, in its order.
func (s *Service) Kinds() []*backend.Kind { return s.kinds.ordered }

// kind finds a kind by its name, singular or plural, in any case.
func (s *Service) kind(name string) (*kind, error) {
	if k := s.kinds.byName[strings.ToLower(name)]; k != nil {
		return k, nil
	}
	known := make([]string, len(s.kinds.ordered))
	for i, k := range s.kinds.ordered {
		known[i] = k.Name
	}
	return nil, &Error{Code: CodeBadUserInput, Path: "kind", Kind: shorten(name), Message: fmt.Sprintf("kind %q is not known; known kinds: %s", shorten(name), strings.Join(known, ", "))}
}

// shorten bounds what an error repeats of a caller's input.
func shorten(s string) string {
	if r := []rune(s); len(r) > 64 {
		return string(r[:64]) + "…"
	}
	return s
}
