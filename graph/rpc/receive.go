package rpc

import (
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	protobuf "google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/backend/service/failure"
)

// incoming is a request while it is received. Package connect reads an empty message instead of the request, by Read.
// The handler of the method reads the actual message itself. Thus the bytes of a message are charged before they are in
// memory, including those to which a compressed message inflates, and all errors about requests have the same form.
//
//	wire --> [prefix] --> part of the message --> [inflater] --> data --> decode
type incoming struct {
	form form
	wire wire
	gzip bool
	// deadline is when the client stops waiting; zero for never.
	deadline time.Time
	// replayed is the number of bytes of the empty message that were read.
	replayed int

	prefix [prefixBytes]byte
	part   io.LimitedReader
	// data is the message. spare is the buffer from the pool that data uses.
	data  []byte
	spare *[]byte
}

// prefixBytes is the size of the prefix of an enveloped message: one byte for flags and four for the length.
const prefixBytes = 5

// flagCompressed is the flag of a compressed message.
const flagCompressed = 1

var _ io.ReadCloser = (*incoming)(nil)

// Read implements [io.Reader]. It reads an empty message.
func (in *incoming) Read(p []byte) (int, error) {
	if !in.form.enveloped || in.replayed == prefixBytes {
		return 0, io.EOF
	}
	n := min(len(p), prefixBytes-in.replayed)
	clear(p[:n])
	in.replayed += n
	return n, nil
}

// Close implements [io.Closer]. It does nothing, because the server closes the body.
func (*incoming) Close() error { return nil }

type incomingKey struct{}

// incomingOf returns the request in a context.
func incomingOf(ctx context.Context) *incoming {
	in, _ := ctx.Value(incomingKey{}).(*incoming)
	return in
}

// within returns a context that ends when the client stops waiting.
func (in *incoming) within(ctx context.Context) (context.Context, context.CancelFunc) {
	if in.deadline.IsZero() {
		return ctx, func() {}
	}
	return context.WithDeadline(ctx, in.deadline)
}

// wire is the body of a request. It stores the error with which reading has ended, so that errors of the connection can
// be distinguished from errors in the data.
type wire struct {
	from io.Reader
	err  error
}

// Read implements [io.Reader].
func (w *wire) Read(p []byte) (int, error) {
	n, err := w.from.Read(p)
	if err != nil && err != io.EOF {
		w.err = err
	}
	return n, err
}

// receiver receives requests.
type receiver struct {
	edge Edge
	// most is the maximum size of a message in bytes. setting is the name of the setting for it; empty if there is
	// none.
	most    int
	setting string
	// withdrawn is [Config.Withdrawn].
	withdrawn string
	// buffers has buffers of about firstBuffer bytes. inflaters has gzip readers.
	buffers, inflaters sync.Pool
}

// The sizes of the memory for reading a request, in bytes.
const (
	firstBuffer    = 4 << 10
	maxSpareBuffer = 16 << 10
	inflaterBytes  = 48 << 10
)

// receive receives the message of a request. It charges memory before it is allocated.
func (r *receiver) receive(ctx context.Context, in *incoming, most int) error {
	spare, ok := r.buffers.Get().(*[]byte)
	if !ok {
		spare = new(make([]byte, 0, firstBuffer))
	}
	in.data, in.spare = *spare, spare
	err := r.message(ctx, in, most)
	switch {
	case err == nil:
		return nil
	case in.wire.err == nil:
	case ctx.Err() != nil:
		err = ctx.Err()
	case errors.Is(in.wire.err, os.ErrDeadlineExceeded):
		err = context.DeadlineExceeded
	default:
		err = context.Canceled
	}
	r.release(ctx, in)
	return err
}

// release gives back the memory of a message.
func (r *receiver) release(ctx context.Context, in *incoming) {
	if cap(in.data) <= maxSpareBuffer {
		*in.spare = in.data[:0]
		r.buffers.Put(in.spare)
	}
	in.data, in.spare = nil, nil
	in.wire.from = http.NoBody // an inflater in the pool may still refer to the wire
	_ = r.edge.Receive(ctx, 0) // giving memory back cannot fail
}

// message reads the message. It returns an error if anything follows it.
func (r *receiver) message(ctx context.Context, in *incoming, most int) error {
	if !in.form.enveloped {
		return r.readAll(ctx, in, most, &in.wire, in.gzip)
	}
	if _, err := io.ReadFull(&in.wire, in.prefix[:]); err != nil {
		return failure.BadInput("", "the request has no message")
	}
	flags, size := in.prefix[0], int64(binary.BigEndian.Uint32(in.prefix[1:]))
	compressed := flags == flagCompressed
	switch {
	case flags > flagCompressed:
		return failure.BadInput("", "the message has the flags %d; 0 and 1, for a compressed one, are accepted", flags)
	case compressed && !in.gzip:
		return failure.BadInput("", "the message is compressed, and %s does not say how; gzip is accepted", in.form.encoding)
	case size > int64(most):
		return r.tooLarge(in, most)
	}
	in.part = io.LimitedReader{R: &in.wire, N: size}
	if err := r.readAll(ctx, in, most, &in.part, compressed && size > 0); err != nil {
		return err
	}
	if in.part.N > 0 {
		return failure.BadInput("", "the request ends before its message, which has %d bytes by its prefix", size)
	}
	n, err := io.ReadFull(&in.wire, in.prefix[:1])
	switch {
	case n > 0:
		return failure.BadInput("", "the request has more than one message")
	case err != io.EOF:
		return err
	}
	return nil
}

