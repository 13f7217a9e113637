package server

import (
	"context"
	"errors"
	"fmt"
	"strings"

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
	"github.com/sluicegw/sluice/graph/document"
	"github.com/sluicegw/sluice/graph/kinds"
	"github.com/sluicegw/sluice/graph/transport"
)

// documents parses and validates documents, and remembers those that were used
// last. What a document costs is measured before each step that could be slow.
type documents struct {
	schema *ast.Schema
	limits Limits
	hidden bool // the schema
	cache  *documentCache
}

var _ transport.Documents = (*documents)(nil)

// Parse returns the valid document of a text, or everything that is wrong with it.
func (d *documents) Parse(ctx context.Context, query string) (*ast.QueryDocument, gqlerror.List) {
	if doc := d.cache.get(query); doc != nil {
		return doc, nil
	}
	query = strings.Clone(query) // what is remembered does not keep the rest of the request
	text := scan(query, d.limits.Tokens)
	if text.tokens > d.limits.Tokens {
		return nil, gqlerror.List{exceeded("tokens", "limit-tokens", d.limits.Tokens)}
	}
	if text.bytes > d.limits.Text {
		return nil, gqlerror.List{exceeded("bytes of names and strings", "limit-text", d.limits.Text)}
	}
	source, ok := joinSurrogates(query)
	if !ok {
		return nil, gqlerror.List{coded(errcode.ParseFailed, "a string has the escape of half a character (a surrogate without its other half)")}
	}
	doc, err := parser.ParseQuery(&ast.Source{Input: source})
	if err != nil {
		return nil, gqlerror.List{parseError(err)}
	}
	if len(doc.Operations) == 0 {
		return nil, gqlerror.List{coded(errcode.ValidationFailed, "the document has no operation")}
	}
	if err := checkLimits(doc, d.limits, d.hidden); err != nil {
		return nil, gqlerror.List{err}
	}
	if validationWork(doc, d.limits.Validation) > d.limits.Validation {
		return nil, gqlerror.List{exceeded("comparisons of fields to make", "limit-validation", d.limits.Validation)}
	}
	if ctx.Err() != nil {
		return nil, gqlerror.List{timedOut(ctx)}
	}
	if errs := validator.ValidateWithRules(d.schema, doc, text.rules()); len(errs) > 0 {
		for _, err := range errs {
			errcode.Set(err, errcode.ValidationFailed)
		}
		kinds.Conceal(d.schema, doc, errs)
		return nil, errs
	}
	if ctx.Err() != nil {
		return nil, gqlerror.List{timedOut(ctx)}
	}
	d.cache.add(query, doc, text.tokens)
	return doc, nil
}

// How many bytes of names and strings a document may have for its errors to say what may
// have been meant, and a single one. Each name is compared with all that the schema has in its
// place, which takes the product of their lengths.
const (
	maxSuggested     = 1 << 10
	maxSuggestedName = 64
)

// text is what a document consists of before it is parsed.
type text struct {
	tokens  int // comments included
	bytes   int // of names and strings
	longest int // of them
}

// scan counts tokens, up to one more than most. It stops at what is no token: the
// parser says so.
func scan(query string, most int) (t text) {
	l := lexer.New(&ast.Source{Input: query})
	for t.tokens <= most {
		token, err := l.ReadToken()
		if err != nil || token.Kind == lexer.EOF {
			break
		}
		t.tokens++
		switch token.Kind {
		case lexer.Name, lexer.String, lexer.BlockString:
			t.bytes, t.longest = t.bytes+len(token.Value), max(t.longest, len(token.Value))
		}
	}
	return t
}

// rules are those of the specification. They make no suggestions in a document of many or long names.
func (t text) rules() *rules.Rules {
	r := rules.NewDefaultRules()
	if t.bytes <= maxSuggested && t.longest <= maxSuggestedName {
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

// timedOut is the error of a request whose time was over, or whose client had
// gone, before it was executed.
func timedOut(ctx context.Context) *gqlerror.Error {
	err := coded(string(failure.CodeTimeout), "the request took longer than it may")
	err.Err = context.Cause(ctx)
	err.Extensions["retryable"] = true
	return err
}

// parsed hands documents that are parsed already to gqlgen's executor, which
// asks its cache first.
type parsed struct{}

var _ graphql.Cache[*ast.QueryDocument] = parsed{}

// Get returns the document of the request.
func (parsed) Get(ctx context.Context, _ string) (*ast.QueryDocument, bool) {
	return transport.DocumentOf(ctx)
}

// Add is not called: every document comes parsed.
func (parsed) Add(context.Context, string, *ast.QueryDocument) {}

// documentsOf are the documents that clients name, and with trusted-only those that
// the command line sends, for it is to work there too.
func (s *Server) documentsOf(api API) *document.Store {
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
