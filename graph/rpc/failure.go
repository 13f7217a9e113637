package rpc

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	protobuf "google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/internal/span"
)

// Domain is the domain of the ErrorInfo in errors. The reason in the ErrorInfo is the code of the error in the API.
const Domain = "sluice"

// CodeOf returns the gRPC code for the error of a call.
func CodeOf(ctx context.Context, e *failure.Error) connect.Code {
	if ctx.Err() == context.Canceled && e.Code == failure.CodeTimeout && e.Outcome == "" {
		return connect.CodeCanceled
	}
	return codeOf(e)
}

func codeOf(e *failure.Error) connect.Code {
	if e.Outcome != "" { // a client must not send it again by itself
		return connect.CodeUnknown
	}
	switch e.Code {
	case failure.CodeNotFound:
		return connect.CodeNotFound
	case failure.CodeAlreadyExists:
		return connect.CodeAlreadyExists
	case failure.CodeConflict, failure.CodeAborted, failure.CodeLagged, failure.CodeCatalogueChanged:
		return connect.CodeAborted
	case failure.CodeBeingDeleted:
		return connect.CodeFailedPrecondition
	case failure.CodeValidationFailed, failure.CodeBadUserInput, failure.CodeCursorInvalid:
		return connect.CodeInvalidArgument
	case failure.CodePositionExpired:
		return connect.CodeOutOfRange
	case failure.CodeUnsupportedVersion:
		return connect.CodeUnimplemented
	case failure.CodeUnreadable:
		return connect.CodeDataLoss
	case failure.CodeForbidden:
		return connect.CodePermissionDenied
	case failure.CodeUnauthenticated:
		return connect.CodeUnauthenticated
	case failure.CodeLimitExceeded:
		return connect.CodeResourceExhausted
	case failure.CodeUnavailable:
		return connect.CodeUnavailable
	case failure.CodeTimeout:
		return connect.CodeDeadlineExceeded
	}
	return connect.CodeInternal
}

// Error converts an error to one for clients of gRPC. The result has an ErrorInfo. If values are wrong, it also has a
// BadRequest. If the same request may succeed later, it has a RetryInfo.
func Error(ctx context.Context, e *failure.Error) *connect.Error { return errorOf(ctx, e, nil) }

// Connect converts the refusal to an error for clients of gRPC.
func (r *Refusal) Connect(ctx context.Context) *connect.Error {
	return detailed(ctx, connect.NewError(r.Code, errorText(shorten(r.Error.Message))), r.Error, nil)
}

// errorOf is like Error, and translates the paths of values. translate may be nil.
func errorOf(ctx context.Context, e *failure.Error, translate func(path string) string) *connect.Error {
	return detailed(ctx, connect.NewError(CodeOf(ctx, e), errorText(shorten(e.Message))), e, translate)
}

// detailed adds details about an error to out.
func detailed(
	ctx context.Context, out *connect.Error, e *failure.Error, translate func(path string) string,
) *connect.Error {
	if translate == nil {
		translate = func(path string) string { return path }
	}
	add := func(m protobuf.Message) {
		if detail, err := connect.NewErrorDetail(m); err == nil {
			out.AddDetail(detail)
		}
	}
	add(&errdetails.ErrorInfo{Reason: string(e.Code), Domain: Domain, Metadata: metadataOf(ctx, e)})
	if violations := violationsOf(e, translate); len(violations) > 0 {
		add(&errdetails.BadRequest{FieldViolations: violations})
	}
	if after := retryAfter(e, out.Code()); after > 0 {
		add(&errdetails.RetryInfo{RetryDelay: durationpb.New(after)})
	}
	return out
}

// The pauses in a RetryInfo if no pause is known. minRetry is for requests that may succeed soon. unavailableRetry is
// for requests that this gateway will not execute, such as a write to a read-only gateway: clients repeat what is
// UNAVAILABLE, and another gateway may execute it.
const (
	minRetry         = 100 * time.Millisecond
	unavailableRetry = 5 * time.Second
)

// retryAfter returns the pause after which a client may repeat a call; 0 if it should not.
func retryAfter(e *failure.Error, code connect.Code) time.Duration {
	pause := time.Duration(e.RetryAfter) * time.Second
	switch {
	case e.Retryable:
		return max(pause, minRetry)
	case code == connect.CodeUnavailable:
		return max(pause, unavailableRetry)
	}
	return 0
}

// shorten makes a text of an error valid for protobuf, and shortens it to the maximum length of a path.
func shorten(text string) string { return strings.ToValidUTF8(failure.ShortenPath(text), "�") }

