// Package client is a client of a gateway's API. The command line uses it, and so can other Go programs.
package client

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"mime"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/sluicegw/sluice/internal/wait"
)

// DefaultServer is the default URL of a gateway.
const DefaultServer = "http://127.0.0.1:8080"

// maxResponse is the maximum size of an answer, in bytes.
const maxResponse = 64 << 20

// errTooLarge is the error of an answer larger than maxResponse.
var errTooLarge = fmt.Errorf("an answer of more than %d MiB", maxResponse>>20)

// Unreleased is a value of [Config.API]: the API of the gateway's newest catalogue, including what was not released
// yet.
const Unreleased = "unreleased"

// defaultAPI is the default of [Config.API].
const defaultAPI = "v1"

// apiForm matches the name of a version or a major of the API.
var apiForm = regexp.MustCompile(`^v[0-9]+(\.[0-9]+)?$`)

// Config configures a [Client]. The zero value is a client of DefaultServer.
type Config struct {
	// Server is the base URL of the gateway. Default: DefaultServer.
	Server string
	// API is a version of the API, such as v1.0, or a major, such as v1, for its newest released version. Default: v1.
	API string
	// HTTP is used for requests, but not for the WebSockets of streams. Default: a new HTTP client.
	HTTP *http.Client
	// TLS has the certificate authorities that are trusted for the server, and the certificate of the client. It is
	// used for the WebSockets of streams, and for requests unless HTTP is set. Default: the certificate authorities of
	// the system.
	TLS *tls.Config
	// Token returns the bearer token for each request and connection. Default: no token.
	Token TokenSource
	// PlaintextToken permits sending the token over http to other hosts, where it can be read on the way. By default
	// New returns an error for such a server.
	PlaintextToken bool
	// Timeout is the time limit of a request. Default: 30 s.
	Timeout time.Duration
	// Silence is the time without any message after which the connection of a stream is closed. A gateway sends a ping
	// every 25 s unless it is configured otherwise. Default: 60 s.
	Silence time.Duration
	// Name and Version are the name and the version of the program. The gateway writes them to its access log. Default:
	// none.
	Name, Version string
	// Explain, if not nil, is called for each read that the gateway has made for an answer.
	Explain func(Read)
	// Deprecated, if not nil, is called at most once, if the gateway reports that the version of the API is deprecated.
	// It is called before the answer with the report is returned.
	Deprecated func(Deprecation)
}

// Read describes one read of a gateway: a page, a count, or a lookup of resources.
type Read struct {
	Kind string `json:"kind"`
	// Source is "index" for the index in memory, or "store".
	Source string `json:"source"`
	// By describes how the resources were found.
	By string `json:"by"`
	// Looked is the number of resources that were looked at. Returned is the number of them that were returned or
	// counted.
	Looked   int `json:"looked"`
	Returned int `json:"returned"`
}

// Client sends operations to one gateway. It is safe for concurrent use.
type Client struct {
	cfg    Config // with defaults
	server *url.URL
	api    address
	http   *http.Client
	// warned ensures that Config.Deprecated is called only once.
	warned sync.Once
}

// address is the URL to which requests are sent.
type address struct {
	url   string // with the credentials, if the server's URL has them
	shown string // without
}

// apiAddress returns the address of the API.
func (c *Client) apiAddress() (address, error) {
	name := cmp.Or(c.cfg.API, defaultAPI)
	switch {
	case name == Unreleased:
		return c.at("graphql"), nil
	case apiForm.MatchString(name):
		return c.at(name, "graphql"), nil
	}
	return address{}, fmt.Errorf("api: %q is no version of the API, such as v1.0", name)
}

// at returns the address of a path on the gateway.
func (c *Client) at(path ...string) address {
	u := c.server.JoinPath(path...)
	out := address{url: u.String()}
	u.User = nil
	out.shown = u.String()
	return out
}

// New returns a client, or an error if the configuration is invalid. It does not connect to the gateway.
func New(cfg Config) (*Client, error) {
	if cfg.Server == "" {
		cfg.Server = DefaultServer
	}
	u, err := url.Parse(cfg.Server)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		if strings.Contains(cfg.Server, "@") { // it may hold a password
			return nil, fmt.Errorf("server: not a URL like %s", DefaultServer)
		}
		return nil, fmt.Errorf("server: %q is not a URL like %s", cfg.Server, DefaultServer)
	}
	if err := cfg.checkToken(u); err != nil {
		return nil, err
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = 30 * time.Second
	}
	if cfg.Silence <= 0 {
		cfg.Silence = time.Minute
	}
	c := &Client{cfg: cfg, server: u, http: &http.Client{Transport: transport(cfg.TLS)}}
	c.api, err = c.apiAddress()
	if err != nil {
		return nil, err
	}
	if cfg.HTTP != nil {
		own := *cfg.HTTP
		c.http = &own
	}
	if c.http.CheckRedirect == nil {
		c.http.CheckRedirect = sameServerOnly
	}
	return c, nil
}

