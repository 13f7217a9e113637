// Package kind compiles the kinds of a catalogue. A compiled kind validates and compares resources, and extracts index
// rows and references. It also knows which fields of a stored resource its version of the API has.
package kind

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/ext"

	"github.com/sluicegw/sluice/backend/body"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/failure"
)

// Kind is a compiled [descriptor.Kind].
type Kind struct {
	*descriptor.Kind
	Spec, Status *Shape
	// Body is the shape of stored bodies; see package body.
	Body *body.Shape
	// Rows extracts the index rows and references of the kind's resources.
	Rows *Rows
	// Placed has the spec fields that stand at the top level of the kind's manifests. It maps the key there to the name
	// of the field.
	Placed map[string]string
	// Conditions is the shape of a condition in the status; nil if the status has no conditions.
	Conditions *descriptor.Shape
	// Declared is the fingerprint of the kind's declared references. It is compared with [backend.Envelope.Declared].
	// It is empty for a kind without references.
	Declared string
	// Referred reports whether any kind declares references to this kind.
	Referred bool
	// whole is the kind of which this kind is a view; nil if it is not a view.
	whole *Kind
	// nextValidator is the kind that must also accept a write after this kind has accepted it; nil if there is none.
	nextValidator *Kind
}

// Shape is a compiled [descriptor.Shape].
type Shape struct {
	*descriptor.Shape
	fields  map[string]*Field
	ordered []*Field
	// bounded are the fields that have a maximum, or whose nested objects have one.
	bounded []*Field
	rules   []rule
	// Hides reports whether the object or a nested object has a write-only field.
	Hides bool
	// merges reports whether the object or a nested object has a field that is merged into another.
	merges bool
	// respelled reports whether the object or a nested object has a field whose values can be written in several ways;
	// see [Shape.Canonical].
	respelled bool
	// keeps reports whether the object or a nested object has a field that can have [keptValues].
	keeps bool
	// deprecates reports whether the object or a nested object has a deprecated field.
	deprecates bool
}

// pattern is a compiled pattern. The zero value matches every text.
type pattern struct {
	*regexp.Regexp
	size int // instructions
}

// pattern compiles a pattern. where names the field of the pattern in errors. For an empty text the result is the zero
// pattern.
func (c *compiler) pattern(where, text string) (out pattern) {
	if text == "" {
		return out
	}
	var err error
	if out.size, err = descriptor.PatternSize(text); err == nil {
		out.Regexp, err = regexp.Compile(text)
	}
	if err != nil {
		c.fail(fmt.Errorf("%s: %w", where, err))
	}
	return out
}

// Field is a compiled [descriptor.Field].
type Field struct {
	*descriptor.Field
	pattern, keyPattern pattern
	shape               *Shape
	// escaped is the name of the field as rules write it; see escapeCEL.
	escaped string
	// of is the name of the shape that declares the field.
	of string
}

type rule struct {
	descriptor.Rule
	program cel.Program
	// transition reports whether the rule mentions oldSelf.
	transition bool
	// inputs are the fields that the rule reads. If there are none, the rule reads the whole object.
	inputs []input
	// stored is the message of the rule with enum values in their stored form.
	stored string
}

// Catalogue finds kinds by name.
type Catalogue struct {
	ordered []*Kind
	// byName maps names to kinds: the exact name of each kind, and all its names in lower case.
	byName map[string]*Kind
}

// oldSelf matches an expression that mentions oldSelf.
var oldSelf = regexp.MustCompile(`\boldSelf\b`)

// NewRuleEnv returns the CEL environment of rules. The variable self is the object, and oldSelf the stored object. The
// standard library and the string extensions are available.
func NewRuleEnv() (*cel.Env, error) {
	return cel.NewEnv(append(
		[]cel.EnvOption{cel.Variable("self", cel.DynType), cel.Variable("oldSelf", cel.DynType), ext.Strings()},
		boundedTexts()...,
	)...)
}

