package transport

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/tidwall/gjson"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/sluicegw/sluice/backend/service/failure"
)

// Request has the parameters of the GraphQL over HTTP specification, which are
// also those of a subscribe message on a WebSocket, and the document id of its
// appendix on persisted documents.
type Request struct {
	Query         string
	OperationName string
	DocumentID    string
	// Variables is nil where there are none. Numbers are [json.Number].
	Variables map[string]any
	// Extensions has those that the gateway knows; nil where there are none.
	Extensions map[string]any
}

// maxNesting is how deep the JSON of a request may be nested.
const maxNesting = 200

// UnmarshalJSON reads the JSON form. null stands for what is absent; parameters
// that are not known are ignored, as the specification demands. Its errors are
// for the client and quote nothing of the input.
func (r *Request) UnmarshalJSON(data []byte) error {
	if err := checkNesting(data); err != nil {
		return err
	}
	if err := checkText(data); err != nil {
		return err
	}
	return r.parse(string(data))
}

// parse reads the JSON form, which is valid.
func (r *Request) parse(text string) error {
	body := gjson.Parse(text)
	if !body.IsObject() {
		return errors.New("a request is a JSON object")
	}
	in := values{small: len(text) <= smallRequest}
	var out Request
	var bad [5]error // what is wrong, in the order of the fields; of a name that comes twice the last value counts
	body.ForEach(func(name, v gjson.Result) bool {
		switch name.Str {
		case "query":
			out.Query, bad[0] = in.text("query", v)
		case "operationName":
			out.OperationName, bad[1] = in.text("operationName", v)
		case "documentId":
			out.DocumentID, bad[2] = in.text("documentId", v)
		case "variables":
			out.Variables, bad[3] = in.object("variables", v)
		case "extensions":
			out.Extensions, bad[4] = in.extensions(v)
		}
		return true
	})
	if err := errors.Join(bad[:]...); err != nil {
		return err
	}
	*r = out
	return nil
}

// smallRequest is how long the text of a request may be, in bytes, for its values to
// share its memory. In a longer one each has memory of its own, so that the one that is
// kept does not keep the others.
const smallRequest = 4 << 10

// values are those in the text of a request.
type values struct{ small bool }

func (in values) own(text string) string {
	if in.small {
		return text
	}
	return strings.Clone(text)
}

func (in values) text(name string, v gjson.Result) (string, error) {
	if v.Type != gjson.String && v.Type != gjson.Null {
		return "", fmt.Errorf("%s: a string or null is accepted", name)
	}
	return in.own(v.Str), nil
}

func (in values) object(name string, v gjson.Result) (map[string]any, error) {
	if !v.IsObject() && v.Type != gjson.Null {
		return nil, fmt.Errorf("%s: an object or null is accepted", name)
	}
	out, _ := in.value(v).(map[string]any)
	return out, nil
}

// extensions reads those that the gateway knows; others may be large, and a stream would keep them.
func (in values) extensions(v gjson.Result) (map[string]any, error) {
	if !v.IsObject() && v.Type != gjson.Null {
		return nil, errors.New("extensions: an object or null is accepted")
	}
	var out map[string]any
	set := func(name string, value any) {
		if out == nil {
			out = map[string]any{}
		}
		out[name] = value
	}
	v.ForEach(func(name, e gjson.Result) bool {
		switch name.Str {
		case "cost", "explain":
			set(name.Str, e.Type == gjson.True)
		case "persistedQuery":
			if e.Type == gjson.Null {
				break
			}
			query := map[string]any{}
			for _, field := range []string{"version", "sha256Hash"} {
				if value := e.Get(field); value.Exists() && !value.IsObject() && !value.IsArray() {
					query[field] = in.value(value)
				}
			}
			set(name.Str, query)
		}
		return true
	})
	return out, nil
}