// Error is one error of the API.
type Error struct {
	Message    string `json:"message"`
	Path       []any  `json:"path"`
	Extensions struct {
		Code      string `json:"code"`
		Kind      string `json:"kind"`
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
		// Path is the path of the wrong value: names and indexes, beginning at the argument. Field is the path as text.
		Path  []any  `json:"path"`
		Field string `json:"field"`
		Rule  string `json:"rule"`
		// Limit is the number in the violated rule or setting. If the rule does not have a number, Expected is what it
		// accepts.
		Limit    any `json:"limit"`
		Expected any `json:"expected"`
		// Setting is the setting of the gateway with the limit.
		Setting         string `json:"setting"`
		CurrentRevision string `json:"currentRevision"`
		Retryable       bool   `json:"retryable"`
		// RetryAfter is the number of seconds after which a refused request may succeed; 0 if unknown.
		RetryAfter int    `json:"retryAfter"`
		Outcome    string `json:"outcome"`
		// Selection is the place in the document where a limit was reached: names of fields, joined by dots.
		Selection string `json:"selection"`
		RequestID string `json:"requestId"`
	} `json:"extensions"`
}

func (e *Error) Error() string { return e.Message }

// Errors are the errors of an answer. There is at least one. [errors.As] finds the first [*Error].
type Errors []*Error

func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, one := range e {
		lines[i] = one.Message
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the errors.
func (e Errors) Unwrap() []error {
	out := make([]error, len(e))
	for i, one := range e {
		out[i] = one
	}
	return out
}

// UnansweredError means that a request got no answer, or an answer that cannot be read.
type UnansweredError struct {
	// Sent reports whether the request was sent, and so may have been executed.
	Sent bool
	err  error
}

func (e *UnansweredError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *UnansweredError) Unwrap() error { return e.err }

// Do executes an operation and decodes its data into out, which may be nil. variables is nil, or a value that is
// encoded as a JSON object.
//
// If the answer has errors, Do returns [Errors]; out then has the data of the fields that succeeded, for example of
// those mutations that were made. If there is no answer, Do returns an [*UnansweredError].
func (c *Client) Do(ctx context.Context, query string, variables, out any) error {
	request := map[string]any{"query": query, "variables": variables}
	if c.cfg.Explain != nil {
		request["extensions"] = map[string]any{"explain": true}
	}
	return c.exchange(ctx, c.api, request, out)
}

// Post sends a request to another path of the gateway whose answers have the same form as those of the API. The request
// is in, encoded as JSON. The data of the answer is decoded into out, which may be nil. Post returns the same errors as
// Do.
func (c *Client) Post(ctx context.Context, path string, in, out any) error {
	return c.exchange(ctx, c.at(path), in, out)
}

// exchange sends a request, and decodes the data of the answer into out. The request is in, encoded as JSON.
func (c *Client) exchange(ctx context.Context, to address, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return fmt.Errorf("request: %w", err)
	}
	request, _ := in.(map[string]any)
	document, _ := request["query"].(string)
	raw, refused := c.ask(ctx, to, body, isQuery(document))
	if out == nil || refused != nil && len(raw) == 0 {
		return refused
	}
	err = json.Unmarshal(raw, out)
	if err != nil && refused == nil {
		return &UnansweredError{
			Sent: true,
			err:  fmt.Errorf("what %s answered is not of the form that was asked for", to.shown),
		}
	}
	return refused
}

// unreachedError returns an error that explains why a server did not answer.
func unreachedError(err error) error {
	var (
		wrapped *url.Error
		plain   tls.RecordHeaderError
		unknown x509.UnknownAuthorityError
		name    *net.DNSError
	)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return errors.New("nothing listens there")
	case errors.As(err, &plain), errors.Is(err, http.ErrSchemeMismatch):
		return errors.New("it does not speak TLS; is it http instead of https?")
	case errors.As(err, &unknown):
		return errors.New("its certificate is signed by an authority that is not trusted here; is there a CA file for it?")
	case errors.As(err, &name) && name.IsNotFound:
		return errors.New("there is no host of that name")
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET):
		return errors.New("it closed the connection")
	case errors.As(err, &wrapped):
		return wrapped.Err
	}
	return err
}

// isQuery reports whether a document starts with a query.
func isQuery(document string) bool {
	document = strings.TrimSpace(document)
	return strings.HasPrefix(document, "query") || strings.HasPrefix(document, "{")
}

