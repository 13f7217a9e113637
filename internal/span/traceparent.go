package span

import (
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"

	"go.opentelemetry.io/otel/trace"
)

// The offsets of the parts of a traceparent of version 00. A traceparent has the form 00-TRACE-SPAN-FLAGS, with
// lower-case hexadecimal digits.
const (
	traceAt = 3
	spanAt  = traceAt + 33
	flagsAt = spanAt + 17
	length  = flagsAt + 2
)

// Traceparent returns the value of a traceparent header for a span context.
func Traceparent(sc trace.SpanContext) string {
	id, parent := sc.TraceID(), sc.SpanID()
	return text(id, parent, sc.IsSampled())
}

func text(id trace.TraceID, parent trace.SpanID, sampled bool) string {
	var b [length]byte
	copy(b[:], "00-")
	hex.Encode(b[traceAt:], id[:])
	b[spanAt-1] = '-'
	hex.Encode(b[spanAt:], parent[:])
	copy(b[flagsAt-1:], "-00")
	if sampled {
		b[length-1] = '1'
	}
	return string(b[:])
}

// NewTraceparent returns a traceparent of a new trace that is not recorded.
func NewTraceparent() string { return text(newTraceID(), newSpanID(), false) }

// TraceID returns the id of the trace in a traceparent; empty if the traceparent is malformed.
func TraceID(traceparent string) string {
	if len(traceparent) != length {
		return ""
	}
	return traceparent[traceAt : spanAt-1]
}

// OtherID returns the id of the trace in a traceparent, or "" if it equals the id of the request.
func OtherID(traceparent, request string) string {
	if id := TraceID(traceparent); id != request {
		return id
	}
	return ""
}

// Sampled reports whether a traceparent has the flag for recorded traces.
func Sampled(traceparent string) bool {
	if len(traceparent) != length {
		return false
	}
	var flags [1]byte
	_, err := hex.Decode(flags[:], []byte(traceparent[flagsAt:]))
	return err == nil && trace.TraceFlags(flags[0]).IsSampled()
}

// unsampled returns a traceparent without the flag for recorded traces.
func unsampled(traceparent string) string {
	if !Sampled(traceparent) {
		return traceparent
	}
	return traceparent[:flagsAt] + "00"
}

// Parse parses a traceparent, which identifies a span of another process. If the traceparent is malformed, the result
// is not valid.
func Parse(traceparent string) trace.SpanContext {
	if len(traceparent) != length {
		return trace.SpanContext{}
	}
	var id trace.TraceID
	var parent trace.SpanID
	_, badTrace := hex.Decode(id[:], []byte(traceparent[traceAt:spanAt-1]))
	_, badSpan := hex.Decode(parent[:], []byte(traceparent[spanAt:flagsAt-1]))
	if badTrace != nil || badSpan != nil {
		return trace.SpanContext{}
	}
	var flags trace.TraceFlags
	if Sampled(traceparent) {
		flags = trace.FlagsSampled
	}
	return trace.NewSpanContext(trace.SpanContextConfig{TraceID: id, SpanID: parent, TraceFlags: flags, Remote: true})
}

// The ids are random. An id of zeros is invalid; then another id is generated.

func newTraceID() (id trace.TraceID) {
	for !id.IsValid() {
		binary.BigEndian.PutUint64(id[:8], rand.Uint64())
		binary.BigEndian.PutUint64(id[8:], rand.Uint64())
	}
	return id
}

func newSpanID() (id trace.SpanID) {
	for !id.IsValid() {
		binary.BigEndian.PutUint64(id[:], rand.Uint64())
	}
	return id
}

// The lengths of the ids in the encoding of [Pack].
const (
	traceBytes  = 16
	parentBytes = 8
)

// Pack encodes the ids of the trace and of the span in a traceparent in a few bytes. It leaves out the id of the trace
// if this id equals known. The result is empty if the trace is not recorded.
func Pack(traceparent, known string) string {
	if !Sampled(traceparent) {
		return ""
	}
	sc := Parse(traceparent)
	if !sc.IsValid() {
		return ""
	}
	id, parent := sc.TraceID(), sc.SpanID()
	if TraceID(traceparent) == known {
		return string(parent[:])
	}
	return string(id[:]) + string(parent[:])
}

// Unpack returns the traceparent that was passed to Pack. known must have the same value as in the call of Pack. Unpack
// returns "" if packed is not a result of Pack.
func Unpack(packed, known string) string {
	var id trace.TraceID
	var parent trace.SpanID
	switch len(packed) {
	case parentBytes:
		known, err := trace.TraceIDFromHex(known)
		if err != nil {
			return ""
		}
		id = known
		copy(parent[:], packed)
	case traceBytes + parentBytes:
		copy(id[:], packed)
		copy(parent[:], packed[traceBytes:])
	default:
		return ""
	}
	if !id.IsValid() || !parent.IsValid() {
		return ""
	}
	return text(id, parent, true)
}
