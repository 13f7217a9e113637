package rpc

import (
	"math"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"connectrpc.com/connect"

	"github.com/sluicegw/sluice/backend/service/failure"
)

// The systems of calls, with their names in rpc.system of OpenTelemetry's semantic conventions. gRPC-Web counts as
// gRPC.
const (
	SystemGRPC    = "grpc"
	SystemConnect = "connect_rpc"
)

// form is the form of a request, which follows from its content type.
type form struct {
	system string
	// enveloped reports whether a prefix with flags and the length precedes each message.
	enveloped bool
	// json reports whether messages are JSON instead of binary.
	json bool
	// The names of three headers: how the request is compressed, how the answer may be compressed, and the timeout of
	// the client.
	encoding, accept, timeout string
}

const (
	grpcType       = "application/grpc"
	grpcWebType    = "application/grpc-web"
	connectType    = "application/connect"
	protoType      = "application/proto"
	jsonType       = "application/json"
	codecProto     = "proto"
	codecJSON      = "json"
	contentCharset = "utf-8"
)

// formOf returns the form for a content type. streams reports whether the method streams its answers. known is false if
// the content type is not accepted.
func formOf(contentType string, streams bool) (f form, known bool) {
	contentType, charset := withoutCharset(contentType)
	base, codec, _ := strings.Cut(contentType, "+")
	switch {
	case base == grpcType || base == grpcWebType:
		f = form{
			system: SystemGRPC, enveloped: true,
			encoding: "Grpc-Encoding", accept: "Grpc-Accept-Encoding", timeout: "Grpc-Timeout",
		}
		if contentType == base {
			codec = codecProto
		}
	case base == connectType && streams:
		f = form{
			system: SystemConnect, enveloped: true,
			encoding: "Connect-Content-Encoding", accept: "Connect-Accept-Encoding", timeout: "Connect-Timeout-Ms",
		}
	case (contentType == protoType || contentType == jsonType) && !streams:
		f = form{
			system: SystemConnect, encoding: "Content-Encoding", accept: "Accept-Encoding", timeout: "Connect-Timeout-Ms",
		}
		codec = strings.TrimPrefix(contentType, "application/")
	default:
		return form{}, false
	}
	f.json = codec == codecJSON
	return f, f.json || codec == codecProto && !charset
}

// withoutCharset returns a content type in lower case without the charset UTF-8, and whether it had this charset. It
// returns "" if there are other parameters.
func withoutCharset(contentType string) (base string, charset bool) {
	if !strings.ContainsFunc(contentType, needsParsing) {
		return contentType, false
	}
	base, parameters, err := mime.ParseMediaType(contentType)
	switch {
	case err != nil:
		return "", false
	case len(parameters) == 0:
		return base, false
	case len(parameters) == 1 && strings.EqualFold(parameters["charset"], contentCharset):
		return base, true
	}
	return "", false
}

// needsParsing reports whether a content type with the character r must be parsed. Usually clients send it in a simple
// form.
func needsParsing(r rune) bool {
	return (r < 'a' || r > 'z') && r != '/' && r != '+' && r != '-'
}

// acceptedTypes returns the content types that a method accepts.
func acceptedTypes(streams bool) string {
	types := []string{grpcType, grpcType + "+json", grpcWebType, grpcWebType + "+json", protoType, jsonType}
	if streams {
		types = append(types[:4], connectType+"+proto", connectType+"+json")
	}
	return strings.Join(types, ", ")
}

// The maximum number of digits in a timeout.
const (
	grpcDigits    = 8
	connectDigits = 10
)

// parseTimeout parses the timeout of a client. limited is false if the timeout is too long for a [time.Duration].
func (f *form) parseTimeout(text string) (timeout time.Duration, limited, valid bool) {
	unit, digits := time.Millisecond, connectDigits
	if f.system == SystemGRPC {
		unit, digits = unitOf(text[len(text)-1]), grpcDigits
		text = text[:len(text)-1]
	}
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil || len(text) > digits || unit == 0 {
		return 0, false, false
	}
	if n > uint64(math.MaxInt64/unit) {
		return 0, false, true
	}
	return time.Duration(n) * unit, true, true
}

