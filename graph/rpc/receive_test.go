package rpc_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/sluicegw/sluice/backend/service/servicetest"
	"github.com/sluicegw/sluice/graph/rpc"
)

// raw is a request by its bytes.
type raw struct {
	method, path string
	header       map[string]string
	body         []byte
}

// ended is how a request has ended.
type ended struct {
	status int
	header http.Header
	// code, message and info are those of its error; zero for none.
	code    connect.Code
	message string
	info    *errdetails.ErrorInfo
	retry   *errdetails.RetryInfo
	body    string
}

// do sends a request.
func (w *world) do(t testing.TB, r raw) ended {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), r.method, w.url+r.path, bytes.NewReader(r.body))
	if err != nil {
		t.Fatal(err)
	}
	for key, value := range r.header {
		req.Header.Set(key, value)
	}
	res, err := w.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	out := ended{status: res.StatusCode, header: res.Header, body: string(body)}
	trailer := res.Header.Clone()
	maps.Copy(trailer, res.Trailer)
	if code := trailer.Get("Grpc-Status"); code != "" {
		out.grpc(t, code, trailer)
	} else {
		out.connect(t, body)
	}
	return out
}

// grpc reads the error of an answer of gRPC.
func (e *ended) grpc(t testing.TB, code string, trailer http.Header) {
	t.Helper()
	n, err := strconv.Atoi(code)
	if err != nil {
		t.Fatal(err)
	}
	e.code, e.message = connect.Code(n), trailer.Get("Grpc-Message")
	details, err := connect.DecodeBinaryHeader(trailer.Get("Grpc-Status-Details-Bin"))
	if err != nil {
		t.Fatal(err)
	}
	var all status.Status
	if err := proto.Unmarshal(details, &all); err != nil {
		t.Fatal(err)
	}
	for _, d := range all.Details {
		e.detail(t, d.TypeUrl[strings.LastIndexByte(d.TypeUrl, '/')+1:], d.Value)
	}
}

// connect reads the error of an answer of Connect.
func (e *ended) connect(t testing.TB, body []byte) {
	t.Helper()
	var all struct {
		Code, Message string
		Details       []struct{ Type, Value string }
	}
	if json.Unmarshal(body, &all) != nil || all.Code == "" {
		return
	}
	if err := e.code.UnmarshalText([]byte(all.Code)); err != nil {
		t.Fatal(err)
	}
	e.message = all.Message
	for _, d := range all.Details {
		value, err := base64.RawStdEncoding.DecodeString(d.Value)
		if err != nil {
			t.Fatal(err)
		}
		e.detail(t, d.Type, value)
	}
}

