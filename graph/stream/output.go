package stream

import (
	"context"

	"github.com/sluicegw/sluice/graph/answer"
)

// Output is the memory of an answer. The executor writes the answer into it, and the transport sends it from there
// without a copy. The zero value is ready to use. It is not safe for concurrent use.
type Output struct {
	// Head and Tail are the bytes that the executor writes before and after the data.
	Head, Tail string
	// buf is the head, the data and the tail.
	buf   []byte
	owner OutputOwner
	kept  *answer.Kept
	// secret is set by MarkSecret.
	secret bool
}

// OutputOwner owns the memory of an answer.
type OutputOwner interface {
	// TakeBack is called with the memory when it is no longer used.
	TakeBack(buf []byte)
}

type outputKey struct{}

// WithOutput returns a context with an output.
func WithOutput(ctx context.Context, o *Output) context.Context {
	return context.WithValue(ctx, outputKey{}, o)
}

// OutputOf returns the output in ctx; nil if there is none.
func OutputOf(ctx context.Context) *Output {
	o, _ := ctx.Value(outputKey{}).(*Output)
	return o
}

// Fill sets the answer, including head and tail, and the owner of its memory.
func (o *Output) Fill(buf []byte, owner OutputOwner) { o.buf, o.owner = buf, owner }

// FillKept sets a kept answer, including head and tail.
func (o *Output) FillKept(k *answer.Kept) { o.buf, o.kept = k.Body(), k }

// Filled returns the answer, including head and tail; nil if none was set.
func (o *Output) Filled() []byte { return o.buf }

// Data returns the data of the answer, without head and tail.
func (o *Output) Data() []byte { return o.buf[len(o.Head) : len(o.buf)-len(o.Tail)] }

// Kept returns the kept answer; nil if the answer was executed.
func (o *Output) Kept() *answer.Kept { return o.kept }

// MarkSecret records that the answer may contain secrets, so that clients must not
// cache it.
func (o *Output) MarkSecret() { o.secret = true }

// Secret reports whether the answer may contain secrets.
func (o *Output) Secret() bool { return o.secret }

// Release returns the memory to its owner. The answer must not be used afterwards.
func (o *Output) Release() {
	if o.owner != nil {
		o.owner.TakeBack(o.buf)
	}
	o.buf = nil
	o.owner = nil
	o.kept = nil
	o.secret = false
}
