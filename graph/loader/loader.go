// Package loader batches the reads of handwritten resolvers, which run in gqlgen's
// goroutines. The resources of one kind that are requested at about the same time are
// read by one call, and so are pages. The engine does not use it: it knows all reads of
// a level and calls the service itself.
//
// Loaders live as long as one response. What they have read is not read again, so all
// fields of a response show the same state of a resource.
package loader

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/graph-gophers/dataloader/v7"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/query"
)

// Limits of one batch.
const (
	// MaxResources is the maximum number of resources in one call.
	MaxResources = 1000
	// MaxPages is the maximum number of pages in one call.
	MaxPages = 100
)

// DefaultWait is how long the first read of a batch waits for others. On a busy machine
// some may start later; then a level needs two calls.
const DefaultWait = time.Millisecond

// Reader is the source of the loaders. Its reads end with their context.
type Reader interface {
	// Lookup reads resources; nil for absent and unreadable ones.
	Lookup(context.Context, []backend.Key) ([]*query.Resource, error)
	// ListMany reads pages of connections, each with its own error.
	ListMany(context.Context, []query.ListRequest) ([]*query.Page, []error)
}

// Loaders serve one caller and one response.
type Loaders struct {
	reader Reader
	wait   time.Duration
	// pages has JSON requests as keys.
	pages *dataloader.Loader[string, *query.Page]

	mu sync.Mutex // guards the rest
	// resources has one loader for each kind. A common call would fail for all kinds if one of them
	// cannot be read.
	resources map[string]*dataloader.Loader[backend.Key, *query.Resource]
	// requests has the request of each key in pages.
	requests map[string]query.ListRequest
	// once has the reads of [Loaders.Once], by key.
	once map[string]func() (any, error)
}

// New returns loaders that have read nothing. A zero wait means DefaultWait.
func New(r Reader, wait time.Duration) *Loaders {
	if wait <= 0 {
		wait = DefaultWait
	}
	l := &Loaders{
		reader:    r,
		wait:      wait,
		requests:  map[string]query.ListRequest{},
		resources: map[string]*dataloader.Loader[backend.Key, *query.Resource]{},
		once:      map[string]func() (any, error){},
	}
	l.pages = newLoader(wait, MaxPages, l.list)
	return l
}

func newLoader[K comparable, V any](
	wait time.Duration, most int, read dataloader.BatchFunc[K, V],
) *dataloader.Loader[K, V] {
	return dataloader.NewBatchedLoader(read, dataloader.WithWait[K, V](wait), dataloader.WithBatchCapacity[K, V](most))
}

type contextKey struct{}

// With returns a context that carries new loaders. Each response needs its own.
func With(ctx context.Context, r Reader, wait time.Duration) context.Context {
	return context.WithValue(ctx, contextKey{}, New(r, wait))
}

// From returns the loaders of a context, nil if it carries none.
func From(ctx context.Context) *Loaders {
	l, _ := ctx.Value(contextKey{}).(*Loaders)
	return l
}

// Resource reads a resource, together with others of its kind; nil if it is absent or
// cannot be read.
func (l *Loaders) Resource(ctx context.Context, key backend.Key) (*query.Resource, error) {
	return l.resourcesOf(key.Kind).Load(ctx, key)()
}

// Resources reads several resources, which may have different kinds.
func (l *Loaders) Resources(ctx context.Context, keys []backend.Key) ([]*query.Resource, error) {
	waits := make([]dataloader.Thunk[*query.Resource], len(keys))
	for i, key := range keys {
		waits[i] = l.resourcesOf(key.Kind).Load(ctx, key)
	}
	out := make([]*query.Resource, len(keys))
	for i, await := range waits {
		var err error
		if out[i], err = await(); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Page reads a page of a connection, together with others.
func (l *Loaders) Page(ctx context.Context, req query.ListRequest) (*query.Page, error) {
	raw, err := json.Marshal(req)
	if err != nil {
		return nil, fmt.Errorf("page of %s: %w", req.Kind, err)
	}
	key := string(raw)
	l.mu.Lock()
	l.requests[key] = req
	l.mu.Unlock()
	return l.pages.Load(ctx, key)()
}

// Pages reads pages of connections of any kinds, at most [MaxPages] in a call. Unlike Page
// it does not wait for other reads.
func (l *Loaders) Pages(ctx context.Context, requests []query.ListRequest) ([]*query.Page, error) {
	out := make([]*query.Page, 0, len(requests))
	for some := range slices.Chunk(requests, MaxPages) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		pages, errs := l.reader.ListMany(ctx, some)
		if err := cmp.Or(errs...); err != nil {
			return nil, err
		}
		out = append(out, pages...)
	}
	return out, nil
}

// Once calls read at the first call with a key in a response. Later calls with that key
// return the same result, which must not be modified.
func (l *Loaders) Once(key string, read func() (any, error)) (any, error) {
	l.mu.Lock()
	if l.once[key] == nil {
		l.once[key] = sync.OnceValues(read)
	}
	once := l.once[key]
	l.mu.Unlock()
	return once()
}

func (l *Loaders) resourcesOf(kind string) *dataloader.Loader[backend.Key, *query.Resource] {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.resources[kind] == nil {
		l.resources[kind] = newLoader(l.wait, MaxResources, l.lookup)
	}
	return l.resources[kind]
}

// lookup reads one batch of resources; an error is returned for all of them.
func (l *Loaders) lookup(ctx context.Context, keys []backend.Key) []*dataloader.Result[*query.Resource] {
	found, err := l.reader.Lookup(ctx, keys)
	out := make([]*dataloader.Result[*query.Resource], len(keys))
	for i := range keys {
		out[i] = &dataloader.Result[*query.Resource]{Error: err}
		if err == nil {
			out[i].Data = found[i]
		}
	}
	return out
}

// list reads one batch of pages.
func (l *Loaders) list(ctx context.Context, keys []string) []*dataloader.Result[*query.Page] {
	requests := make([]query.ListRequest, len(keys))
	l.mu.Lock()
	for i, key := range keys {
		requests[i] = l.requests[key]
	}
	l.mu.Unlock()
	pages, errs := l.reader.ListMany(ctx, requests)
	out := make([]*dataloader.Result[*query.Page], len(keys))
	for i := range keys {
		out[i] = &dataloader.Result[*query.Page]{Data: pages[i], Error: errs[i]}
	}
	return out
}
