package remote

import (
	"context"

	"connectrpc.com/connect"

	"github.com/sluicegw/sluice/internal/span"
)

// Method is a method of any other gRPC service at the address of a [Client]. Its calls use the slots, the circuit
// breaker and the deadlines of the client, and have the headers for the caller.
type Method[Req, Res any] struct {
	client *Client
	call   call[Req, Res]
}

// NewMethod returns the method at a path, such as /teleport.foo.v1.FooService/GetFoo.
func NewMethod[Req, Res any](c *Client, path string, options ...connect.ClientOption) *Method[Req, Res] {
	all := append(c.endpoint.options[:len(c.endpoint.options):len(c.endpoint.options)], options...)
	connectClient := connect.NewClient[Req, Res](c.endpoint.client, c.endpoint.address+path, all...)
	return &Method[Req, Res]{client: c, call: call[Req, Res]{method: path, client: connectClient}}
}

// Ask sends a request and waits for the answer. It returns the same errors as [owner.Service].
func (m *Method[Req, Res]) Ask(ctx context.Context, in *Req) (*Res, error) {
	return m.call.ask(ctx, m.client, in)
}

// Listen calls a method that streams its answer. It sends a request and calls received with each message of the answer,
// until the stream or ctx ends. It needs no slot and does not use the circuit breaker. The error is never nil.
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
