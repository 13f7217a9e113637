package kinds

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	celast "cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/types"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/sluicegw/sluice/backend/descriptor"
)

// rules reads @rule and compiles each rule for the types of the shape, so that a misspelt field or a comparison of
// different types is found.
func (l *loader) rules(s *descriptor.Shape, def *ast.Definition) {
	for _, r := range l.readAll(def.Directives, "rule") {
		s.Rules = append(s.Rules, descriptor.Rule{CEL: r.text("cel"), Message: r.text("message")})
		if r.text("message") == "" {
			l.report(r.at("message"), "%s: a rule says what is wrong; message is empty", def.Name)
		}
		if err := l.compile(s, r.text("cel")); err != nil {
			l.report(r.at("cel"), "%s: rule %q: %s", def.Name, r.text("cel"), own(err.Error()))
		}
	}
}

// compile compiles a rule in the environment that the service uses, except that self and oldSelf have types here.
func (l *loader) compile(s *descriptor.Shape, expression string) error {
	registry, err := types.NewRegistry()
	if err != nil {
		return fmt.Errorf("cel: %w", err)
	}
	provider := &shapeProvider{Registry: registry, shapes: map[string]*descriptor.Shape{}, stored: l.storedOf}
	provider.collect(s)
	env, err := l.rulesEnv.Extend(
		cel.CustomTypeProvider(provider), cel.CustomTypeAdapter(registry),
		cel.Variable("self", cel.ObjectType(s.Name)), cel.Variable("oldSelf", cel.ObjectType(s.Name)),
	)
	if err != nil {
		return fmt.Errorf("cel: %w", err)
	}
	compiled, issues := env.Compile(expression)
	if issues.Err() != nil {
		var out []string
		for _, e := range issues.Errors() {
			out = append(
				out,
				fmt.Sprintf("column %d: %s%s", e.Location.Column()+1, shorten(e.Message), escapeHint(e.Message)),
			)
		}
		return fmt.Errorf("%s", strings.Join(out, "; "))
	}
	if !compiled.OutputType().IsExactType(types.BoolType) {
		return fmt.Errorf("its type is %s; true or false is wanted", compiled.OutputType())
	}
	return checkPatterns(compiled)
}

// checkPatterns returns an error if a rule computes a pattern, so that its cost is unknown, or if a pattern takes too
// long to match.
func checkPatterns(rule *cel.Ast) error {
	for _, e := range celast.MatchDescendants(celast.NavigateAST(rule.NativeRep()), celast.FunctionMatcher("matches")) {
		args := e.AsCall().Args()
		pattern := args[len(args)-1]
		if pattern.Kind() != celast.LiteralKind {
			return errors.New("the pattern of matches is a text in quotes, not a value")
		}
		text, _ := pattern.AsLiteral().(types.String)
		switch n, err := descriptor.PatternSize(string(text)); {
		case err != nil:
			return fmt.Errorf("%q is no RE2 expression: %w", shorten(string(text)), err)
		case n > descriptor.MaxPattern:
			return fmt.Errorf("%q %s", shorten(string(text)), tooDear(n))
		}
	}
	return nil
}

// escapeHint returns a hint how to write a reserved word; "" if the message is not about one.
func escapeHint(message string) string {
	for _, word := range reservedWords() {
		if message == "undefined field '"+word+"'" {
			return "; CEL reserves the word, write __" + word + "__"
		}
	}
	return ""
}

// shapeProvider provides CEL with the names and types of the fields of shapes.
type shapeProvider struct {
	*types.Registry
	shapes map[string]*descriptor.Shape
	// stored returns the stored name of a field. Rules use stored names.
	stored func(s *descriptor.Shape, name string) string
}

var _ types.Provider = (*shapeProvider)(nil)

func (p *shapeProvider) collect(s *descriptor.Shape) {
	p.shapes[s.Name] = s
	for _, f := range s.Fields {
		if f.Shape != nil {
			p.collect(f.Shape)
		}
	}
}

// FindStructType implements [types.Provider].
func (p *shapeProvider) FindStructType(name string) (*types.Type, bool) {
	if p.shapes[name] == nil {
		return p.Registry.FindStructType(name)
	}
	return types.NewTypeTypeWithParam(types.NewObjectType(name)), true
}

// FindStructFieldNames implements [types.Provider].
func (p *shapeProvider) FindStructFieldNames(name string) ([]string, bool) {
	s := p.shapes[name]
	if s == nil {
		return p.Registry.FindStructFieldNames(name)
	}
	names := make([]string, len(s.Fields))
	for i, f := range s.Fields {
		names[i] = escaped(p.stored(s, f.Name))
	}
	return names, true
}

// FindStructFieldType implements [types.Provider].
func (p *shapeProvider) FindStructFieldType(name, field string) (*types.FieldType, bool) {
	s := p.shapes[name]
	if s == nil {
		return p.Registry.FindStructFieldType(name, field)
	}
	for i := range s.Fields {
		if f := &s.Fields[i]; escaped(p.stored(s, f.Name)) == field {
			return &types.FieldType{Type: celType(f)}, true
		}
	}
	return nil, false
}

// escaped returns the name of a field in rules.
func escaped(name string) string {
	if slices.Contains(reservedWords(), name) {
		return "__" + name + "__"
	}
	return name
}

func celType(f *descriptor.Field) *types.Type {
	t := map[descriptor.FieldType]*types.Type{
		descriptor.TypeString:  types.StringType,
		descriptor.TypeTime:    types.TimestampType,
		descriptor.TypeEnum:    types.StringType,
		descriptor.TypeBoolean: types.BoolType,
		descriptor.TypeInt:     types.IntType,
		descriptor.TypeSafeInt: types.IntType,
		descriptor.TypeFloat:   types.DoubleType,
	}[f.Type]
	switch {
	case f.Type == descriptor.TypeMap:
		t = types.NewMapType(types.StringType, types.StringType)
	case f.Shape != nil:
		t = types.NewObjectType(f.Shape.Name)
	case t == nil:
		t = types.DynType
	}
	if f.List {
		return types.NewListType(t)
	}
	return t
}

// reservedWords returns the words that CEL's language definition does not allow as field names. Rules write them as
// __word__.
func reservedWords() []string {
	return strings.Fields("true false null in as break const continue else for function if import let loop package namespace return var void while")
}
