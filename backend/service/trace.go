package service

import (
	"context"
	"errors"

	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/internal/span"
)

// verbApply is an apply in traces: which verb it turns out to be is said when its manifest is read.
const verbApply descriptor.Verb = "APPLY"

// traceVerb begins the span of a verb, if its request is traced.
func traceVerb(ctx context.Context, verb descriptor.Verb) (context.Context, span.Span) {
	return span.Start(ctx, string(verb))
}

// nameVerb says on the span of a verb of which kind the resource is. Neither its namespace nor its name is told: they
// are values that the caller gave.
func nameVerb(ctx context.Context, verb descriptor.Verb, k *kind.Kind) {
	s := span.Of(ctx)
	if !s.Recording() {
		return
	}
	s.Rename(string(verb) + " " + k.Name)
	s.Set(span.Verb.String(string(verb)), span.Kind.String(k.Name))
}

// noteAttempts says on the span of a verb how often it was attempted, if another writer came in between.
func noteAttempts(ctx context.Context, attempts int) {
	if attempts > 1 {
		span.Of(ctx).Set(span.Attempts.Int(attempts))
	}
}

// endVerb ends the span of a verb. A resource is told by its uid.
func endVerb(s span.Span, out *Written, err error) {
	defer s.End()
	var known *failure.Error
	switch {
	case errors.As(err, &known):
		s.Fail(string(known.Code), known.Code == failure.CodeUnavailable || known.Code == failure.CodeInternal)
	case err != nil:
		s.Fail(string(failure.CodeInternal), true)
	case out == nil:
	default:
		s.Set(span.Outcome.String(outcomeOf(out)), span.DryRun.Bool(out.DryRun))
		if out.Resource != nil && out.Resource.Stored != nil {
			s.Set(span.UID.String(out.Resource.Stored.UID))
		}
	}
}

// outcomeOf returns what became of a write, or of a deletion.
func outcomeOf(w *Written) string {
	if w.Deletion != "" {
		return string(w.Deletion)
	}
	return string(w.Outcome)
}
