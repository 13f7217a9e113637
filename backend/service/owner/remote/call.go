package remote

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"

	"connectrpc.com/connect"

	"github.com/sluicegw/sluice/backend/service/owner"
)

// servicePath is the prefix of the paths of all calls.
const servicePath = "/sluice.resource.v1.ResourceService/"

// maxErrorText is the maximum length, in bytes, of a text of the service in an error.
const maxErrorText = 500

// errGaveUp is reported to the circuit breaker if the caller has stopped waiting. It counts neither as a success nor as
// a failure of the service.
var errGaveUp = errors.New("the caller did not wait")

// errEnded means that the service has ended a stream.
var errEnded = errors.New("the service has ended the stream")

// errLate means that there was no answer before the deadline.
var errLate = errors.New("no answer in time")

// endpoint is the address to which calls are sent, with the client that sends them.
type endpoint struct {
	client  *http.Client
	address string
	options []connect.ClientOption
}

// call is one method of the contract, with the client that calls it.
type call[Req, Res any] struct {
	method string
	client *connect.Client[Req, Res]
}

func newCall[Req, Res any](to endpoint, method string) call[Req, Res] {
	return call[Req, Res]{method, connect.NewClient[Req, Res](to.client, to.address+servicePath+method, to.options...)}
}

// ask waits for a slot, sends the call if the circuit breaker allows it, and waits for the answer.
func (m call[Req, Res]) ask(ctx context.Context, c *Client, in *Req) (*Res, error) {
	if err := c.takeSlot(ctx); err != nil {
		return nil, c.notSent(m.method, err)
	}
	defer func() { <-c.slots }()
	done, err := c.breaker.Allow()
	if err != nil {
		return nil, c.notSent(m.method, fmt.Errorf("its last calls failed (%w)", err))
	}
	out, err := m.send(ctx, c, c.cfg.Timeout, in)
	done(outage(ctx, err))
	return out, err
}

// send sends the call and waits for the answer, for at most limit.
func (m call[Req, Res]) send(ctx context.Context, c *Client, limit time.Duration, in *Req) (*Res, error) {
	bounded, cancel := context.WithTimeoutCause(ctx, limit, errLate)
	defer cancel()
	// sent reports whether the request got a connection. If it did, the service may have executed the request.
	var sent atomic.Bool
	bounded = httptrace.WithClientTrace(bounded, &httptrace.ClientTrace{
		GetConn: func(string) { sent.Store(false) },
		GotConn: func(httptrace.GotConnInfo) { sent.Store(true) },
	})
	req := connect.NewRequest(in)
	traced := traceCall(ctx, c.cfg.Name, m.method)
	setHeaders(ctx, req.Header(), traced)
	res, err := m.client.CallUnary(bounded, req)
	endCall(traced, err)
	switch {
	case err == nil:
		return res.Msg, nil
	case connect.IsWireError(err):
	case context.Cause(bounded) == errLate:
		err = fmt.Errorf("no answer in %s: %w", limit, err)
	case ctx.Err() != nil:
		err = fmt.Errorf("%w: %w", context.Cause(ctx), err)
	}
	if !sent.Load() || errors.Is(err, errNotExecuted) {
		return nil, c.notSent(m.method, err)
	}
	if connect.CodeOf(err) == connect.CodeUnimplemented {
		return nil, c.failed(m.method, fmt.Errorf("%w: %w", owner.ErrUnimplemented, err))
	}
	return nil, c.failed(m.method, err)
}

// takeSlot waits for a slot, for at most Config.SlotWait.
func (c *Client) takeSlot(ctx context.Context) error {
	select {
	case c.slots <- struct{}{}:
		return nil
	default:
	}
	timer := time.NewTimer(c.cfg.SlotWait)
	defer timer.Stop()
	select {
	case c.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return fmt.Errorf("%d other calls were still waiting for their answers after %s", c.cfg.InFlight, c.cfg.SlotWait)
	}
}

// outage returns the error of a call as the circuit breaker counts it. It is not nil if the service could not be
// reached or has not answered. Every answer of the service is a success.
func outage(ctx context.Context, err error) error {
	switch {
	case err == nil, connect.IsWireError(err), errors.Is(err, owner.ErrUnimplemented):
		return nil
	case ctx.Err() != nil:
		return errGaveUp
	}
	return err
}

type callError struct {
	service, method string
	err             error
}

// Error returns a message on one line, with the names of the service and of the call.
func (e *callError) Error() string {
	return fmt.Sprintf("service %s: %s: %s", e.service, e.method, oneLine(e.err.Error(), maxErrorText))
}

func (e *callError) Unwrap() error { return e.err }

func (c *Client) failed(method string, err error) error { return &callError{c.cfg.Name, method, err} }

func (c *Client) notSent(method string, err error) error {
	return c.failed(method, fmt.Errorf("%w: %w", owner.ErrNotSent, err))
}

// oneLine returns a text on one line, without control characters and cut after n bytes.
func oneLine(text string, n int) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
	return cut(text, n)
}

// cut returns at most the first n bytes of a text. It does not split a character.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}
