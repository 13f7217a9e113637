package rpc_test

import (
	"net/http"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protowire"
)

func TestReflection_ErrorsAreLikeAllOthers(t *testing.T) {
	w := open(t)
	list := protowire.AppendString(protowire.AppendTag(nil, 7, protowire.BytesType), "")
	large := protowire.AppendString(protowire.AppendTag(nil, 3, protowire.BytesType), strings.Repeat("x", 64<<10))
	for _, version := range []string{"v1", "v1alpha"} {
		path := "/grpc.reflection." + version + ".ServerReflection/"
		for name, c := range map[string]struct {
			method, path, contentType string
			header                    map[string]string
			body                      []byte
			status                    int
			code                      connect.Code
			reason                    string
		}{
			"a list":              {path: "ServerReflectionInfo", body: enveloped(0, list), status: 200},
			"zipped":              {path: "ServerReflectionInfo", header: map[string]string{"Grpc-Encoding": "gzip"}, body: enveloped(1, zipped(list)), status: 200},
			"no message":          {path: "ServerReflectionInfo", body: enveloped(0, []byte("\xff")), status: 200, code: connect.CodeInvalidArgument, reason: "BAD_USER_INPUT"},
			"no request in it":    {path: "ServerReflectionInfo", body: enveloped(0, nil), status: 200, code: connect.CodeInvalidArgument, reason: "BAD_USER_INPUT"},
			"a large one":         {path: "ServerReflectionInfo", body: enveloped(0, large), status: 200, code: connect.CodeResourceExhausted, reason: "LIMIT_EXCEEDED"},
			"another compression": {path: "ServerReflectionInfo", header: map[string]string{"Grpc-Encoding": "br"}, body: enveloped(1, list), status: 200, code: connect.CodeUnimplemented, reason: "BAD_USER_INPUT"},
			"a wrong timeout":     {path: "ServerReflectionInfo", header: map[string]string{"Grpc-Timeout": "x"}, body: enveloped(0, list), status: 200, code: connect.CodeInvalidArgument, reason: "BAD_USER_INPUT"},
			"another method":      {path: "Other", body: enveloped(0, list), status: 200, code: connect.CodeUnimplemented, reason: "NOT_FOUND"},
			"GET":                 {method: http.MethodGet, path: "ServerReflectionInfo", status: http.StatusMethodNotAllowed},
			"no gRPC":             {path: "ServerReflectionInfo", contentType: "text/plain", status: http.StatusUnsupportedMediaType},
		} {
			r := raw{method: http.MethodPost, path: path + c.path, body: c.body, header: map[string]string{"Content-Type": "application/grpc"}}
			if c.method != "" {
				r.method = c.method
			}
			if c.contentType != "" {
				r.header["Content-Type"] = c.contentType
			}
			for key, value := range c.header {
				r.header[key] = value
			}
			w.refused.take()
			got := w.do(t, r)
			if got.status != c.status || got.code != c.code || got.info.GetReason() != c.reason {
				t.Errorf("%s: %+v", name, got)
			}
			if c.reason != "" && got.info.GetMetadata()["requestId"] == "" {
				t.Errorf("%s: there is no request id: %+v", name, got)
			}
			if recorded := len(w.refused.take()); recorded > 1 || (recorded == 0) == (c.code != 0 || c.status != 200) {
				t.Errorf("%s: it is recorded %d times", name, recorded)
			}
		}
	}
}

func TestReflection_NeedsHTTP2(t *testing.T) {
	w := open(t)
	transport := new(http.Transport)
	defer transport.CloseIdleConnections()
	w.client = &http.Client{Transport: transport}
	got := w.do(t, raw{
		method: http.MethodPost, path: "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
		header: map[string]string{"Content-Type": "application/grpc-web"},
	})
	if got.status != http.StatusHTTPVersionNotSupported || !strings.Contains(got.body, "HTTP/2") {
		t.Errorf("%+v", got)
	}
}
