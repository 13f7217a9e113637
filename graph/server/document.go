package server

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/errcode"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/lexer"
	"github.com/vektah/gqlparser/v2/parser"
	"github.com/vektah/gqlparser/v2/validator"
	"github.com/vektah/gqlparser/v2/validator/rules"

	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/graph/client"
	"github.com/sluicegw/sluice/graph/coercion"
	"github.com/sluicegw/sluice/graph/deprecation"
	"github.com/sluicegw/sluice/graph/engine"
	"github.com/sluicegw/sluice/graph/kinds"
	"github.com/sluicegw/sluice/graph/transport"
)

// documents parses and validates documents, and caches those that were used last. Before each step that can be slow, it
// estimates the cost.
type documents struct {
	schema *ast.Schema
	limits Limits
	hidden bool // introspection is refused
	// cache is shared by all APIs. api is the name of this API, and plans the engine that keeps its plans.
	cache *documentCache
	api   string
	plans *engine.Engine
	// spend charges the cost of a document to its caller, even if the document is not valid.
	spend func(ctx context.Context, steps int64)
	// deprecated are the deprecated parts of the schema. useDeprecated is called for each of them that an operation
	// uses.
	deprecated    *deprecation.Schema
	useDeprecated func(oc *graphql.OperationContext, coordinate string)
}

var _ transport.Documents = (*documents)(nil)

// document is a valid document.
type document struct {
	coercer coercion.Coercer
	tree    *ast.QueryDocument
	// checked has the checks that depend on the values of variables.
	checked *coercion.Document
	// deprecated are the deprecated parts of the schema that the document uses. useDeprecated is called for each of
	// them that an operation uses.
	deprecated    *deprecation.Document
	useDeprecated func(oc *graphql.OperationContext, coordinate string)
}

// Parse implements [transport.Documents]. Only valid documents are cached.
func (d *documents) Parse(ctx context.Context, query string) (transport.Document, gqlerror.List) {
	if doc := d.cache.get(documentKey{d.api, query}); doc != nil {
		return doc, nil
	}
	doc, errs := d.parse(ctx, query)
	if len(errs) > 0 {
		return nil, errs
	}
	return doc, nil
}

func (d *documents) parse(ctx context.Context, query string) (*document, gqlerror.List) {
	query = strings.Clone(query) // a cached document does not keep the rest of the request
	text := scan(query, MaxTokens)
	work := text.tokens
	defer func() { d.spend(ctx, int64(work)) }() // one step for each token and comparison
	if text.tokens > MaxTokens {
		return nil, gqlerror.List{exceeded("tokens", "limit-tokens", MaxTokens)}
	}
	if text.bytes > MaxText {
		return nil, gqlerror.List{exceeded("bytes of names and strings", "limit-text", MaxText)}
	}
	if text.half {
		return nil, gqlerror.List{coded(errcode.ParseFailed, "a string has the escape of half a character (a surrogate without its other half)")}
	}
	doc, err := parser.ParseQuery(&ast.Source{Input: query})
	if err != nil {
		return nil, gqlerror.List{parseError(err)}
	}
	if len(doc.Operations) == 0 {
		return nil, gqlerror.List{coded(errcode.ValidationFailed, "the document has no operation")}
	}
	if err := checkLimits(doc, d.limits, d.hidden); err != nil {
		return nil, gqlerror.List{err}
	}
	comparisons := validationWork(doc)
	work += comparisons
	if comparisons > MaxValidation {
		return nil, gqlerror.List{exceeded("comparisons of fields to make", "limit-validation", MaxValidation)}
	}
	if ctx.Err() != nil {
		return nil, gqlerror.List{timedOut(ctx)}
	}
	var checked *coercion.Document
	coercer := coercion.Coercer{Schema: d.schema, Hidden: d.hidden}
	errs := validator.ValidateWithRules(d.schema, doc, text.rules(d.hidden))
	if len(errs) == 0 {
		checked, errs = coercer.Document(doc)
	}
	if len(errs) > 0 {
		for _, err := range errs {
			errcode.Set(err, errcode.ValidationFailed)
		}
		kinds.Conceal(d.schema, doc, errs)
		return nil, errs
	}
	if ctx.Err() != nil {
		return nil, gqlerror.List{timedOut(ctx)}
	}
	out := &document{
		coercer:       coercer,
		tree:          doc,
		checked:       checked,
		deprecated:    d.deprecated.Document(doc),
		useDeprecated: d.useDeprecated,
	}
	d.cache.add(documentKey{d.api, query}, out, d.plans, text.tokens)
	return out, nil
}

// Tree implements [transport.Document].
func (d *document) Tree() *ast.QueryDocument { return d.tree }

// Bind implements [transport.Document]. It also counts the deprecated parts of the schema that the operation uses. It
// returns an error for a subscription that would begin no stream or several. gqlparser does not find these: it counts
// names of root fields instead of fields, and it does not evaluate @skip and @include.
func (d *document) Bind(oc *graphql.OperationContext, given map[string]any) *gqlerror.Error {
	var err *gqlerror.Error
	if oc.Variables, err = d.coercer.Variables(oc.Operation, given); err != nil {
		errcode.Set(err, errcode.ValidationFailed)
		return err
	}
	if err := d.checked.Check(oc.Operation, oc.Variables); err != nil {
		return err
	}
	if err := d.checkStreams(oc); err != nil {
		return err
	}
	d.deprecated.Each(oc.Operation, oc.Variables, func(coordinate string) { d.useDeprecated(oc, coordinate) })
	return nil
}