// Compile compiles kinds with their rules and patterns. The error joins all problems.
func Compile(kinds []descriptor.Kind) (Catalogue, error) {
	env, err := NewRuleEnv()
	if err != nil {
		return Catalogue{}, fmt.Errorf("rules: %w", err)
	}
	c := Catalogue{byName: map[string]*Kind{}}
	var bodies body.Compiler
	var errs []error
	for i := range kinds {
		k := &Kind{Kind: &kinds[i], Body: bodies.Kind(&kinds[i])}
		comp := compiler{env: env, costs: costs{}, done: map[*descriptor.Shape]*Shape{}}
		k.Spec, k.Placed = comp.shape(k.Kind.Spec), placedOf(k.Kind.Spec)
		k.Status = comp.shape(k.Kind.Status)
		if comp.err != nil {
			errs = append(errs, fmt.Errorf("kind %s: %w", k.Name, comp.err))
		}
		if k.Rows, err = compileRows(k.Kind, k.Body); err != nil {
			errs = append(errs, fmt.Errorf("kind %s: %w", k.Name, err))
		}
		k.Conditions = k.Kind.Conditions()
		c.ordered = append(c.ordered, k)
		for _, name := range append([]string{k.Name, k.Singular, k.Plural}, k.ShortNames...) {
			if o := c.byName[strings.ToLower(name)]; o != nil && o.Name != k.Name {
				errs = append(errs, fmt.Errorf("kind %s: name %q belongs to kind %s", k.Name, name, o.Name))
			}
			c.byName[strings.ToLower(name)] = k
		}
		c.byName[k.Name] = k
	}
	for _, k := range c.ordered {
		if k.Rows == nil { // errs has the reason
			continue
		}
		for i := range k.Rows.references {
			r := &k.Rows.references[i]
			if to := c.byName[strings.ToLower(r.Kind)]; to != nil {
				to.Referred, r.global = true, to.Scope == descriptor.Global
			}
		}
		k.Declared = declared(k.Rows.references)
	}
	return c, errors.Join(errs...)
}

// declared returns the fingerprint of declared references, independent of their order.
func declared(references []referenceIndex) string {
	if len(references) == 0 {
		return ""
	}
	h := sha256.New()
	sorted := slices.SortedFunc(slices.Values(references), func(a, b referenceIndex) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Kind, b.Kind))
	})
	for _, r := range sorted {
		_, _ = fmt.Fprintln(h, r.Path, r.Kind, r.Guarded, r.global)
	}
	return hex.EncodeToString(h.Sum(nil)[:4])
}

type compiler struct {
	env   *cel.Env
	costs costs
	done  map[*descriptor.Shape]*Shape
	err   error
}

func (c *compiler) shape(s *descriptor.Shape) *Shape {
	if s == nil {
		return nil
	}
	if out := c.done[s]; out != nil {
		return out
	}
	out := &Shape{Shape: s, fields: make(map[string]*Field, len(s.Fields))}
	c.done[s] = out
	for i := range s.Fields {
		f := &Field{Field: &s.Fields[i], escaped: escapeCEL(s.Fields[i].Name), of: s.Name}
		f.pattern = c.pattern(s.Name+"."+f.Name+": pattern", f.Constraint.Pattern)
		f.keyPattern = c.pattern(s.Name+"."+f.Name+": key pattern", f.Constraint.KeyPattern)
		f.shape = c.shape(f.Shape)
		out.ordered = append(out.ordered, f)
		out.addField(f)
	}
	for _, r := range s.Rules {
		compiled, iss := c.env.Compile(r.CEL)
		err := iss.Err()
		var p cel.Program
		if err == nil {
			c.costs.learn(compiled)
			p, err = c.env.Program(
				compiled, cel.CostTracking(c.costs), cel.CostLimit(ruleCost), cel.InterruptCheckFrequency(1000),
			)
		}
		if err != nil {
			c.fail(fmt.Errorf("%s: rule %q: %w", s.Name, r.CEL, err))
			continue
		}
		out.rules = append(
			out.rules,
			rule{
				Rule:       r,
				program:    p,
				transition: oldSelf.MatchString(r.CEL),
				inputs:     out.inputs(ast.NavigateAST(compiled.NativeRep())),
				stored:     inStoredForm(s, r.Message),
			},
		)
	}
	return out
}

