package jsontree_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/backend/service/jsontree"
)

// texts are JSON and what is nearly so.
func texts() []string {
	deep := strings.Repeat(`{"a":`, jsontree.MaxDepth-1) + "1" + strings.Repeat("}", jsontree.MaxDepth-1)
	return []string{
		`{}`, ` { } `, `{"a":1}`, `{"a":null,"b":[null,{"c":null}],"d":{"e":null}}`, `{"a":1,"a":2}`, `{"a":1,"a":null}`,
		`{"a":-0.5e+10,"b":0,"c":1E5,"d":-0}`, `{"a":01}`, `{"a":1.}`, `{"a":.5}`, `{"a":1e}`, `{"a":-}`, `{"a":+1}`, `{"a":tru}`, `{"a":nul}`,
		`{"a":"\u00e9\n\ud83d\ude00\ud800"}`, "{\"a\":\"\xff\"}", "{\"a\":\"\x01\"}", `{"a":"\x"}`, `{"a":"é😀"}`, `{"é":1}`, `{"a\"b":"c\\"}`, `{"a":"`, `{"a":"\`,
		`{"a":1,}`, `{,}`, `{"a"}`, `{"a":}`, `{"a":[1,]}`, `{"a":[}`, `{"a":[]}`, `{"a":[1 2]}`, `{"a":1}x`, `{"a":1} {}`, `[]`, `null`, `1`, ``, ` `, `{`, `{"a":{`,
		deep, `{"a":` + deep + `}`, `{"a":true,"b":false}`, `{"<&>":"<&>\u2028"}`, "{\"a\":\"\x7f\u2028\"}",
	}
}

// plain is what [encoding/json] reads, without nulls.
func plain(raw []byte) (map[string]any, bool) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var out map[string]any
	if err := dec.Decode(&out); err != nil || out == nil {
		return nil, false
	}
	jsontree.DropNulls(out)
	if _, err := jsontree.Object(jsontree.Given(out)); err != nil {
		return nil, false
	}
	_, err := dec.Token()
	return out, err != nil && err.Error() == "EOF"
}

func check(t *testing.T, raw []byte) {
	t.Helper()
	want, ok := plain(raw)
	got, err := jsontree.Parse(string(raw))
	if ok != (err == nil) || ok && !reflect.DeepEqual(got, want) {
		t.Fatalf("%q: %v %v, encoding/json: %v %t", raw, got, err, want, ok)
	}
	if !ok {
		return
	}
	again, err := jsontree.Append(nil, got)
	marshalled, wantErr := json.Marshal(got)
	if err != nil || wantErr != nil || !bytes.Equal(again, marshalled) {
		t.Fatalf("%s %v, json.Marshal: %s %v", again, err, marshalled, wantErr)
	}
}

func TestTree_ATreeIsReadAndWrittenAsByEncodingJSON(t *testing.T) {
	for _, text := range texts() {
		check(t, []byte(text))
	}
}

func FuzzTree(f *testing.F) {
	for _, text := range texts() {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, raw []byte) { check(t, raw) })
}

func TestTree_WhatIsNoJSONIsNotWritten(t *testing.T) {
	for _, n := range []json.Number{"1x", "-", "01"} {
		if raw, err := jsontree.Append(nil, map[string]any{"a": []any{n}}); err == nil {
			t.Errorf("%v: %s", n, raw)
		}
	}
}

func TestTree_ATextIsWrittenAsByEncodingJSON(t *testing.T) {
	for _, text := range []string{"", "plain", "<é>", "\"\\\n", "\x7f\u2028\xff"} {
		want, _ := json.Marshal(text)
		if got := jsontree.AppendText(nil, text); !bytes.Equal(got, want) {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
