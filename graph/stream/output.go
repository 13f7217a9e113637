package stream

import (
	"context"

	"github.com/sluicegw/sluice/graph/answer"
)

// Output is the memory of one answer: the executor writes the answer into it, and the
// transport sends it from there without a copy. The zero value is ready. Only one goroutine may use it
// at a time.
type Output struct {
	// The executor writes Head before the data and Tail after them.
	Head, Tail string
	// buf is the head, the data and the tail.
	buf   []byte
	owner OutputOwner
	kept  *answer.Kept
	// secret is set by MarkSecret.
	secret bool
}

// OutputOwner owns the memory in which an answer was written.
type OutputOwner interface {
	// TakeBack is called with the memory when it is no longer read.
	TakeBack(buf []byte)
}

type outputKey struct{}

// WithOutput returns a context that carries an output.
func WithOutput(ctx context.Context, o *Output) context.Context {
	return context.WithValue(ctx, outputKey{}, o)
}

// OutputOf returns the output that a context carries, nil if there is none.
func OutputOf(ctx context.Context) *Output {
	o, _ := ctx.Value(outputKey{}).(*Output)
	return o
}

// Fill sets the answer that was written, with head and tail, and the owner of its memory.
func (o *Output) Fill(buf []byte, owner OutputOwner) { o.buf, o.owner = buf, owner }

// FillKept sets an answer that is kept, and has the head and the tail.
func (o *Output) FillKept(k *answer.Kept) { o.buf, o.kept = k.Body(), k }

// Filled returns the answer, with head and tail; nil if it was not written.
func (o *Output) Filled() []byte { return o.buf }

// Data returns the data of the answer that was written.
func (o *Output) Data() []byte { return o.buf[len(o.Head) : len(o.buf)-len(o.Tail)] }

// Kept returns the answer that is kept; nil if it was executed.
func (o *Output) Kept() *answer.Kept { return o.kept }

// MarkSecret records that the answer may have secrets, so that no client may store it.
func (o *Output) MarkSecret() { o.secret = true }

// Secret reports whether the answer may have secrets.
func (o *Output) Secret() bool { return o.secret }

// Release gives the memory back, which may not be read after that.
func (o *Output) Release() {
	if o.owner != nil {
		o.owner.TakeBack(o.buf)
	}
	o.buf = nil
	o.owner = nil
	o.kept = nil
	o.secret = false
}
