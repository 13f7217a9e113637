package access

import (
	"regexp"
	"strings"
)

// traceparent is the form of the header of that name in version 00 of W3C Trace Context. Newer versions may only add
// fields at its end, which is not passed on.
var traceparent = regexp.MustCompile(`^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})`)

// ParseTrace returns the trace of a traceparent header, as [Caller] has it; empty if the header is not one.
func ParseTrace(header string) string {
	if header == "" { // as most are
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
