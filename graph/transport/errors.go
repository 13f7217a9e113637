package transport

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/backend/service/failure"
)

// refusal returns the error for a request that is not executed.
func refusal(code failure.Code, message string) *gqlerror.Error {
	return &gqlerror.Error{Message: message, Extensions: map[string]any{"code": string(code)}}
}

func badRequest(message string) *gqlerror.Error { return refusal(failure.CodeBadUserInput, message) }

// exceeded returns the error for a request that exceeds a limit. key is the name of the setting.
func exceeded(key string, limit int64, message string) *gqlerror.Error {
	err := refusal(failure.CodeLimitExceeded, message)
	err.Extensions["limit"], err.Extensions["setting"] = limit, key
	return err
}

// retryable returns the error for a request that the client may send again.
func retryable(code failure.Code, message string) *gqlerror.Error {
	err := refusal(code, message)
	err.Extensions["retryable"] = true
	return err
}

// overBudget returns the error if there is no memory for a request, an operation or an event.
func overBudget(m *budget.Memory) *gqlerror.Error {
	err := retryable(failure.CodeUnavailable, budget.ErrBusy.Error())
	err.Extensions["setting"], err.Extensions["retryAfter"] = budget.MemoryKey, budget.RetryAfter
	if m != nil {
		err.Extensions["limit"] = m.Most()
	}
	return err
}

const (
	// maxErrors is the maximum number of errors in the answer to a refused request.
	maxErrors = 50
	// maxMessage is the maximum length of an error message in bytes. Messages of gqlparser can list large parts of the
	// schema.
	maxMessage = 1024
	// maxEcho is the maximum number of characters of the request that an error quotes.
	maxEcho = 128
)

// Present returns the form for clients of the errors of a refused request, or of a subscription without memory for its
// next event. It passes them to ExecutorConfig.Answered, too.
func (e *Executor) Present(ctx context.Context, errs gqlerror.List) gqlerror.List {
	if len(errs) > maxErrors {
		more := fmt.Sprintf("there are %d errors more", len(errs)-maxErrors)
		errs = append(errs[:maxErrors:maxErrors], &gqlerror.Error{Message: more, Extensions: errs[0].Extensions})
	}
	out := make(gqlerror.List, len(errs))
	for i, err := range errs {
		err.Message = brief(err.Message)
		inVariable(err)
		out[i] = e.cfg.Present(ctx, err)
	}
	e.cfg.Answered(ctx, nil, out)
	return out
}

// Parts of gqlparser's messages that are quoted from the request and can be long: literals at the end, quoted strings,
// and words.
var (
	literalEcho = regexp.MustCompile(`(?s)(value: )(.+)$`)
	quotedEcho  = regexp.MustCompile(`(?s)()("(?:[^"\\]|\\.){129,}")`)
	wordEcho    = regexp.MustCompile(`()([^\s"]{129,})`)
)

// brief shortens a message and the parts of the request that it quotes.
func brief(message string) string {
	if len(message) <= maxEcho {
		return message
	}
	for _, echo := range []*regexp.Regexp{literalEcho, quotedEcho, wordEcho} {
		message = echo.ReplaceAllStringFunc(message, func(found string) string {
			m := echo.FindStringSubmatch(found)
			if len([]rune(m[2])) <= maxEcho {
				return found
			}
			short := m[1] + failure.Shorten(m[2])
			if strings.HasPrefix(m[2], `"`) {
				short += `"`
			}
			return short
		})
	}
	if len(message) > maxMessage {
		message = strings.ToValidUTF8(message[:maxMessage], "") + "... (cut)"
	}
	return message
}

// inVariable moves the path of an error in a variable to the extensions. The path of an error refers to the answer, and
// a request that is not executed has no answer.
func inVariable(err *gqlerror.Error) {
	if len(err.Path) < 2 || err.Path[0] != ast.PathName("variable") {
		return
	}
	var path []any
	for _, step := range err.Path[1:] {
		switch step := step.(type) {
		case ast.PathName:
			path = append(path, failure.Shorten(string(step)))
		case ast.PathIndex:
			path = append(path, int(step))
		}
	}
	ext := map[string]any{"path": path, "field": failure.Text(path), "variable": path[0]}
	maps.Copy(ext, err.Extensions)
	err.Message = "$" + failure.Text(path) + ": " + err.Message
	err.Path = nil
	err.Extensions = ext
}