// unitOf returns a unit of time in gRPC; 0 if the letter is not a unit.
func unitOf(letter byte) time.Duration {
	switch letter {
	case 'H':
		return time.Hour
	case 'M':
		return time.Minute
	case 'S':
		return time.Second
	case 'm':
		return time.Millisecond
	case 'u':
		return time.Microsecond
	case 'n':
		return time.Nanosecond
	}
	return 0
}

// timeoutText describes the accepted timeouts, for an error.
func (f *form) timeoutText() string {
	if f.system == SystemGRPC {
		return "at most 8 digits and one of H, M, S, m, u and n"
	}
	return "at most 10 digits, in milliseconds"
}

// Refusal is the reason why a request is not executed: it violates its protocol, or its method does not exist.
type Refusal struct {
	Error *failure.Error
	// Code is the code for clients of the protocol.
	Code connect.Code
	// Status is the HTTP status for clients that do not use one of the protocols.
	Status int
	// Foreign reports whether the HTTP method or the content type shows that the client does not use one of the
	// protocols.
	Foreign bool
}

// refusal returns the refusal of an invalid request.
func refusal(status int, code connect.Code, format string, args ...any) *Refusal {
	return &Refusal{Error: failure.BadInput("", format, args...), Code: code, Status: status}
}

// open finds out the form of a request. It refuses what package connect would refuse too, because the errors of that
// package have no details. It removes the headers for compression and the timeout, so that package connect does not
// apply them: the handler does; see [receiver.receive].
func open(w http.ResponseWriter, r *http.Request, streams bool) (*incoming, *Refusal) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		refused := refusal(http.StatusMethodNotAllowed, connect.CodeUnimplemented, "use POST")
		refused.Foreign = true
		return nil, refused
	}
	given := r.Header.Get("Content-Type")
	f, known := formOf(given, streams)
	if !known {
		accepted := acceptedTypes(streams)
		w.Header().Set("Accept-Post", accepted)
		refused := refusal(
			http.StatusUnsupportedMediaType, connect.CodeUnimplemented,
			"Content-Type: %s is not accepted here; these are: %s", quoted(given), accepted,
		)
		refused.Foreign = !strings.HasPrefix(given, grpcType)
		return nil, refused
	}
	in := &incoming{form: f, wire: wire{from: r.Body}}
	version := r.Header.Get("Connect-Protocol-Version")
	if f.system == SystemConnect && version != "" && version != "1" {
		return nil, refusal(
			http.StatusBadRequest, connect.CodeInvalidArgument,
			"Connect-Protocol-Version: %s is not accepted; 1 is", quoted(version),
		)
	}
	encoding := r.Header.Get(f.encoding)
	switch encoding {
	case "", "identity":
	case "gzip":
		in.gzip = true
		if r.Header.Get(f.accept) == "" { // a client that compresses requests accepts the same form
			r.Header.Set(f.accept, "gzip")
		}
	default:
		w.Header().Set(f.accept, "gzip")
		return nil, refusal(
			http.StatusUnsupportedMediaType, connect.CodeUnimplemented,
			"%s: %s is not accepted; gzip and identity are", f.encoding, quoted(encoding),
		)
	}
	r.Header.Del(f.encoding)
	if timeout := r.Header.Get(f.timeout); timeout != "" {
		after, limited, valid := f.parseTimeout(timeout)
		if !valid {
			return nil, refusal(
				http.StatusBadRequest, connect.CodeInvalidArgument,
				"%s: %s is not a timeout; it has %s", f.timeout, quoted(timeout), f.timeoutText(),
			)
		}
		if limited {
			in.deadline = time.Now().Add(after)
		}
		r.Header.Del(f.timeout)
	}
	return in, nil
}

// quoted returns a text of a client in quotes, shortened for an error.
func quoted(text string) string { return strconv.Quote(failure.Shorten(text)) }
