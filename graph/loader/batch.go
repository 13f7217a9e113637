package loader

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/graph-gophers/dataloader/v7"
)

// errUnanswered is the error of a read that its batch did not answer.
var errUnanswered = errors.New("a batch of reads ended without an answer for each")

// promise is the answer to a read once done is closed.
type promise[V any] struct {
	done  chan struct{}
	value V
	err   error
}

// batch reads what is asked for at about the same time by one call, and every
// key once. Waiting ends with the context of who waits.
type batch[K comparable, V any] struct {
	loader *dataloader.Loader[K, V]
	// read answers each key by a value or an error.
	read func(context.Context, []K) ([]V, []error)

	mu sync.Mutex
	// promises by key; guarded by mu.
	promises map[K]*promise[V]
}

func newBatch[K comparable, V any](wait time.Duration, capacity int, read func(context.Context, []K) ([]V, []error)) *batch[K, V] {
	b := &batch[K, V]{read: read, promises: map[K]*promise[V]{}}
	b.loader = dataloader.NewBatchedLoader(b.answer,
		dataloader.WithWait[K, V](wait), dataloader.WithBatchCapacity[K, V](capacity),
		dataloader.WithCache[K, V](&dataloader.NoCache[K, V]{}))
	return b
}

// load asks for a key and returns what waits for the answer.
func (b *batch[K, V]) load(ctx context.Context, key K) func() (V, error) {
	b.mu.Lock()
	p, asked := b.promises[key]
	if !asked {
		p = &promise[V]{done: make(chan struct{})}
		b.promises[key] = p
	}
	b.mu.Unlock()
	if !asked {
		b.loader.Load(ctx, key)
	}
	return func() (V, error) {
		select {
		case <-p.done:
			return p.value, p.err
		case <-ctx.Done():
			var none V
			return none, ctx.Err()
		}
	}
}

// answer reads a batch and keeps its promises, also if the read panics.
func (b *batch[K, V]) answer(ctx context.Context, keys []K) []*dataloader.Result[V] {
	var values []V
	errs := []error{}
	defer func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		for i, key := range keys {
			p := b.promises[key]
			p.err = errUnanswered
			if i < len(values) && i < len(errs) {
				p.value, p.err = values[i], errs[i]
			}
			close(p.done)
		}
	}()
	values, errs = b.read(ctx, keys)
	return make([]*dataloader.Result[V], len(keys)) // nobody looks: the promises have the answers
}
