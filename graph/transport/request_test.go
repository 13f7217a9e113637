package transport_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"reflect"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/graph/transport"
)

func TestRequest_ARequestIsReadFromABodyAndFromParameters(t *testing.T) {
	want := transport.Request{
		Query: "query Q($n: Int) { a }", OperationName: "Q", DocumentID: "sha256:00",
		Variables: map[string]any{"n": json.Number("9007199254740993")}, Extensions: map[string]any{"cost": true, "persistedQuery": map[string]any{"version": json.Number("1"), "sha256Hash": "00"}},
	}
	const extensions = `{"x":[{"large":1}],"cost":true,"persistedQuery":{"version":1,"sha256Hash":"00","x":{}}}`
	got, err := transport.ParseBody([]byte(`{"query":"query Q($n: Int) { a }","operationName":"Q","documentId":"sha256:00","variables":{"n":9007199254740993},"extensions":` + extensions + `,"other":1}`))
	if err != nil || !reflect.DeepEqual(*got, want) {
		t.Errorf("body: %+v %v", got, err)
	}
	q := url.Values{"query": {want.Query}, "operationName": {"Q"}, "documentId": {"sha256:00"}, "variables": {`{"n":9007199254740993}`}, "extensions": {extensions}}
	if got, err = transport.ParseQuery(q.Encode()); err != nil || !reflect.DeepEqual(*got, want) {
		t.Errorf("parameters: %+v %v", got, err)
	}
	got, err = transport.ParseBody([]byte(`{"query":"{ a }","documentId":null,"operationName":null,"variables":null,"extensions":null}`))
	if err != nil || !reflect.DeepEqual(*got, transport.Request{Query: "{ a }"}) {
		t.Errorf("null: %+v %v", got, err)
	}
}

func TestRequest_WhatIsNoRequestIsRefusedAndNotQuoted(t *testing.T) {
	for body, want := range map[string]string{
		``:                              "not valid JSON",
		`{"query":"secret`:              "not valid JSON",
		`[{"query":"secret"}]`:          "a JSON object",
		`"secret"`:                      "a JSON object",
		`null`:                          "a JSON object",
		`{"query":["secret"]}`:          "query: a string",
		`{"variables":"secret"}`:        "variables: an object",
		`{"variables":[1]}`:             "variables: an object",
		`{"qeury":"secret"}`:            "neither a query",
		`{"extensions":0}`:              "extensions: an object",
		`{"operationName":1,"query":2}`: "operationName: a string",
		`{"variables":` + strings.Repeat(`{"a":`, 300) + `1` + strings.Repeat(`}`, 301): "nested deeper",
	} {
		_, err := transport.ParseBody([]byte(body))
		if err == nil || !strings.Contains(err.Message, want) || strings.Contains(err.Message, "secret") {
			t.Errorf("%.40s: %v", body, err)
		}
	}
	for _, raw := range []string{"query=%zz", "variables={", "extensions=x", "variables=1"} {
		if _, err := transport.ParseQuery(raw); err == nil {
			t.Errorf("%s is accepted", raw)
		}
	}
}

// BenchmarkBody reads the request of one network.
func BenchmarkBody(b *testing.B) {
	body := []byte(`{"query":"query($ns:String!,$name:String!){network(namespace:$ns,name:$name){id metadata{uid name namespace revision generation createdAt updatedAt} spec{resource{description adminStateUp mtu}} status{resource{phase:status}}}}","variables":{"ns":"ns-07","name":"network-004711"}}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := transport.ParseBody(body); err != nil {
			b.Fatal(err)
		}
	}
}

func TestRequest_TheValuesOfARequestAreThoseOfEncodingJSON(t *testing.T) {
	variables := `{"a":"x\"\\\u00e9\ud83d\ude00","\u0062":[1,-0,1.5e3,true,false,null,{},[]],"a":{"c":"last"},"":{"":""}}`
	var want map[string]any
	dec := json.NewDecoder(strings.NewReader(variables))
	dec.UseNumber()
	if err := dec.Decode(&want); err != nil {
		t.Fatal(err)
	}
	got, err := transport.ParseBody([]byte(`{"variables":1,"\u0071uery":"{ \"b\" }","variables":` + variables + `}`))
	if err != nil || !reflect.DeepEqual(got.Variables, want) || got.Query != `{ "b" }` {
		t.Errorf("%+v %v, want %v", got, err, want)
	}
}

func FuzzBody(f *testing.F) {
	f.Add([]byte(`{"query":"{ a }","variables":{"a":[1,{"b":"\"{["}]}}`))
	for _, text := range []string{"{\"a\":\"\x01\"}", `{"a":"\x"}`, `{"a":01}`, `[1,]`, `{"a":-}`, `{"a":1.}`, `{"a":1e+}`, "{}\x00", "\ufeff{}", `{} {}`, strings.Repeat("[", 300)} {
		f.Add([]byte(text))
	}
	f.Add([]byte(`{"extensions":{"persistedQuery":{"version":1,"sha256Hash":"00"}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := transport.ParseBody(data)
		if (r == nil) == (err == nil) || r != nil && !json.Valid(data) {
			t.Errorf("%v %v", r, err)
		}
		if err != nil && json.Valid(data) == (err.Message == "the body is not valid JSON") {
			t.Errorf("%q: %v", data, err)
		}
	})
}

func FuzzParameters(f *testing.F) {
	f.Add("query=%7B+a+%7D&variables=%7B%7D&operationName=A&documentId=x")
	f.Fuzz(func(t *testing.T, raw string) {
		r, err := transport.ParseQuery(raw)
		if (r == nil) == (err == nil) {
			t.Error(fmt.Sprint(r, err))
		}
	})
}
