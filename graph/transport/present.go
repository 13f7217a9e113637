package transport

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/sluicegw/sluice/backend/service/failure"
)

const (
	// maxErrors is how many errors a client is told of a request that is not executed.
	maxErrors = 50
	// maxMessage is how long the message of such an error may be, in bytes: those of
	// validation name much of the schema.
	maxMessage = 1024
	// maxEcho is how many characters of a request's own text an error repeats.
	maxEcho = 128
)

// Present puts errors into the words and the form that clients read.
func (e *Executor) Present(ctx context.Context, errs gqlerror.List) gqlerror.List {
	if len(errs) > maxErrors {
		more := fmt.Sprintf("there are %d errors more", len(errs)-maxErrors)
		errs = append(errs[:maxErrors:maxErrors], &gqlerror.Error{Message: more, Extensions: errs[0].Extensions})
	}
	for _, err := range errs {
		err.Message = brief(err.Message)
		inVariable(err)
	}
	return e.exec.DispatchError(graphql.WithOperationContext(ctx, &graphql.OperationContext{}), errs).Errors
}

// The parts of gqlparser's messages that a request can make long: literals, which
// stand at the end, what is quoted, and words.
var (
	literalEcho = regexp.MustCompile(`(?s)(value: )(.+)$`)
	quotedEcho  = regexp.MustCompile(`(?s)()("(?:[^"\\]|\\.){129,}")`)
	wordEcho    = regexp.MustCompile(`()([^\s"]{129,})`)
)

// brief cuts what a message repeats of a request, and the message itself.
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

// inVariable says of an error about the value of a variable where in it, as errors about
// arguments do: a request that is not executed has no place in an answer.
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
	for k, v := range err.Extensions {
		ext[k] = v
	}
	err.Message, err.Path, err.Extensions = "$"+failure.Text(path)+": "+err.Message, nil, ext
}
