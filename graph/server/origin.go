package server

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
)

// checkEach returns an error for each value for which refusal returns a reason.
func checkEach(setting string, values []string, refusal func(string) string, accepted string) error {
	var errs []error
	for _, v := range values {
		if reason := refusal(v); reason != "" {
			errs = append(errs, fmt.Errorf("%s: %q: %s; accepted are %s", setting, v, reason, accepted))
		}
	}
	return errors.Join(errs...)
}

// hostRefusal returns the reason why no Host header can match a name; "" if one can.
func hostRefusal(h string) string {
	switch {
	case h == "":
		return "it is empty"
	case strings.Contains(h, "*"):
		return "wildcards are not supported; name each host"
	case strings.Contains(h, "://"):
		return "a name is wanted, not a URL"
	case net.ParseIP(strings.Trim(h, "[]")) != nil: // served anyway
	case strings.Contains(h, ":"):
		return "the port does not count; leave it out"
	case strings.Contains(h, "/"):
		return "a name is wanted, without a path"
	case strings.ContainsAny(h, " \t@?#%\\"):
		return "it is no host name"
	}
	return ""
}

// originRefusal returns the reason why no Origin header can match a text; "" if one can.
func originRefusal(o string) string {
	u, err := url.Parse(o)
	switch {
	case strings.Contains(o, "*"):
		return "wildcards are not supported; name each origin"
	case o == "null":
		return "any sandboxed page has that origin"
	case err != nil || u.Scheme == "" || u.Hostname() == "" || u.User != nil:
		return "it is no origin"
	case strings.HasSuffix(o, "/") || u.Path != "" || u.RawQuery != "" || u.Fragment != "" || u.ForceQuery:
		return "an origin ends after the host or the port"
	case u.Scheme == "https" && u.Port() == "443", u.Scheme == "http" && u.Port() == "80":
		return "browsers leave the usual port out"
	}
	return ""
}

func lowerAll(texts []string) []string {
	out := make([]string, len(texts))
	for i, t := range texts {
		out[i] = strings.ToLower(strings.TrimSuffix(t, "."))
	}
	return out
}
