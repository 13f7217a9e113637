package client

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Deprecation is the gateway's notice that a version of its API is deprecated.
type Deprecation struct {
	// API is the version, in the form of [Config.API].
	API string
	// Since is the day from which the version is deprecated; it may be in the future. Sunset is the day after which the
	// version may be withdrawn. A day is zero if it is unknown.
	Since, Sunset time.Time
	// Why is the reason, with what to use instead. It is only set for streams. Answers to requests have a link instead.
	Why string
	// Versions is the URL of the list of versions.
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

// deprecated calls [Config.Deprecated], unless it was called before.
func (c *Client) deprecated(d Deprecation) {
	if c.cfg.Deprecated == nil {
		return
	}
	c.warned.Do(func() {
		d.API = cmp.Or(c.cfg.API, defaultAPI)
		d.Versions = c.at("versions").shown
		c.cfg.Deprecated(d)
	})
}

// checkHeaders reports a deprecation in the headers of an answer (RFC 9745 and RFC 8594).
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

// checkAck reports a deprecation in the payload of connection_ack.
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