func (e *ended) detail(t testing.TB, name string, value []byte) {
	t.Helper()
	var err error
	switch name {
	case "google.rpc.ErrorInfo":
		e.info = new(errdetails.ErrorInfo)
		err = proto.Unmarshal(value, e.info)
	case "google.rpc.RetryInfo":
		e.retry = new(errdetails.RetryInfo)
		err = proto.Unmarshal(value, e.retry)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// enveloped returns messages with their prefixes.
func enveloped(flags byte, messages ...[]byte) (out []byte) {
	for _, m := range messages {
		out = append(out, flags)
		out = binary.BigEndian.AppendUint32(out, uint32(len(m)))
		out = append(out, m...)
	}
	return out
}

// zipped compresses data.
func zipped(data []byte) []byte {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, _ = z.Write(data)
	_ = z.Close()
	return out.Bytes()
}

const widgets = "/sluice.kinds.v1.WidgetService/"

func TestReceive_ErrorsOfTheProtocolsAreLikeAllOthers(t *testing.T) {
	w := open(t)
	get := []byte("\x0a\x01a")
	grpc := func(more ...string) map[string]string {
		out := map[string]string{"Content-Type": "application/grpc"}
		for i := 0; i < len(more); i += 2 {
			out[more[i]] = more[i+1]
		}
		return out
	}
	connectJSON := func(more ...string) map[string]string {
		out := grpc(more...)
		out["Content-Type"] = "application/json"
		return out
	}
	corrupt := zipped(bytes.Repeat([]byte("a"), 100))
	corrupt[len(corrupt)-5] ^= 1
	for name, c := range map[string]struct {
		raw
		code    connect.Code
		reason  string
		message string
	}{
		"another method":              {raw{path: widgets + "FrobWidget", header: grpc(), body: enveloped(0, get)}, connect.CodeUnimplemented, "NOT_FOUND", "there is no method"},
		"another method in JSON":      {raw{path: "/None/Get", header: connectJSON(), body: []byte("{}")}, connect.CodeUnimplemented, "NOT_FOUND", "there is no method"},
		"no slash":                    {raw{path: "/", header: grpc()}, connect.CodeUnimplemented, "NOT_FOUND", "there is no method"},
		"another codec":               {raw{path: widgets + "GetWidget", header: map[string]string{"Content-Type": "application/grpc+thrift"}, body: enveloped(0, get)}, connect.CodeUnimplemented, "BAD_USER_INPUT", "application/grpc-web"},
		"another compression":         {raw{path: widgets + "GetWidget", header: grpc("Grpc-Encoding", "zstd"), body: enveloped(1, get)}, connect.CodeUnimplemented, "BAD_USER_INPUT", "gzip and identity"},
		"another compression in JSON": {raw{path: widgets + "GetWidget", header: connectJSON("Content-Encoding", "br"), body: []byte("{}")}, connect.CodeUnimplemented, "BAD_USER_INPUT", "gzip and identity"},
		"no timeout":                  {raw{path: widgets + "GetWidget", header: grpc("Grpc-Timeout", "5x"), body: enveloped(0, get)}, connect.CodeInvalidArgument, "BAD_USER_INPUT", "at most 8 digits"},
		"a long timeout":              {raw{path: widgets + "GetWidget", header: grpc("Grpc-Timeout", "123456789S"), body: enveloped(0, get)}, connect.CodeInvalidArgument, "BAD_USER_INPUT", "at most 8 digits"},
		"a negative timeout":          {raw{path: widgets + "GetWidget", header: connectJSON("Connect-Timeout-Ms", "-1"), body: []byte("{}")}, connect.CodeInvalidArgument, "BAD_USER_INPUT", "milliseconds"},
		"a deadline that has passed":  {raw{path: widgets + "GetWidget", header: grpc("Grpc-Timeout", "0n"), body: enveloped(0, get)}, connect.CodeDeadlineExceeded, "TIMEOUT", ""},
		"no message":                  {raw{path: widgets + "GetWidget", header: grpc()}, connect.CodeInvalidArgument, "BAD_USER_INPUT", "no message"},
		"half a prefix":               {raw{path: widgets + "GetWidget", header: grpc(), body: []byte{0, 0}}, connect.CodeInvalidArgument, "BAD_USER_INPUT", "no message"},
		"half a message":              {raw{path: widgets + "GetWidget", header: grpc(), body: enveloped(0, get)[:6]}, connect.CodeInvalidArgument, "BAD_USER_INPUT", "ends before its message"},
		"two messages":                {raw{path: widgets + "GetWidget", header: grpc(), body: enveloped(0, get, get)}, connect.CodeInvalidArgument, "BAD_USER_INPUT", "more than one message"},
		"other flags":                 {raw{path: widgets + "GetWidget", header: grpc(), body: enveloped(2, get)}, connect.CodeInvalidArgument, "BAD_USER_INPUT", "flags 2"},
		"compressed without a header": {raw{path: widgets + "GetWidget", header: grpc(), body: enveloped(1, zipped(get))}, connect.CodeInvalidArgument, "BAD_USER_INPUT", "Grpc-Encoding"},
		"no gzip":                     {raw{path: widgets + "GetWidget", header: grpc("Grpc-Encoding", "gzip"), body: enveloped(1, get)}, connect.CodeInvalidArgument, "BAD_USER_INPUT", "not gzip"},
		"corrupt gzip":                {raw{path: widgets + "GetWidget", header: connectJSON("Content-Encoding", "gzip"), body: corrupt}, connect.CodeInvalidArgument, "BAD_USER_INPUT", "not gzip"},
		"no protobuf":                 {raw{path: widgets + "GetWidget", header: grpc(), body: enveloped(0, []byte{0x0a, 0x05, 'a'})}, connect.CodeInvalidArgument, "BAD_USER_INPUT", "no message of this method"},
		"no UTF-8":                    {raw{path: widgets + "GetWidget", header: grpc(), body: enveloped(0, []byte{0x0a, 0x01, 0xff})}, connect.CodeInvalidArgument, "BAD_USER_INPUT", "no message of this method"},
		"no JSON":                     {raw{path: widgets + "GetWidget", header: connectJSON(), body: []byte("{")}, connect.CodeInvalidArgument, "BAD_USER_INPUT", "JSON"},
		"a large message":             {raw{path: widgets + "GetWidget", header: grpc(), body: enveloped(0, make([]byte, 4<<20+1))}, connect.CodeResourceExhausted, "LIMIT_EXCEEDED", "4194304 bytes"},
		"a message that inflates":     {raw{path: widgets + "GetWidget", header: grpc("Grpc-Encoding", "gzip"), body: enveloped(1, zipped(make([]byte, 64<<20)))}, connect.CodeResourceExhausted, "LIMIT_EXCEEDED", "uncompressed"},
		"JSON that inflates":          {raw{path: widgets + "GetWidget", header: connectJSON("Content-Encoding", "gzip"), body: zipped(make([]byte, 64<<20))}, connect.CodeResourceExhausted, "LIMIT_EXCEEDED", "uncompressed"},
		"a large request of a stream": {raw{path: widgets + "WatchWidgets", header: grpc(), body: enveloped(0, make([]byte, 64<<10+1))}, connect.CodeResourceExhausted, "LIMIT_EXCEEDED", "65536 bytes"},
		"a stream of no protobuf":     {raw{path: widgets + "WatchWidgets", header: grpc(), body: enveloped(0, []byte{0x0a})}, connect.CodeInvalidArgument, "BAD_USER_INPUT", "no message of this method"},
	} {
		t.Run(name, func(t *testing.T) {
			c.method = http.MethodPost
			got := w.do(t, c.raw)
			if got.code != c.code || got.info.GetReason() != c.reason || !strings.Contains(got.message, c.message) {
				t.Fatalf("%v %s: %s", got.code, got.info, got.message)
			}
			if got.info.GetDomain() != rpc.Domain || got.info.GetMetadata()["requestId"] != "request-1" {
				t.Error(got.info)
			}
		})
	}
}

func TestReceive_RequestsOfNoProtocolAreToldWhatIsAccepted(t *testing.T) {
	w := open(t)
	form := map[string]string{"Content-Type": "application/x-www-form-urlencoded"}
	got := w.do(t, raw{method: http.MethodPost, path: widgets + "GetWidget", header: form, body: []byte("{}")})
	if got.status != http.StatusUnsupportedMediaType || !strings.Contains(got.header.Get("Accept-Post"), "application/json") ||
		!strings.Contains(got.body, "application/json") {
		t.Error(got)
	}
	got = w.do(t, raw{method: http.MethodGet, path: widgets + "GetWidget"})
	if got.header.Get("Allow") != http.MethodPost {
		t.Error(got)
	}
	if names := w.refused.take(); !slices.Equal(names, []string{"GetWidget", "GetWidget"}) {
		t.Error("recorded:", names)
	}
}

// TestReceive_AllFormsAreRead sends the same request in all forms, compressed and not.
func TestReceive_AllFormsAreRead(t *testing.T) {
	w := open(t)
	w.UpsertWidget(servicetest.Named("a"), "t")
	binary := protowire.AppendString(protowire.AppendTag(nil, 2, protowire.BytesType), "a")
	if f := w.method("GetWidget").Input().Fields().ByName("name"); f.Number() != 2 {
		binary = protowire.AppendString(protowire.AppendTag(nil, f.Number(), protowire.BytesType), "a")
	}
	text := []byte(`{"name": "a"}`)
	for contentType, message := range map[string][]byte{
		"application/grpc": binary, "application/grpc+proto": binary, "application/grpc+json": text,
		"application/grpc-web": binary, "application/grpc-web+proto": binary, "application/grpc-web+json": text,
		"application/proto": binary, "application/json": text, "application/json; charset=UTF-8": text,
		"Application/JSON": text, "application/grpc+json; charset=utf-8": text,
	} {
		for _, compressed := range []bool{false, true} {
			header := map[string]string{"Content-Type": contentType}
			body := message
			flags := byte(0)
			if compressed {
				body = zipped(body)
				flags = 1
				header["Grpc-Encoding"] = "gzip"
			}
			if strings.Contains(contentType, "grpc") {
				body = enveloped(flags, body)
			} else if compressed {
				header["Content-Encoding"] = "gzip"
			}
			got := w.do(t, raw{method: http.MethodPost, path: widgets + "GetWidget", header: header, body: body})
			if got.status != http.StatusOK || got.code != 0 || len(got.body) < 30 {
				t.Errorf("%s, compressed %t: %+v", contentType, compressed, got)
			}
		}
	}
}

// TestReceive_CharsetsDoNotLoosenWhatIsAccepted since the content type chooses how a message is read.
func TestReceive_CharsetsDoNotLoosenWhatIsAccepted(t *testing.T) {
	w := open(t)
	for contentType, want := range map[string]int{
		"application/json": http.StatusBadRequest, "application/json; charset=utf-8": http.StatusBadRequest,
		"application/json; charset=latin1":         http.StatusUnsupportedMediaType,
		"application/json; charset=utf-8; other=a": http.StatusUnsupportedMediaType,
		"application/proto; charset=utf-8":         http.StatusUnsupportedMediaType,
	} {
		got, text := w.post("CreateWidget", contentType, []byte(`{"widget": {"metadata": {"name": "a"}, "spec": {"titel": ""}}}`))
		if got != want {
			t.Error(contentType, got, text)
		}
		if want == http.StatusBadRequest && !strings.Contains(text, "titel") {
			t.Error(contentType, text)
		}
	}
}

func TestReceive_WhatAMessageInflatesToIsChargedBeforeItIsInMemory(t *testing.T) {
	w := open(t)
	zeros := zipped(make([]byte, 4<<20))
	if len(zeros) > 16<<10 {
		t.Fatal("it has", len(zeros), "bytes")
	}
	grpc := raw{
		method: http.MethodPost, path: widgets + "GetWidget", body: enveloped(1, zeros),
		header: map[string]string{"Content-Type": "application/grpc", "Grpc-Encoding": "gzip"},
	}
	unary := raw{
		method: http.MethodPost, path: widgets + "GetWidget", body: zeros,
		header: map[string]string{"Content-Type": "application/proto", "Content-Encoding": "gzip"},
	}
	for _, r := range []raw{grpc, unary} {
		w.held.Store(0)
		w.room.Store(0)
		w.do(t, r)
		if held := w.held.Load(); held < 4<<20 || held > 16<<20 {
			t.Error("charged:", held)
		}
		w.held.Store(0)
		w.room.Store(256 << 10)
		got := w.do(t, r)
		if got.code != connect.CodeUnavailable || got.retry == nil || w.held.Load() > 256<<10 {
			t.Errorf("%+v, charged %d", got, w.held.Load())
		}
	}
}

// FuzzReceive sends any bytes as enveloped requests: they are refused in the form of all errors, or answered.
func FuzzReceive(f *testing.F) {
	f.Add(enveloped(0, []byte("\x0a\x01a")), "application/grpc", "", "")
	f.Add(enveloped(1, zipped([]byte("\x0a\x01a"))), "application/grpc-web", "gzip", "1S")
	f.Add([]byte(`{"name": "a"}`), "application/json; charset=utf-8", "identity", "10")
	f.Add(zipped([]byte(`{}`)), "application/proto", "gzip", "x")
	w := open(f)
	f.Fuzz(func(t *testing.T, body []byte, contentType, encoding, timeout string) {
		w.with(t)
		plain := func(text string) bool {
			return !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' })
		}
		if !plain(contentType) || !plain(encoding) || !plain(timeout) {
			return
		}
		for _, method := range []string{"GetWidget", "ListWidgets", "UpsertWidget"} {
			got := w.do(t, raw{method: http.MethodPost, path: widgets + method, body: body, header: map[string]string{
				"Content-Type": contentType, "Grpc-Encoding": encoding, "Content-Encoding": encoding,
				"Grpc-Timeout": timeout, "Connect-Timeout-Ms": timeout,
			}})
			if got.code == connect.CodeInternal || got.code == connect.CodeUnknown || got.code != 0 && got.info == nil {
				t.Fatalf("%s: %+v", method, got)
			}
		}
	})
}