// checkStreams returns an error for a subscription that would not begin exactly one stream.
func (d *document) checkStreams(oc *graphql.OperationContext) *gqlerror.Error {
	if oc.Operation.Operation != ast.Subscription {
		return nil
	}
	if n := len(graphql.CollectFields(oc, oc.Operation.SelectionSet, []string{d.coercer.Schema.Subscription.Name})); n != 1 {
		err := gqlerror.ErrorPosf(oc.Operation.Position, "a subscription selects exactly one root field; this one selects %d", n)
		errcode.Set(err, errcode.ValidationFailed)
		return err
	}
	return nil
}

// Errors suggest the name that may have been meant, or list the values of an enum, only if the names and strings of the
// document have at most maxSuggested bytes together, and at most maxSuggestedName bytes each. To find a suggestion, the
// validation compares a name with all names in that place of the schema, in time proportional to the product of their
// lengths.
const (
	maxSuggested     = 1 << 10
	maxSuggestedName = 64
)

// textSize is the size of a document before it is parsed.
type textSize struct {
	tokens  int // comments included
	bytes   int // of names and strings
	longest int // of them
	// half reports whether a string has the escape of half a surrogate pair. The parser would replace it by U+FFFD.
	half bool
	// wide reports whether there may be an integer that does not fit into 64 bits.
	wide bool
}

// scan measures a text. It stops after most+1 tokens, or at the first invalid token, about which the parser will
// complain.
func scan(query string, most int) (t textSize) {
	l := lexer.New(&ast.Source{Input: query})
	var characters []rune // the text; positions of tokens count characters
	for t.tokens <= most {
		token, err := l.ReadToken()
		if err != nil || token.Kind == lexer.EOF {
			break
		}
		t.tokens++
		switch token.Kind {
		case lexer.Name, lexer.String, lexer.BlockString:
			t.bytes, t.longest = t.bytes+len(token.Value), max(t.longest, len(token.Value))
		case lexer.Int:
			t.wide = t.wide || len(token.Value) >= maxInt64Digits
		}
		if token.Kind == lexer.String && strings.ContainsRune(token.Value, utf8.RuneError) {
			if characters == nil {
				characters = []rune(query)
			}
			t.half = t.half || !transport.WholeCharacters(string(characters[token.Pos.Start:token.Pos.End]))
		}
	}
	return t
}

// rules returns the rules for validating the document: the rules of the specification, changed as the size of the
// document requires. If the schema is hidden, its names are not suggested.
func (t textSize) rules(hidden bool) *rules.Rules {
	r := t.suggestingRules(hidden)
	if t.wide {
		values := rules.ValuesOfCorrectTypeRule.Name
		r.ReplaceRule(values, acceptIntegers(r.GetInner()[values]))
	}
	return r
}

// suggestingRules returns the rules of the specification. If the schema is hidden, or the document has many or long
// names, they do not suggest names.
func (t textSize) suggestingRules(hidden bool) *rules.Rules {
	r := rules.NewDefaultRules()
	if !hidden && t.bytes <= maxSuggested && t.longest <= maxSuggestedName {
		values := rules.ValuesOfCorrectTypeRule.Name
		r.ReplaceRule(values, listEnumValues(r.GetInner()[values]))
		return r
	}
	for _, brief := range []validator.Rule{
		rules.FieldsOnCorrectTypeRuleWithoutSuggestions, rules.KnownArgumentNamesRuleWithoutSuggestions,
		rules.KnownTypeNamesRuleWithoutSuggestions, rules.ValuesOfCorrectTypeRuleWithoutSuggestions,
	} {
		full := brief.Name[:len(brief.Name)-len("WithoutSuggestions")]
		r.ReplaceRule(full, brief.RuleFunc)
	}
	return r
}

func parseError(err error) *gqlerror.Error {
	var known *gqlerror.Error
	if !errors.As(err, &known) {
		return coded(errcode.ParseFailed, "the document does not parse")
	}
	errcode.Set(known, errcode.ParseFailed)
	return known
}

func coded(code, format string, args ...any) *gqlerror.Error {
	return &gqlerror.Error{Message: fmt.Sprintf(format, args...), Extensions: map[string]any{"code": code}}
}

// timedOut returns the error of a request whose time was over, or whose client had gone, before it was executed.
func timedOut(ctx context.Context) *gqlerror.Error {
	err := coded(string(failure.CodeTimeout), "the request took longer than it may")
	err.Err = context.Cause(ctx)
	err.Extensions["retryable"] = true
	return err
}

// documentsOf returns the documents that clients may name. With the setting trusted-only they include the documents of
// the sluice command line, which would not work otherwise.
func (s *Server) documentsOf(api API) *transport.NamedDocuments {
	if !s.cfg.Documents.TrustedOnly {
		return s.documents
	}
	var kinds []client.Kind
	for _, k := range api.Service.Kinds() {
		of := client.Kind{Name: k.Name, Singular: k.Singular, Plural: k.Plural, Scope: string(k.Scope)}
		for _, v := range k.Verbs {
			of.Verbs = append(of.Verbs, string(v))
		}
		kinds = append(kinds, of)
	}
	return s.documents.With(client.Documents(kinds))
}
