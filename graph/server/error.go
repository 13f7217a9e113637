package server

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/graph/coercion"
)

// present returns the error in the form for clients. It always has extensions.code and extensions.requestId, and other
// extensions if they apply. An unknown error becomes INTERNAL, and its cause is only logged.
func (a *api) present(ctx context.Context, err error) *gqlerror.Error {
	out := graphql.DefaultErrorPresenter(ctx, err)
	ext := map[string]any{}
	maps.Copy(ext, out.Extensions)
	var known *failure.Error
	var over *budget.ExceededError
	switch {
	case errors.As(err, &known):
		out = &gqlerror.Error{Message: known.Message, Path: out.Path, Locations: out.Locations}
		extend(ext, known)
	case errors.As(err, &over):
		ext["code"] = string(failure.CodeLimitExceeded)
		ext["retryable"] = false
		ext["limit"] = over.Limit
		ext["setting"] = over.Thing.Key()
	case errors.Is(err, budget.ErrBusy):
		ext["code"] = string(failure.CodeUnavailable)
		ext["retryable"] = ext["outcome"] == nil
		ext["setting"] = budget.MemoryKey
		ext["limit"] = a.cfg.Limits.Memory
		ext["retryAfter"] = budget.RetryAfter
	case errors.Is(err, context.DeadlineExceeded):
		out.Message = "the request took longer than it may"
		ext["code"], ext["retryable"] = string(failure.CodeTimeout), true
	case errors.Is(err, context.Canceled):
		out.Message = "the request was cancelled"
		ext["code"], ext["retryable"] = string(failure.CodeTimeout), true
	case ext["code"] == nil && isInput(err):
		ext["code"] = string(failure.CodeBadUserInput)
	case ext["code"] == nil:
		known = &failure.Error{Code: failure.CodeInternal}
		out = &gqlerror.Error{Message: "internal error", Path: out.Path, Locations: out.Locations}
		ext["code"] = string(failure.CodeInternal)
	}
	setIDs(ctx, ext)
	out.Extensions = ext
	code, _ := ext["code"].(string)
	var op *graphql.OperationContext
	if graphql.HasOperationContext(ctx) {
		op = graphql.GetOperationContext(ctx)
	}
	if known != nil && (known.Code == failure.CodeUnauthenticated || known.Code == failure.CodeForbidden) {
		a.cfg.Refused(ctx, known)
		// The line of a subscription in the access log only says that it has begun, so an error gets another line.
		if op != nil && op.Operation != nil && op.Operation.Operation == ast.Subscription {
			a.answered(ctx, op, gqlerror.List{out})
		}
	}
	of := a.labels(op)
	a.metrics.errors.WithLabelValues(of.typ, of.kind, code).Inc()
	switch {
	case code == string(failure.CodeInternal) || known != nil && known.Outcome != "":
		a.cfg.Logger.Error("operation failed", append(ids(ctx), zap.String("code", code), zap.Error(cause(err)))...)
	case code == string(failure.CodeUnavailable) && ext["setting"] == nil:
		a.unavailable.Do(func() {
			a.cfg.Logger.Warn(
				"the store or a resource service is not available", append(ids(ctx), zap.Error(cause(err)))...,
			)
		})
	}
	return out
}

// logInterval is the minimum time between two lines of the log that could otherwise be written for every request.
const logInterval = 5 * time.Second

// isInput reports whether err is about the value of an argument and was found before a resolver was called.
func isInput(err error) bool {
	var number *graphql.IntegerError
	var input *coercion.InputError
	return errors.As(err, &number) || errors.As(err, &input)
}

// cause returns the innermost error of a chain.
func cause(err error) error {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return err
		}
		err = next
	}
}

func extend(ext map[string]any, e *failure.Error) {
	ext["code"] = string(e.Code)
	ext["retryable"] = e.Retryable
	if ext["path"] == nil && e.Path != "" {
		path := failure.ShortenPath(e.Path)
		ext["path"], ext["field"] = failure.Steps(path), path
	}
	switch e.Limit.(type) {
	case nil:
	case int, int32, int64, float64, json.Number:
		ext["limit"] = e.Limit
	default:
		ext["expected"] = e.Limit
	}
	if e.RetryAfter > 0 {
		ext["retryAfter"] = e.RetryAfter
	}
	for key, value := range map[string]string{
		"kind":             e.Kind,
		"namespace":        e.Namespace,
		"name":             e.Name,
		"rule":             e.Rule,
		"expectedRevision": e.ExpectedRevision,
		"currentRevision":  e.CurrentRevision,
		"outcome":          e.Outcome,
		"cursor":           e.Cursor,
		"setting":          e.Setting,
	} {
		if value != "" {
			ext[key] = value
		}
	}
}
