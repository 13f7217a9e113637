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

// incoming is a request as it arrives. Connect reads an empty message in its place (Read), and the handler of the method
// reads the message itself: so its bytes are charged before they are in memory, those that a compressed message
// inflates to included, and errors about a request are like all others.
//
//	wire --> [prefix] --> part of the message --> [inflater] --> data --> decode
type incoming struct {
	form form
	wire wire
	gzip bool
	// deadline is when the client gives up; zero for never.
	deadline time.Time
	// replayed is how much connect has read of the empty message.
	replayed int

	prefix [prefixBytes]byte
	part   io.LimitedReader
	// data is the message, and spare the place of its buffer in the pool.
	data  []byte
	spare *[]byte
}

// prefixBytes is the size of the prefix of an enveloped message: flags, and the length in four bytes.
const prefixBytes = 5

// flagCompressed is the flag of a compressed message.
const flagCompressed = 1

var _ io.ReadCloser = (*incoming)(nil)

// Read implements [io.Reader]: it reads an empty message.
func (in *incoming) Read(p []byte) (int, error) {
	if !in.form.enveloped || in.replayed == prefixBytes {
		return 0, io.EOF
	}
	n := min(len(p), prefixBytes-in.replayed)
	clear(p[:n])
	in.replayed += n
	return n, nil
}

// Close implements [io.Closer]. The body belongs to the server.
func (*incoming) Close() error { return nil }

type incomingKey struct{}

// incomingOf returns the request that ctx belongs to.
func incomingOf(ctx context.Context) *incoming {
	in, _ := ctx.Value(incomingKey{}).(*incoming)
	return in
}

// within returns a context that ends when the client gives up.
func (in *incoming) within(ctx context.Context) (context.Context, context.CancelFunc) {
	if in.deadline.IsZero() {
		return ctx, func() {}
	}
	return context.WithDeadline(ctx, in.deadline)
}

// wire is the body of a request. It remembers the error that reading has ended with, so that an error of the connection
// can be told from one of what it brought.
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

// receiver reads requests.
type receiver struct {
	edge Edge
	// most is the most bytes of a message, and setting the setting that says so; empty for none.
	most    int
	setting string
	// buffers are of firstBuffer bytes or little more; inflaters are readers of gzip.
	buffers, inflaters sync.Pool
}

// Sizes of what a request takes in memory while it is read, in bytes.
const (
	firstBuffer    = 4 << 10
	maxSpareBuffer = 16 << 10
	inflaterBytes  = 48 << 10
)

// receive reads the message of a request. Each part is charged before there is memory for it.
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
	in.wire.from = http.NoBody // which an inflater may still refer to
	_ = r.edge.Receive(ctx, 0) // it only takes less
}

// message reads the message, and what follows it, which must be nothing.
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

// readAll reads a message to its end, and inflates it if it is compressed.
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

// grow makes room for more of a message, after it was charged: meanwhile both buffers are in memory.
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

// tooLarge returns the error of a message of more than most bytes. It reads some of the rest, which is not kept, so that
// the client is not cut off before it reads the answer.
func (r *receiver) tooLarge(in *incoming, most int) error {
	_, _ = io.CopyN(io.Discard, &in.wire, int64(most))
	in.wire.err = nil
	out := &failure.Error{
		Code:    failure.CodeLimitExceeded,
		Message: fmt.Sprintf("the request has more than the %d bytes that are accepted, which count uncompressed", most),
		Limit:   most,
	}
	if most == r.most && r.setting != "" {
		out.Setting = r.setting
		out.Message += " (configuration key " + r.setting + ")"
	}
	return out
}

// notGzip returns the error of a message that is not compressed as the request says.
func notGzip(err error) error {
	return failure.BadInput("", "the message is not gzip, as the request says: %v", err)
}

// Memory of a message while it is decoded, in bytes for each value: as a message, and as the tree that the service takes.
const (
	messageHeld = 200
	treeHeld    = budget.InputHeld
)

// decode decodes the message of a request. It charges for the memory before, and returns what of that is for the tree of
// the service. It then gives back the memory of the request.
func (r *receiver) decode(
	ctx context.Context, in *incoming, of protoreflect.MessageDescriptor,
) (out *dynamicpb.Message, tree int, err error) {
	defer r.release(ctx, in)
	values, err := in.values(of)
	if err != nil {
		return nil, 0, err
	}
	tree = values*treeHeld + len(in.data)
	if err := budget.From(ctx).Expect(ctx, values*messageHeld+len(in.data)+tree); err != nil {
		return nil, 0, err
	}
	out = dynamicpb.NewMessage(of)
	if in.form.json {
		return out, tree, unmarshalJSON(in.data, out)
	}
	if err := protobuf.Unmarshal(in.data, out); err != nil {
		return nil, 0, malformed(err)
	}
	return out, tree, nil
}

// values returns how many values the message has, or more. It refuses more than [MaxValues].
func (in *incoming) values(of protoreflect.MessageDescriptor) (int, error) {
	if in.form.json {
		count := jsonValues(in.data)
		if count > MaxValues {
			return 0, errTooMany()
		}
		return count, nil
	}
	left := MaxValues
	if err := countValues(of, in.data, &left, maxMessageDepth); err != nil {
		return 0, err
	}
	return MaxValues - left, nil
}

// unmarshalJSON decodes a message from JSON. It refuses unknown fields.
func unmarshalJSON(data []byte, out protobuf.Message) error {
	if len(data) == 0 {
		return failure.BadInput("", "an empty body is no JSON; {} is accepted")
	}
	if err := protojson.Unmarshal(data, out); err != nil {
		return withoutValues(err)
	}
	return nil
}
