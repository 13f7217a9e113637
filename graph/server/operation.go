package server

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/graph/engine"
	"github.com/sluicegw/sluice/internal/span"
)

// api limits, measures and logs the operations of an API in a generation.
type api struct {
	*Server
	// subject returns the kind that an operation is about and the verb that it needs; each is empty if there is none.
	subject func(*ast.OperationDefinition) (kind string, verb descriptor.Verb)
	// version is the name of the API in logs, and operations counts its operations. They are not set if no version was
	// released.
	version    string
	operations prometheus.Counter
}

// labels are the labels of an operation in metrics.
type labels struct{ typ, kind, verb string }

// none is the value of a label that does not apply.
const none = "none"

// labels returns the labels of an operation. op is nil for a request that was refused before there was an operation.
func (a *api) labels(op *graphql.OperationContext) labels {
	if op == nil || op.Operation == nil {
		return labels{none, none, none}
	}
	kind, verb := a.subject(op.Operation)
	return labels{string(op.Operation.Operation), cmp.Or(kind, none), cmp.Or(string(verb), none)}
}

// account records the duration of an operation or event and what it has spent, and logs it if it was slow. The duration
// of an event begins with its arrival.
func (a *api) account(ctx context.Context, op *graphql.OperationContext, spent *budget.Budget) {
	took := time.Since(op.Stats.OperationStart)
	if op.Operation.Operation == ast.Subscription {
		took = spent.Since()
	}
	of := a.labels(op)
	span.Observe(ctx, a.metrics.operation.WithLabelValues(of.typ, of.kind, of.verb), took.Seconds())
	if op.Operation.Operation != ast.Subscription {
		a.spend(ctx, spent.Spent(budget.Steps))
	}
	for t := range budget.Things {
		if n := spent.Spent(t); n > 0 {
			a.metrics.spent[t].Observe(float64(n))
		}
	}
	if a.cfg.SlowLog > 0 && took >= a.cfg.SlowLog {
		a.cfg.Logger.Warn("slow operation", append(
			a.describe(ctx, op),
			zap.Float64("durationSeconds", took.Seconds()),
			zap.Any("spent", cost(spent)),
		)...)
	}
}

// answered counts an operation, and writes a line of the access log. It also records a refused request, or a
// subscription that has begun, in a span.
func (a *api) answered(ctx context.Context, op *graphql.OperationContext, errs gqlerror.List) {
	if a.operations != nil && op != nil {
		a.operations.Inc()
	}
	switch {
	case a.cfg.Tracer == nil:
	case op == nil:
		traceRefused(ctx, errs)
	case op.Operation.Operation == ast.Subscription && len(errs) == 0:
		a.traceSubscription(ctx, op)
	}
	if !a.cfg.AccessLog {
		return
	}
	code := "OK"
	if len(errs) > 0 {
		code, _ = errs[0].Extensions["code"].(string)
	}
	fields := append(a.describe(ctx, op), outcome(ctx, code)...)
	if op != nil {
		fields = append(fields, deprecatedFields(op)...)
	}
	if op != nil && op.Operation.Operation != ast.Subscription {
		fields = append(fields, zap.Float64("durationSeconds", time.Since(op.Stats.OperationStart).Seconds()))
		if op.Stats.GetExtension(engine.KeptExtension) != nil {
			fields = append(fields, zap.Bool("kept", true))
		}
	}
	a.cfg.Logger.Info("access", fields...)
}

// outcome returns the fields that all lines of the access log have, without the request id.
func outcome(ctx context.Context, code string) []zap.Field {
	f := factsOf(ctx)
	return []zap.Field{
		zap.String("client", f.client),
		zap.Stringer("caller", access.CallerFrom(ctx).Identity),
		zap.String("address", f.address),
		zap.String("code", code),
	}
}

// forbid refuses a request with FORBIDDEN before it reaches the API.
func (s *Server) forbid(w http.ResponseWriter, r *http.Request, message string) {
	s.logRefused(r, failure.CodeForbidden)
	refuse(w, r, http.StatusForbidden, failure.CodeForbidden, message)
}

// logRefused writes a line of the access log about a refused request.
func (s *Server) logRefused(r *http.Request, code failure.Code) {
	if s.cfg.AccessLog {
		s.cfg.Logger.Info("access", append(outcome(r.Context(), string(code)), ids(r.Context())...)...)
	}
}

// maxName is the maximum length in the log of names of operations and clients, in bytes.
const maxName = 64

// describe returns the fields that identify an operation in the log: its name and the hash of its document. The
// document and the variables are left out, because they may contain secrets.
func (a *api) describe(ctx context.Context, op *graphql.OperationContext) []zap.Field {
	fields := ids(ctx)
	if a.version != "" {
		fields = append(fields, zap.String("version", a.version))
	}
	if op == nil {
		return fields
	}
	of := a.labels(op)
	if of.kind == none {
		of.kind = cmp.Or(shortName(inputKind(op)), none)
	}
	return append(
		fields,
		zap.String("operationName", shortName(op.Operation.Name)),
		zap.String("operationType", of.typ),
		zap.String("kind", of.kind),
		zap.String("documentHash", fmt.Sprintf("%x", sha256.Sum256([]byte(op.RawQuery)))),
	)
}

// maxScanned is the maximum size of a manifest in which the kind is searched, in bytes, because the search is not
// charged.
const maxScanned = 64 << 10

// topKind matches the kind in a YAML manifest.
var topKind = regexp.MustCompile(`(?m)^kind:[ \t]*["']?(\w+)`)

// inputKind returns the kind that the input of a mutation for all kinds is about, which it finds in the global id or
// the manifest. It returns "" if there is none or the manifest is too large.
func inputKind(op *graphql.OperationContext) string {
	field, _ := op.Operation.SelectionSet[0].(*ast.Field)
	if field == nil || field.Arguments.ForName("input") == nil {
		return ""
	}
	input, _ := field.Arguments.ForName("input").Value.Value(op.Variables) // nil if it is malformed
	in, _ := input.(map[string]any)
	if id, ok := in["id"].(string); ok {
		key, _ := kind.ParseGlobalID(id)
		return key.Kind
	}
	text, _ := in["manifest"].(string)
	if len(text) > maxScanned {
		return ""
	}
	if found := topKind.FindStringSubmatch(text); found != nil {
		return found[1]
	}
	var manifest struct{ Kind string }
	_ = json.Unmarshal([]byte(text), &manifest)
	return manifest.Kind
}

// shortName returns the beginning of a name that a client has chosen, with at most maxName bytes, for the log.
func shortName(name string) string {
	return strings.ToValidUTF8(name[:min(len(name), maxName)], "")
}
