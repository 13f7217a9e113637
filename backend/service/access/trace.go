package access

import (
	"regexp"
	"strings"
)

// traceparent matches a traceparent header of version 00 of W3C Trace Context. Newer versions may only append fields,
// which are not passed on.
var traceparent = regexp.MustCompile(`^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})`)

// ParseTrace returns the trace in a traceparent header, in the form of [Caller].Trace. It returns "" if the header is
// not valid.
func ParseTrace(header string) string {
	if header == "" { // as in most requests
		return ""
	}
	parts := traceparent.FindStringSubmatch(header)
	if parts == nil {
		return ""
	}
	trace, version, rest := parts[0], parts[1], header[len(parts[0]):]
	switch {
	case version == "ff", version == "00" && rest != "", rest != "" && rest[0] != '-':
		return ""
	case strings.Trim(parts[2], "0") == "", strings.Trim(parts[3], "0") == "":
		return ""
	}
	return "00" + trace[2:]
}
