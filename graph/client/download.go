package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"time"
)

// DownloadRequest describes a download.
type DownloadRequest struct {
	Path  string
	Query url.Values
	// Preparation is the maximum time before the answer starts. A value below [Config.Silence] means that value.
	Preparation time.Duration
}

// Download requests a path of the gateway and returns the body of the answer, which the caller must close. A download
// has no time limit, but fails if nothing arrives for [Config.Silence]. It returns the same errors as Do.
func (c *Client) Download(ctx context.Context, r DownloadRequest) (io.ReadCloser, error) {
	to := c.at(r.Path)
	if len(r.Query) > 0 {
		to.url += "?" + r.Query.Encode()
	}
	preparation := max(r.Preparation, c.cfg.Silence)
	token, err := c.bearer(ctx, "")
	if err != nil {
		return nil, &UnansweredError{err: err}
	}
	body, err := c.get(ctx, to, token, preparation)
	if token == "" || !unauthenticated(err) {
		return body, err
	}
	switch other, failed := c.bearer(ctx, token); {
	case failed != nil:
		return nil, &UnansweredError{err: failed}
	case other != token && other != "":
		return c.get(ctx, to, other, preparation)
	}
	return nil, err
}

// get sends one request and returns the body of the answer, or its errors. The answer must start within the duration
// preparation.
func (c *Client) get(
	ctx context.Context, to address, token string, preparation time.Duration,
) (io.ReadCloser, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	silence := time.AfterFunc(preparation, func() { cancel(errSilent) })
	body := &download{
		shown: to.shown,
		alive: func() { silence.Reset(c.cfg.Silence) },
		cause: func(err error) error {
			if errors.Is(context.Cause(ctx), errSilent) {
				return errSilent
			}
			return unreachedError(err)
		},
		stop: func() {
			silence.Stop()
			cancel(nil)
		},
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, to.url, nil)
	if err != nil {
		body.stop()
		return nil, fmt.Errorf("request: %w", err)
	}
	req.Header.Set("Accept", "application/gzip, application/octet-stream, application/json")
	c.introduce(req.Header)
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := c.http.Do(req)
	if err != nil {
		defer body.stop()
		return nil, &UnansweredError{err: fmt.Errorf("no answer from %s: %w", to.shown, body.cause(err))}
	}
	body.from = res.Body
	if res.StatusCode == http.StatusOK {
		return body, nil
	}
	defer func() { _ = body.Close() }()
	return nil, answeredError(to, res)
}

// answeredError returns the errors in an answer that is not a download.
func answeredError(to address, res *http.Response) error {
	var answer struct {
		Errors Errors `json:"errors"`
	}
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if kind == "application/json" {
		if err := json.NewDecoder(io.LimitReader(res.Body, maxResponse)).Decode(&answer); err == nil && len(answer.Errors) > 0 {
			return answer.Errors
		}
	}
	if res.StatusCode == http.StatusUnauthorized {
		return to.proxyError()
	}
	return &UnansweredError{err: fmt.Errorf("%s answered %s; is a gateway there?", to.shown, res.Status)}
}

// errSilent means that nothing has arrived from the gateway for too long.
var errSilent = errors.New("it sends nothing any more")

// download is the body of a download.
type download struct {
	from  io.ReadCloser
	shown string
	// alive is called when data has arrived. stop ends the request.
	alive, stop func()
	// cause returns an error that explains why the body ended.
	cause func(error) error
}

// Read implements [io.Reader].
func (d *download) Read(p []byte) (int, error) {
	n, err := d.from.Read(p)
	d.alive()
	if err != nil && !errors.Is(err, io.EOF) {
		err = fmt.Errorf("the answer of %s broke off: %w", d.shown, d.cause(err))
	}
	return n, err
}

// Close implements [io.Closer].
func (d *download) Close() error {
	defer d.stop()
	return d.from.Close()
}
