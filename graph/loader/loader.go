// Package loader batches the reads of resolvers that are written by hand and
// run in goroutines of gqlgen: one call for all resources of one kind that they
// ask for at about the same time, and one for all pages. The engine
// knows a level as a whole and calls the service itself.
//
// Loaders live as long as one response: what they have read once is not read
// again, and two fields of one response show one state of a resource.
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
	// MaxResources is the greatest number of resources that one call reads.
	MaxResources = 1000
	// MaxPages is the greatest number of pages that one call reads.
	MaxPages = 100
)

// DefaultWait is how long the first read of a batch waits for others. A busy
// machine may take longer to begin all of them; then a level is two calls.
const DefaultWait = time.Millisecond

// Reader is what loaders read from. Its reads end with their context.
type Reader interface {
	// Lookup reads resources, nil for what is absent or unreadable.
	Lookup(context.Context, []backend.Key) ([]*query.Resource, error)
	// ListMany reads pages of connections, each with its own error.
	ListMany(context.Context, []query.ListRequest) ([]*query.Page, []error)
}

// Loaders serve one caller and one response.
type Loaders struct {
	reader Reader
	wait   time.Duration
	// pages by their requests as JSON.
	pages *dataloader.Loader[string, *query.Page]

	mu sync.Mutex // guards the rest
	// resources are the loaders of each kind. One call for several kinds would fail for all if one of them cannot be
	// read.
	resources map[string]*dataloader.Loader[backend.Key, *query.Resource]
	// requests by the key of their page.
	requests map[string]query.ListRequest
	// once are the reads of [Loaders.Once], by key.
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

// With returns a context that carries new loaders: for one response.
func With(ctx context.Context, r Reader, wait time.Duration) context.Context {
	return context.WithValue(ctx, contextKey{}, New(r, wait))
}

// From returns the loaders of a context, nil if it carries none.
func From(ctx context.Context) *Loaders {
	l, _ := ctx.Value(contextKey{}).(*Loaders)
	return l
}

// Resource reads one resource together with others of its kind; nil if it is
// absent or cannot be read.
func (l *Loaders) Resource(ctx context.Context, key backend.Key) (*query.Resource, error) {
	return l.resourcesOf(key.Kind).Load(ctx, key)()
}

// Resources reads several resources, of one kind or of several.
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

// Page reads one page of a connection together with others.
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

// Pages reads pages of connections, of whatever kinds, [MaxPages] in a call. Unlike Page it
// waits for no other reads.
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

// Once returns what read returns, which is called once in a response for all who give the
// same key. Nobody may change what it returns.
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
