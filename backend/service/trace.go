package service

import (
	"context"
	"errors"

	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/internal/span"
)

// verbApply is the name of an apply in traces until the manifest is read. The manifest then decides the actual verb.
const verbApply descriptor.Verb = "APPLY"

// traceVerb begins a span for a verb, if the request is traced.
func traceVerb(ctx context.Context, verb descriptor.Verb) (context.Context, span.Span) {
	return span.Start(ctx, string(verb))
}

// nameVerb adds the verb and the kind to the span of a request. It leaves out the namespace and the name, because
// callers choose them.
func nameVerb(ctx context.Context, verb descriptor.Verb, k *kind.Kind) {
	s := span.Of(ctx)
	if !s.Recording() {
		return
	}
	s.Rename(string(verb) + " " + k.Name)
	s.Set(span.Verb.String(string(verb)), span.Kind.String(k.Name))
}

// noteAttempts sets the number of attempts on the span of a verb, if there was more than one.
func noteAttempts(ctx context.Context, attempts int) {
	if attempts > 1 {
		span.Of(ctx).Set(span.Attempts.Int(attempts))
	}
}

// endVerb ends the span of a verb with the result of the verb. It identifies the resource by its uid.
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

// outcomeOf returns the outcome of a write, or the progress of a deletion.
func outcomeOf(w *Written) string {
	if w.Deletion != "" {
		return string(w.Deletion)
	}
	return string(w.Outcome)
}