// maxViolationBytes is the maximum size of all violations in an error, unless a single one is larger. The error of a
// gRPC call is in the trailers of the answer. If the trailers have more than 8 KiB, clients refuse the answer and do
// not show the error.
const maxViolationBytes = 2 << 10

// errorText is an error that consists of a text.
type errorText string

func (t errorText) Error() string { return string(t) }

// metadataOf returns the metadata of the ErrorInfo.
func metadataOf(ctx context.Context, e *failure.Error) map[string]string {
	out := map[string]string{}
	caller := access.CallerFrom(ctx)
	for key, value := range map[string]string{
		"requestId":        caller.Request,
		"traceId":          span.OtherID(caller.Trace, caller.Request),
		"kind":             e.Kind,
		"namespace":        e.Namespace,
		"name":             e.Name,
		"expectedRevision": e.ExpectedRevision,
		"currentRevision":  e.CurrentRevision,
		"outcome":          e.Outcome,
		"setting":          e.Setting,
	} {
		if value != "" {
			out[key] = shorten(value)
		}
	}
	if e.Cursor != "" {
		out["cursor"] = e.Cursor
	}
	return out
}

// violationsOf returns the wrong values in an error.
func violationsOf(e *failure.Error, translate func(string) string) (out []*errdetails.BadRequest_FieldViolation) {
	if codeOf(e) != connect.CodeInvalidArgument {
		return nil
	}
	all := e.Violations
	if len(all) == 0 && e.Path != "" {
		all = []failure.Violation{{Path: e.Path, Rule: e.Rule, Message: e.Message}}
	}
	bytes := 0
	for i := range all {
		one := &errdetails.BadRequest_FieldViolation{
			Field:       shorten(translate(all[i].Path)),
			Description: shorten(all[i].Message),
		}
		bytes += protobuf.Size(one)
		if bytes > maxViolationBytes && i > 0 {
			break
		}
		out = append(out, one)
	}
	return out
}

// pathOf returns a function that translates the path of a value from names of the API to names of the request.
func (k *kind) pathOf(in *input) func(path string) string {
	return func(path string) string {
		steps := failure.Steps(path)
		if len(steps) == 0 {
			return string(k.ResourceField)
		}
		names := append([]any{string(k.ResourceField)}, k.steps(steps, in)...)
		return failure.Text(names)
	}
}

// steps translates the steps of a path, like pathOf.
func (k *kind) steps(steps []any, in *input) []any {
	out := make([]any, 0, len(steps))
	message := k.Resource
	for i, step := range steps {
		name, isName := step.(string)
		if isName && name == "resource" && i == 0 {
			continue
		}
		if !isName || message == nil {
			out = append(out, step)
			continue
		}
		if i == 1 && steps[0] == "metadata" {
			return append(out, metadataSteps(steps[1:], in)...)
		}
		f := message.Fields().ByJSONName(name)
		if f == nil {
			out = append(out, step)
			message = nil
			continue
		}
		out = append(out, string(f.Name()))
		message = f.Message()
		if f.IsMap() {
			message = nil
		}
	}
	return out
}

// metadataSteps translates steps in the metadata. The service has labels as a list, a message has them as a map.
func metadataSteps(steps []any, in *input) []any {
	name, _ := steps[0].(string)
	var keys []string
	switch name {
	case "expiresAt":
		return append([]any{"expires"}, steps[1:]...)
	case "labels":
		keys = in.labels
	case "annotations":
		keys = in.annotations
	}
	if len(steps) > 1 {
		if at, isIndex := steps[1].(int); isIndex && at < len(keys) {
			return []any{name, keys[at]}
		}
	}
	return steps
}

// renamed returns a function that translates the names of arguments in paths.
func renamed(names map[string]string) func(path string) string {
	return func(path string) string {
		if name, ok := names[path]; ok {
			return name
		}
		return path
	}
}

// warningHeader is the header with warnings about a successful change. deletionHeader is the header with the state of a
// deletion.
const (
	warningHeader  = "Sluice-Warning"
	deletionHeader = "Sluice-Deletion"
)

// maxWarningBytes is the maximum size of all warnings in an answer, unless a single one is larger; see
// [maxViolationBytes].
const maxWarningBytes = 2 << 10

// warningText formats a warning as the value of a header: in ASCII and on one line.
func warningText(w failure.Warning) string {
	text := fmt.Sprintf("%s: %s", w.Code, w.Message)
	quoted := strconv.QuoteToASCII(failure.ShortenPath(text))
	return quoted[1 : len(quoted)-1]
}