// ask sends a request and returns the data of the answer. It repeats the request if [retryDelay] allows that.
func (c *Client) ask(ctx context.Context, to address, body []byte, query bool) (json.RawMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	for {
		raw, err := c.authenticated(ctx, to, body)
		pause := retryDelay(err, query)
		if pause == 0 {
			return raw, err
		}
		pause += rand.N(pause) // so that clients that were refused together do not retry together
		if end, limited := ctx.Deadline(); limited && time.Until(end) <= pause || !wait.For(ctx, pause) {
			return nil, err
		}
	}
}

// retryDelay returns the time after which a request may be repeated; 0 if it must not be. A request that was refused
// because of a limit of the caller was not executed and may be repeated. A query may also be repeated if the gateway is
// unavailable and reports when to try again.
func retryDelay(err error, query bool) time.Duration {
	var e *Error
	if !errors.As(err, &e) || !e.Extensions.Retryable {
		return 0
	}
	if !strings.HasPrefix(e.Extensions.Setting, "limit-caller-") &&
		!(query && e.Extensions.Code == "UNAVAILABLE") {
		return 0
	}
	return time.Duration(e.Extensions.RetryAfter) * time.Second
}

// authenticated sends a request with a token. If the token is refused, it tries once again with a new one.
func (c *Client) authenticated(ctx context.Context, to address, body []byte) (json.RawMessage, error) {
	token, err := c.bearer(ctx, "")
	if err != nil {
		return nil, &UnansweredError{err: err}
	}
	raw, err := c.post(ctx, to, token, body)
	if token == "" || !unauthenticated(err) {
		return raw, err
	}
	// A request without a valid credential is not executed, so no mutation is executed twice.
	switch other, failed := c.bearer(ctx, token); {
	case failed != nil:
		return nil, &UnansweredError{err: failed}
	case other != token && other != "":
		return c.post(ctx, to, other, body)
	}
	return nil, err
}

// introduce adds headers with the name and version of the program. They are the headers that Apollo's clients use.
func (c *Client) introduce(to http.Header) {
	if c.cfg.Name != "" {
		to.Set("Apollographql-Client-Name", c.cfg.Name)
	}
	if c.cfg.Version != "" {
		to.Set("Apollographql-Client-Version", c.cfg.Version)
	}
}

// post sends a request once and reads the data of the answer.
func (c *Client) post(ctx context.Context, to address, token string, body []byte) (json.RawMessage, error) {
	var sent atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { sent.Store(true) }})
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to.url, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("request: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	c.introduce(req.Header)
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return nil, &UnansweredError{
			Sent: sent.Load() && !errors.Is(err, errRedirects),
			err:  fmt.Errorf("no answer from %s: %w", to.shown, unreachedError(err)),
		}
	}
	defer func() { _ = res.Body.Close() }()
	c.checkHeaders(res)
	in := &io.LimitedReader{R: res.Body, N: maxResponse}
	if kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")); kind != "application/json" &&
		kind != "application/graphql-response+json" {
		if res.StatusCode == http.StatusUnauthorized {
			return nil, to.proxyError()
		}
		ask := "is a gateway there?"
		if res.StatusCode == http.StatusBadRequest && strings.HasPrefix(to.shown, "http://") {
			ask = "does it speak TLS, so that https is wanted?"
		}
		return nil, &UnansweredError{
			Sent: res.StatusCode >= 500,
			err:  fmt.Errorf("%s answered %s and no JSON; %s", to.shown, res.Status, ask),
		}
	}
	var answer struct {
		Data       json.RawMessage `json:"data"`
		Errors     Errors          `json:"errors"`
		Extensions struct {
			Explain []Read `json:"explain"`
		} `json:"extensions"`
	}
	switch err := json.NewDecoder(in).Decode(&answer); {
	case err != nil && in.N <= 0:
		return nil, &UnansweredError{Sent: true, err: fmt.Errorf("%w from %s", errTooLarge, to.shown)}
	case err != nil:
		return nil, &UnansweredError{Sent: true, err: fmt.Errorf("what %s answered is cut off, or not JSON", to.shown)}
	case len(answer.Errors) > 0:
		return answer.Data, answer.Errors
	case res.StatusCode == http.StatusUnauthorized:
		return nil, to.proxyError()
	case len(answer.Data) == 0 || string(answer.Data) == "null":
		return nil, &UnansweredError{
			Sent: true,
			err:  fmt.Errorf("what %s answered has neither data nor errors", to.shown),
		}
	}
	if c.cfg.Explain != nil {
		for _, read := range answer.Extensions.Explain {
			c.cfg.Explain(read)
		}
	}
	return answer.Data, nil
}
