package stream

import "context"

// Output is the memory of one answer: the executor writes the answer into it, and the
// transport sends it from there without a copy. The zero value is ready. Only one goroutine may use it
// at a time.
type Output struct {
	// The executor writes Head before the data, and leaves Room bytes free after them.
	Head string
	Room int
	// buf is the head and the data.
	buf   []byte
	owner OutputOwner
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

// Fill sets the head and the data that were written, and the owner of their memory.
func (o *Output) Fill(buf []byte, owner OutputOwner) { o.buf, o.owner = buf, owner }

// Filled returns the head and the data; nil if they were not written.
func (o *Output) Filled() []byte { return o.buf }

// Release gives the memory back, which may not be read after that.
func (o *Output) Release() {
	if o.owner != nil {
		o.owner.TakeBack(o.buf)
	}
	o.buf, o.owner = nil, nil
}
