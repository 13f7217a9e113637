package transport_test

import (
	"slices"
	"testing"

	"github.com/sluicegw/sluice/graph/transport"
)

const (
	plainJSON = "application/json"
	response  = "application/graphql-response+json"
)

func TestAccept_TheAnswerHasTheMediaTypeThatTheClientPrefers(t *testing.T) {
	for accept, want := range map[string]string{
		"":                                plainJSON,
		"*/*":                             plainJSON,
		"application/*":                   plainJSON,
		plainJSON:                         plainJSON,
		response:                          response,
		"Application/JSON":                plainJSON,
		response + "," + plainJSON:        response,
		plainJSON + "," + response:        plainJSON,
		response + ";q=0.1, " + plainJSON: plainJSON,
		"application/*;q=0.2, " + response + ";q=0.1": plainJSON,
		response + ", application/json;q=0.9":         response, // Apollo
		"*/*, " + response:                            response,
		response + "; charset=utf-8":                  response,
		"text/html":                                   "",
		plainJSON + ";q=0":                            "",
		"*/*;q=0.5, application/json;q=0":             response,
		plainJSON + ";q=nonsense":                     "",
		plainJSON + ";q=2":                            "",
		response + ", application/graphql+json, " + plainJSON + ", text/event-stream, multipart/mixed": response, // urql
	} {
		if got := transport.Negotiate([]string{accept}, plainJSON, response); got != want {
			t.Errorf("%q: %q, want %q", accept, got, want)
		}
	}
	if got := transport.Negotiate(nil, plainJSON, response); got != plainJSON {
		t.Errorf("without a header: %q", got)
	}
}

func FuzzAccept(f *testing.F) {
	f.Add("application/json;q=0.9, */*;q=0")
	f.Add(";;q=,=;,/")
	f.Fuzz(func(t *testing.T, accept string) {
		if got := transport.Negotiate([]string{accept}, plainJSON, response); !slices.Contains([]string{"", plainJSON, response}, got) {
			t.Errorf("%q was not offered", got)
		}
	})
}