// addField adds a compiled field to the shape and updates what the shape knows of its fields.
func (s *Shape) addField(f *Field) {
	s.fields[f.Name] = f
	if c := f.Constraint; c.MaxLength != nil || c.MaxItems != nil || c.KeyMaxLength != nil ||
		f.shape != nil && len(f.shape.bounded) > 0 {
		s.bounded = append(s.bounded, f)
	}
	s.Hides = s.Hides || f.WriteOnly || f.shape != nil && f.shape.Hides
	s.keeps = s.keeps || f.keeps() || f.shape != nil && f.shape.keeps
	s.deprecates = s.deprecates || f.Deprecated != "" || f.shape != nil && f.shape.deprecates
	s.merges = s.merges || f.MergeInto != "" || f.shape != nil && f.shape.merges
	s.respelled = s.respelled || f.Type == descriptor.TypeTime || f.Type == descriptor.TypeInt ||
		f.Type == descriptor.TypeSafeInt || f.shape != nil && f.shape.respelled
}

// word matches a word that may be the name of an enum value.
var word = regexp.MustCompile(`[A-Za-z_]\w*`)

// inStoredForm replaces the API names of the shape's enum values in a text by the stored forms, which manifests use.
func inStoredForm(s *descriptor.Shape, text string) string {
	return word.ReplaceAllStringFunc(text, func(name string) string {
		for i := range s.Fields {
			if e := s.Fields[i].Enum; e != nil {
				for _, v := range e.Values {
					if v.Name == name {
						return v.Stored
					}
				}
			}
		}
		return name
	})
}

func (c *compiler) fail(err error) { c.err = errors.Join(c.err, err) }

// Find finds a kind by one of its names: singular, plural or short, in any case.
func (c Catalogue) Find(name string) (*Kind, error) {
	if k := c.byName[name]; k != nil { // most callers pass the exact name
		return k, nil
	}
	if k := c.byName[strings.ToLower(name)]; k != nil {
		return k, nil
	}
	known := make([]string, len(c.ordered))
	for i, k := range c.ordered {
		known[i] = k.Name
	}
	return nil, &failure.Error{
		Code:    failure.CodeBadUserInput,
		Path:    "kind",
		Kind:    failure.Shorten(name),
		Message: fmt.Sprintf("kind %q is not known; known kinds: %s", failure.Shorten(name), strings.Join(known, ", ")),
	}
}

// Body returns the shape of the stored bodies of a kind; nil if the kind is not known.
func (c Catalogue) Body(kind string) *body.Shape {
	if k := c.byName[strings.ToLower(kind)]; k != nil {
		return k.Body
	}
	return nil
}

// placedOf returns [Kind.Placed] for a kind with the given shape of spec.
func placedOf(spec *descriptor.Shape) map[string]string {
	out := map[string]string{}
	if spec == nil {
		return out
	}
	for i := range spec.Fields {
		if f := &spec.Fields[i]; f.ManifestAt != "" {
			out[f.ManifestAt] = f.Name
		}
	}
	return out
}

// All returns all kinds, in the order of the catalogue.
func (c Catalogue) All() []*Kind { return c.ordered }

// Descriptors returns the descriptors of all kinds, in the order of the catalogue.
func (c Catalogue) Descriptors() []*descriptor.Kind {
	out := make([]*descriptor.Kind, len(c.ordered))
	for i, k := range c.ordered {
		out[i] = k.Kind
	}
	return out
}
