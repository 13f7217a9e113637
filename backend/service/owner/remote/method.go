package remote

import (
	"context"

	"connectrpc.com/connect"

	"github.com/sluicegw/sluice/internal/span"
)

// Method is a method of another service at the address of a [Client], which asks it as it asks those of the contract:
// with its slots, its breaker, its deadlines and the headers that say who asks.
type Method[Req, Res any] struct {
	client *Client
	call   call[Req, Res]
}

// NewMethod returns a method by its path, such as /teleport.foo.v1.FooService/GetFoo.
func NewMethod[Req, Res any](c *Client, path string, options ...connect.ClientOption) *Method[Req, Res] {
	all := append(c.endpoint.options[:len(c.endpoint.options):len(c.endpoint.options)], options...)
	asked := connect.NewClient[Req, Res](c.endpoint.client, c.endpoint.address+path, all...)
	return &Method[Req, Res]{client: c, call: call[Req, Res]{method: path, client: asked}}
}

// Ask sends a request and waits for the answer. Errors are as those of [owner.Service].
func (m *Method[Req, Res]) Ask(ctx context.Context, in *Req) (*Res, error) {
	return m.call.ask(ctx, m.client, in)
}

// Listen sends a request and calls received with each message of the stream that answers it, until the stream or ctx
// ends. It takes no slot, and the breaker neither stops it nor hears of it. The error is never nil.
func (m *Method[Req, Res]) Listen(ctx context.Context, in *Req, received func(*Res)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	req := connect.NewRequest(in)
	setHeaders(ctx, req.Header(), span.Span{}) // a stream lasts longer than what is traced
	stream, err := m.call.client.CallServerStream(ctx, req)
	if err != nil {
		return m.client.failed(m.call.method, err)
	}
	for stream.Receive() {
		received(stream.Msg())
	}
	err = stream.Err()
	cancel() // what is left of the stream is not read
	_ = stream.Close()
	if err == nil {
		err = errEnded
	}
	return m.client.failed(m.call.method, err)
}
