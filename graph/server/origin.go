package server

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
)

// checkHosts refuses what no Host header can match.
func checkHosts(hosts []string) error {
	var errs []error
	for _, h := range hosts {
		reason := ""
		switch {
		case h == "":
			reason = "it is empty"
		case strings.Contains(h, "*"):
			reason = "wildcards are not supported; name each host"
		case strings.Contains(h, "://"):
			reason = "a name is wanted, not a URL"
		case net.ParseIP(strings.Trim(h, "[]")) != nil:
			continue // served anyway
		case strings.Contains(h, ":"):
			reason = "the port does not count; leave it out"
		case strings.Contains(h, "/"):
			reason = "a name is wanted, without a path"
		case strings.ContainsAny(h, " \t@?#%\\"):
			reason = "it is no host name"
		default:
			continue
		}
		errs = append(errs, fmt.Errorf("allowed-hosts: %q: %s; accepted are names like gateway.example.com", h, reason))
	}
	return errors.Join(errs...)
}

// checkOrigins refuses what no Origin header can match.
func checkOrigins(origins []string) error {
	var errs []error
	for _, o := range origins {
		reason := ""
		u, err := url.Parse(o)
		switch {
		case strings.Contains(o, "*"):
			reason = "wildcards are not supported; name each origin"
		case o == "null":
			reason = "any sandboxed page has that origin"
		case err != nil || u.Scheme == "" || u.Hostname() == "" || u.User != nil:
			reason = "it is no origin"
		case strings.HasSuffix(o, "/") || u.Path != "" || u.RawQuery != "" || u.Fragment != "" || u.ForceQuery:
			reason = "an origin ends after the host or the port"
		case u.Scheme == "https" && u.Port() == "443", u.Scheme == "http" && u.Port() == "80":
			reason = "browsers leave the usual port out"
		default:
			continue
		}
		errs = append(errs, fmt.Errorf("allowed-origins: %q: %s; accepted are origins like https://app.example.com", o, reason))
	}
	return errors.Join(errs...)
}

func lowerAll(texts []string) []string {
	out := make([]string, len(texts))
	for i, t := range texts {
		out[i] = strings.ToLower(strings.TrimSuffix(t, "."))
	}
	return out
}
