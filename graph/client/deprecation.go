package client

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Deprecation is the gateway's notice that new programs should not use a version of its API.
type Deprecation struct {
	// API is the version, as [Config.API] names it.
	API string
	// Since is the day from which the version is deprecated, past or future, and Sunset the day
	// after which it may no longer be served; zero if the gateway does not say.
	Since, Sunset time.Time
	// Why says what to use instead. Only streams have it; answers to requests have a link
	// instead.
	Why string
	// Versions is the URL of the versions that the gateway has.
	Versions string
}

// String returns the notice as a sentence.
func (d Deprecation) String() string {
	text := "version " + d.API + " of the API is deprecated"
	if !d.Since.IsZero() {
		text += " from " + d.Since.UTC().Format(time.DateOnly) + " on"
	}
	if !d.Sunset.IsZero() {
		text += ", and may be withdrawn after " + d.Sunset.UTC().Format(time.DateOnly)
	}
	if d.Why != "" {
		text += ": " + d.Why
	}
	return text + "; see " + d.Versions
}

// deprecated calls [Config.Deprecated] the first time that it is called.
func (c *Client) deprecated(d Deprecation) {
	if c.cfg.Deprecated == nil {
		return
	}
	c.told.Do(func() {
		d.API = cmp.Or(c.cfg.API, defaultAPI)
		d.Versions = c.at("versions").shown
		c.cfg.Deprecated(d)
	})
}

// checkHeaders looks for a deprecation in the headers of an answer (RFC 9745 and RFC 8594).
func (c *Client) checkHeaders(res *http.Response) {
	since := res.Header.Get("Deprecation")
	if since == "" {
		return
	}
	d := Deprecation{}
	date, _, _ := strings.Cut(strings.TrimPrefix(since, "@"), ";")
	if seconds, err := strconv.ParseInt(date, 10, 64); err == nil {
		d.Since = time.Unix(seconds, 0)
	}
	d.Sunset, _ = http.ParseTime(res.Header.Get("Sunset")) // zero if there is none
	c.deprecated(d)
}

// checkAck looks for a deprecation in the payload of connection_ack.
func (c *Client) checkAck(payload json.RawMessage) {
	var said struct{ Deprecated, Sunset, Why string }
	if json.Unmarshal(payload, &said) != nil || said.Deprecated == "" {
		return
	}
	d := Deprecation{Why: said.Why}
	d.Since, _ = time.Parse(time.DateOnly, said.Deprecated)
	d.Sunset, _ = time.Parse(time.DateOnly, said.Sunset)
	c.deprecated(d)
}
