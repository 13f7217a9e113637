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
)

// Request has the parameters of a request as the GraphQL over HTTP specification defines them, including documentId of
// its appendix on persisted documents. The message subscribe of a WebSocket has the same parameters.
type Request struct {
	Query         string
	OperationName string
	DocumentID    string
	// Variables is nil if there are none. Numbers are [json.Number].
	Variables map[string]any
	// Extensions has the known extensions; nil if there are none.
	Extensions map[string]any
}

// maxNesting is the maximum nesting of the JSON in a request.
const maxNesting = 200

// parseRequest parses a request in JSON. As the specification demands, null parameters count as absent, and unknown
// parameters are ignored. The errors are for the client and do not quote the input.
func parseRequest(data []byte) (*Request, error) {
	switch err := checkNesting(data); {
	case err != nil && !json.Valid(data), err == nil && !gjson.ValidBytes(data): // gjson's is recursive
		return nil, errors.New("the body is not valid JSON")
	case err != nil:
		return nil, err
	}
	text := string(data)
	if err := checkText(text); err != nil {
		return nil, err
	}
	body := gjson.Parse(text)
	if !body.IsObject() {
		return nil, errors.New("a request is a JSON object")
	}
	var out Request
	var bad [5]error // in the order of the fields; the last one of equal names counts
	body.ForEach(func(name, v gjson.Result) bool {
		switch name.Str {
		case "query":
			out.Query, bad[0] = textOf("query", v)
		case "operationName":
			out.OperationName, bad[1] = textOf("operationName", v)
		case "documentId":
			out.DocumentID, bad[2] = textOf("documentId", v)
		case "variables":
			out.Variables, bad[3] = objectOf("variables", v)
		case "extensions":
			out.Extensions, bad[4] = extensionsOf(v)
		}
		return true
	})
	return &out, errors.Join(bad[:]...)
}

// textOf returns a string parameter. Like all values it is copied, because a substring would keep the whole request in
// memory.
func textOf(name string, v gjson.Result) (string, error) {
	if v.Type != gjson.String && v.Type != gjson.Null {
		return "", fmt.Errorf("%s: a string or null is accepted", name)
	}
	return strings.Clone(v.Str), nil
}

func objectOf(name string, v gjson.Result) (map[string]any, error) {
	if !v.IsObject() && v.Type != gjson.Null {
		return nil, fmt.Errorf("%s: an object or null is accepted", name)
	}
	out, _ := valueOf(v).(map[string]any)
	return out, nil
}

// extensionsOf returns the extensions that the gateway knows. Others are dropped: they may be large, and a stream would
// keep them in memory.
func extensionsOf(v gjson.Result) (map[string]any, error) {
	if !v.IsObject() && v.Type != gjson.Null {
		return nil, errors.New("extensions: an object or null is accepted")
	}
	out := map[string]any{}
	v.ForEach(func(name, e gjson.Result) bool {
		switch {
		case name.Str == "cost" || name.Str == "explain":
			out[name.Str] = e.Type == gjson.True
		case name.Str == "persistedQuery" && e.Type != gjson.Null:
			query := map[string]any{}
			for _, field := range []string{"version", "sha256Hash"} {
				if value := e.Get(field); value.Exists() && !value.IsObject() && !value.IsArray() {
					query[field] = valueOf(value)
				}
			}
			out[name.Str] = query
		}
		return true
	})
	if len(out) == 0 {
		return nil, nil
	}
	return out, nil
}

// valueOf decodes a value as encoding/json does with UseNumber.
func valueOf(v gjson.Result) any {
	switch {
	case v.Type == gjson.String:
		return strings.Clone(v.Str)
	case v.Type == gjson.Number:
		return json.Number(strings.Clone(v.Raw))
	case v.IsObject():
		out := map[string]any{}
		v.ForEach(func(name, e gjson.Result) bool {
			out[strings.Clone(name.Str)] = valueOf(e)
			return true
		})
		return out
	case v.IsArray():
		out := []any{}
		v.ForEach(func(_, e gjson.Result) bool {
			out = append(out, valueOf(e))
			return true
		})
		return out
	case v.Type == gjson.Null:
		return nil
	}
	return v.Type == gjson.True
}

// namesDocument reports whether the request contains a document or names one.
func (r *Request) namesDocument() bool {
	return r.Query != "" || r.DocumentID != "" || r.Extensions["persistedQuery"] != nil
}

// checkNesting returns an error if JSON is nested too deeply for code that reads it recursively.
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

// checkText returns an error for invalid UTF-8 and for half surrogate pairs, which Go's JSON decoder would replace by
// U+FFFD.
func checkText(text string) error {
	if !utf8.ValidString(text) {
		return errors.New("the text is not UTF-8")
	}
	if !WholeCharacters(text) {
		return errors.New("a string has the escape of half a character (a surrogate without its other half)")
	}
	return nil
}

// WholeCharacters reports whether all escapes of surrogates in a text form pairs. The text is JSON or a GraphQL string.
func WholeCharacters(text string) bool {
	if !strings.Contains(text, `\u`) {
		return true
	}
	for i := 0; i < len(text); {
		if text[i] != '\\' {
			i++
			continue
		}
		length, ok := escapeLength(text[i:])
		if !ok {
			return false
		}
		i += length
	}
	return true
}

// escapeLength returns the length of the escape at the start of s, which may be a surrogate pair. ok is false for half
// a pair.
func escapeLength(s string) (length int, ok bool) {
	const unit = len(`\u0000`)
	first, isUnit := codeUnit(s)
	switch {
	case !isUnit:
		return min(2, len(s)), true
	case !utf16.IsSurrogate(first):
		return unit, true
	}
	second, _ := codeUnit(s[unit:])
	return 2 * unit, utf16.DecodeRune(first, second) != utf8.RuneError
}

// codeUnit decodes an escape of the form \uXXXX.
func codeUnit(s string) (rune, bool) {
	if len(s) < 6 || s[:2] != `\u` {
		return 0, false
	}
	n, err := strconv.ParseUint(s[2:6], 16, 16)
	return rune(n), err == nil
}

// parseBody reads the body of a POST.
func parseBody(data []byte) (*Request, *gqlerror.Error) {
	r, err := parseRequest(data)
	if err != nil {
		return nil, badRequest(err.Error())
	}
	if !r.namesDocument() {
		return nil, badRequest("the request has neither a query nor a documentId")
	}
	return r, nil
}

// parseQuery reads the parameters of a GET.
func parseQuery(raw string) (*Request, *gqlerror.Error) {
	q, err := url.ParseQuery(raw)
	if err != nil {
		return nil, badRequest("the query string is malformed")
	}
	for _, values := range q {
		if !utf8.ValidString(strings.Join(values, "")) {
			return nil, badRequest("the query string is not UTF-8")
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
	data, _ := json.Marshal(fields) // the values are valid JSON
	return parseBody(data)
}