// value is a value as encoding/json decodes it, but for numbers: they keep
// their digits, because int64 does not fit a float.
func (in values) value(v gjson.Result) any {
	switch {
	case v.Type == gjson.String:
		return in.own(v.Str)
	case v.Type == gjson.Number:
		return json.Number(in.own(v.Raw))
	case v.IsObject():
		out := map[string]any{}
		v.ForEach(func(name, e gjson.Result) bool {
			out[in.own(name.Str)] = in.value(e)
			return true
		})
		return out
	case v.IsArray():
		out := []any{}
		v.ForEach(func(_, e gjson.Result) bool {
			out = append(out, in.value(e))
			return true
		})
		return out
	case v.Type == gjson.Null:
		return nil
	}
	return v.Type == gjson.True
}

// namesDocument says whether the request has a document or names one.
func (r *Request) namesDocument() bool {
	return r.Query != "" || r.DocumentID != "" || r.Extensions["persistedQuery"] != nil
}

// checkNesting refuses what is nested too deep, before anything recursive reads it.
func checkNesting(data []byte) error {
	if bytes.Count(data, []byte{'{'})+bytes.Count(data, []byte{'['}) <= maxNesting {
		return nil
	}
	depth, quoted := 0, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > maxNesting {
				return fmt.Errorf("the JSON is nested deeper than %d levels", maxNesting)
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return nil
}

// checkText refuses invalid text, which Go's JSON decoder would silently replace by
// U+FFFD.
func checkText(data []byte) error {
	if !utf8.Valid(data) {
		return errors.New("the text is not UTF-8")
	}
	if !bytes.Contains(data, []byte(`\u`)) {
		return nil
	}
	for i := 0; i < len(data); {
		switch {
		case data[i] != '\\':
			i++
		case !bytes.HasPrefix(data[i:], []byte(`\u`)):
			i += 2
		default:
			unit := codeUnit(data[i:])
			if i += 6; !utf16.IsSurrogate(unit) {
				continue
			}
			if utf16.DecodeRune(unit, codeUnit(data[i:])) == utf8.RuneError {
				return errors.New("a string has the escape of half a character (a surrogate without its other half)")
			}
			i += 6
		}
	}
	return nil
}

// codeUnit reads the escape \uXXXX at the start of b; it returns 0 if there is none.
func codeUnit(b []byte) rune {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0
	}
	n, err := strconv.ParseUint(string(b[2:6]), 16, 16)
	if err != nil {
		return 0
	}
	return rune(n)
}

// parseBody reads the body of a POST.
func parseBody(data []byte) (*Request, *gqlerror.Error) {
	var r Request
	switch err := checkNesting(data); {
	case err != nil && !json.Valid(data), err == nil && !gjson.ValidBytes(data): // that of gjson is recursive
		return nil, badRequest("the body is not valid JSON")
	case err != nil:
		return nil, badRequest(err.Error())
	}
	if err := checkText(data); err != nil {
		return nil, badRequest(err.Error())
	}
	if err := r.parse(string(data)); err != nil {
		return nil, badRequest(err.Error())
	}
	if !r.namesDocument() {
		return nil, badRequest("the request has neither a query nor a documentId")
	}
	return &r, nil
}

// parseQuery reads the parameters of a GET.
func parseQuery(raw string) (*Request, *gqlerror.Error) {
	q, err := url.ParseQuery(raw)
	if err != nil {
		return nil, badRequest("the query string is malformed")
	}
	for _, values := range q {
		for _, v := range values {
			if !utf8.ValidString(v) {
				return nil, badRequest("the query string is not UTF-8")
			}
		}
	}
	fields := map[string]json.RawMessage{}
	for _, name := range []string{"query", "operationName", "documentId"} {
		if q.Has(name) {
			fields[name], _ = json.Marshal(q.Get(name))
		}
	}
	for _, name := range []string{"variables", "extensions"} {
		switch v := q.Get(name); {
		case v == "":
		case !json.Valid([]byte(v)):
			return nil, badRequest(name + ": not valid JSON")
		default:
			fields[name] = json.RawMessage(v)
		}
	}
	data, err := json.Marshal(fields)
	if err != nil {
		return nil, badRequest("the query string is malformed")
	}
	return parseBody(data)
}

func badRequest(message string) *gqlerror.Error {
	return &gqlerror.Error{Message: message, Extensions: map[string]any{"code": string(failure.CodeBadUserInput)}}
}