// readAll reads a message to its end. It inflates the message if it is compressed.
func (r *receiver) readAll(ctx context.Context, in *incoming, most int, from io.Reader, compressed bool) error {
	if compressed {
		if err := r.edge.Receive(ctx, inflaterBytes); err != nil {
			return err
		}
		inflater, ok := r.inflaters.Get().(*gzip.Reader)
		if !ok {
			inflater = new(gzip.Reader)
		}
		defer r.inflaters.Put(inflater)
		if err := inflater.Reset(from); err != nil {
			return notGzip(err)
		}
		from = inflater
	}
	for {
		if len(in.data) == cap(in.data) {
			if err := r.grow(ctx, in, most, compressed); err != nil {
				return err
			}
		}
		n, err := from.Read(in.data[len(in.data):cap(in.data)])
		in.data = in.data[:len(in.data)+n]
		switch {
		case len(in.data) > most:
			return r.tooLarge(in, most)
		case err == io.EOF:
			return nil
		case err != nil && compressed:
			return notGzip(err)
		case err != nil:
			return err
		}
	}
}

// grow enlarges the buffer of a message. Before that, it charges for both the old and the new buffer, because both are
// in memory at the same time.
func (r *receiver) grow(ctx context.Context, in *incoming, most int, compressed bool) error {
	size := min(2*cap(in.data), most+1)
	fixed := 0
	if compressed {
		fixed = inflaterBytes
	}
	if err := r.edge.Receive(ctx, fixed+cap(in.data)+size); err != nil {
		return err
	}
	in.data = append(make([]byte, 0, size), in.data...)
	return r.edge.Receive(ctx, fixed+size)
}

// tooLarge returns the error for a message that is too large. most is the maximum size in bytes. It reads and discards
// some of the rest, so that the client can read the answer before the connection is closed.
func (r *receiver) tooLarge(in *incoming, most int) error {
	_, _ = io.CopyN(io.Discard, &in.wire, int64(most))
	in.wire.err = nil
	out := &failure.Error{
		Code:    failure.CodeLimitExceeded,
		Message: fmt.Sprintf("the request has more than the %d bytes that are accepted, counted uncompressed", most),
		Limit:   most,
	}
	if most == r.most && r.setting != "" {
		out.Setting = r.setting
		out.Message += " (configuration key " + r.setting + ")"
	}
	return out
}

// notGzip returns the error for a message that is not valid gzip although the request says so.
func notGzip(err error) error {
	return failure.BadInput("", "the message is not gzip, as the request says: %v", err)
}

// decoded is a decoded message of a request. held is the memory that was charged for the message, in bytes. tree is the
// memory that was reserved for the tree to which the resource in the message is converted for the service.
type decoded struct {
	message    protoreflect.Message
	held, tree int
}

// decode decodes the message of a request, after charging the necessary memory. At the end it gives back the memory of
// the encoded message.
func (r *receiver) decode(ctx context.Context, in *incoming, of protoreflect.MessageDescriptor) (*decoded, error) {
	defer r.release(ctx, in)
	c, err := in.values(of)
	if err != nil {
		return nil, err
	}
	out := &decoded{held: c.held() + len(in.data), tree: c.tree() + len(in.data)}
	spent := budget.From(ctx)
	if err := spent.Hold(ctx, out.held); err != nil {
		return nil, err
	}
	if err := spent.Expect(ctx, out.tree); err != nil {
		return nil, err
	}
	m := dynamicpb.NewMessage(of)
	out.message = m
	if in.form.json {
		return out, unmarshalJSON(in.data, m, r.withdrawn)
	}
	if err := protobuf.Unmarshal(in.data, m); err != nil {
		return nil, malformed(err)
	}
	return out, nil
}

// values returns upper bounds for the values in the message. It returns an error for more than [MaxValues].
func (in *incoming) values(of protoreflect.MessageDescriptor) (valueCounter, error) {
	c := valueCounter{most: MaxValues}
	if in.form.json {
		return c, c.countJSON(in.data)
	}
	err := c.count(of, in.data, maxMessageDepth)
	return c, err
}

// unmarshalJSON decodes a message from JSON. Unknown fields are an error; see [Config.Withdrawn].
func unmarshalJSON(data []byte, out protobuf.Message, withdrawn string) error {
	if len(data) == 0 {
		return failure.BadInput("", "an empty body is no JSON; {} is accepted")
	}
	if err := protojson.Unmarshal(data, out); err != nil {
		return withoutValues(err, withdrawn)
	}
	return nil
}
