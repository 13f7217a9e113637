// Package loader batches the reads of handwritten resolvers, which run in the goroutines of gqlgen. It reads resources
// of one kind in one call, if they are requested at about the same time. It does the same for pages. The engine does
// not use this package, because it knows all reads of a level and calls the service directly.
//
// Loaders exist for one response. Except for [Loaders.Pages] they read nothing twice, so all fields of the response
// show the same state of a resource.
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

// The limits of a batch.
const (
	// MaxResources is the maximum number of resources in one call.
	MaxResources = 1000
	// MaxPages is the maximum number of pages in one call.
	MaxPages = 100
)

// DefaultWait is how long the first read of a batch waits for others. On a busy machine some may come later; then a
// second call is needed.
const DefaultWait = time.Millisecond

// Reader is what the loaders read from. Each read ends when its context ends.
type Reader interface {
	// Lookup reads resources. The result has nil for absent and unreadable ones.
	Lookup(context.Context, []backend.Key) ([]*query.Resource, error)
	// ListMany reads pages of connections. Each page has its own error.
	ListMany(context.Context, []query.ListRequest) ([]*query.Page, []error)
}

// Loaders batches the reads for one response.
type Loaders struct {
	reader Reader
	wait   time.Duration
	// pages loads pages. A key is the JSON of a request.
	pages *dataloader.Loader[string, *query.Page]

	mu sync.Mutex // guards the rest
	// resources has a loader for each kind. A single loader for all kinds would fail for all if one kind cannot be
	// read.
	resources map[string]*dataloader.Loader[backend.Key, *query.Resource]
	// requests maps the keys of pages to the requests.
	requests map[string]query.ListRequest
	// once maps keys to the reads of [Loaders.Once].
	once map[string]func() (any, error)
}

// New returns new loaders. wait is the time that the first read of a batch waits for others; zero means DefaultWait.
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

// With returns a context with new loaders. It must be called for each response.
func With(ctx context.Context, r Reader, wait time.Duration) context.Context {
	return context.WithValue(ctx, contextKey{}, New(r, wait))
}

// From returns the loaders of a context; nil if there are none.
func From(ctx context.Context) *Loaders {
	l, _ := ctx.Value(contextKey{}).(*Loaders)
	return l
}

// Resource reads a resource, in a batch with others of its kind. It returns nil if the resource is absent or cannot be
// read.
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

// Page reads a page of a connection, in a batch with others.
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

// Pages reads pages of connections, which may have different kinds, in batches of at most [MaxPages]. Unlike Page it
// does not wait for other reads, and it reads a page again that was read before.
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

// Once calls read once for each key, and returns its result in this and all later calls with the key. The result must
// not be modified.
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

// lookup reads a batch of resources. If that fails, each result has the error.
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

// list reads a batch of pages.
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
