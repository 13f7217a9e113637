// Package loader batches the reads of resolvers that are written by hand and
// run in goroutines of gqlgen: one call for all resources of one kind that they
// ask for at about the same time, and one for all pages of one kind. The engine
// knows a level as a whole and calls the same batch functions, [Reads], itself.
//
// Loaders live as long as one response: what they have read once is not read
// again, and two fields of one response show one state of a resource.
package loader

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/access"
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

// Loaders are those of one caller and one response.
type Loaders struct {
	reads Reads
	wait  time.Duration

	mu sync.Mutex
	// resources and pages by kind; guarded by mu.
	resources map[string]*batch[backend.Key, *query.Resource]
	pages     map[string]*batch[string, *query.Page]
	// requests by the key of their page; guarded by mu.
	requests map[string]query.ListRequest
	// once are the answers of [Loaders.Once], by key; guarded by mu.
	once map[string]*promise[any]
}

// New returns loaders that have read nothing. A zero wait means DefaultWait.
func New(s Service, c access.Caller, wait time.Duration) *Loaders {
	if wait <= 0 {
		wait = DefaultWait
	}
	return &Loaders{
		reads: Reads{s, c}, wait: wait,
		resources: map[string]*batch[backend.Key, *query.Resource]{}, pages: map[string]*batch[string, *query.Page]{},
		requests: map[string]query.ListRequest{}, once: map[string]*promise[any]{},
	}
}

type contextKey struct{}

// With returns a context that carries new loaders: for one response.
func With(ctx context.Context, s Service, c access.Caller, wait time.Duration) context.Context {
	return context.WithValue(ctx, contextKey{}, New(s, c, wait))
}

// From returns the loaders of a context, nil if it carries none.
func From(ctx context.Context) *Loaders {
	l, _ := ctx.Value(contextKey{}).(*Loaders)
	return l
}

// Resource reads one resource together with others of its kind; nil if it is
// absent or cannot be read.
func (l *Loaders) Resource(ctx context.Context, key backend.Key) (*query.Resource, error) {
	return l.resourcesOf(key.Kind).load(ctx, key)()
}

// Resources reads several resources, of one kind or of several.
func (l *Loaders) Resources(ctx context.Context, keys []backend.Key) ([]*query.Resource, error) {
	waits := make([]func() (*query.Resource, error), len(keys))
	for i, key := range keys {
		waits[i] = l.resourcesOf(key.Kind).load(ctx, key)
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

// Page reads one page of a connection together with others of its kind.
func (l *Loaders) Page(ctx context.Context, req query.ListRequest) (*query.Page, error) {
	raw, err := json.Marshal(req)
	if err != nil {
		return nil, fmt.Errorf("page of %s: %w", req.Kind, err)
	}
	key := string(raw)
	l.mu.Lock()
	l.requests[key] = req
	l.mu.Unlock()
	return l.pagesOf(req.Kind).load(ctx, key)()
}

// Pages reads pages of connections, of whatever kinds, [MaxPages] in a call. Unlike Page it
// waits for no other reads.
func (l *Loaders) Pages(ctx context.Context, requests []query.ListRequest) ([]*query.Page, error) {
	out := make([]*query.Page, 0, len(requests))
	for some := range slices.Chunk(requests, MaxPages) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		pages, errs := l.reads.Pages(ctx, some)
		if err := errors.Join(errs...); err != nil {
			return nil, errs[slices.IndexFunc(errs, func(err error) bool { return err != nil })]
		}
		out = append(out, pages...)
	}
	return out, nil
}

// Once returns what read returns, which is called once in a response for all who give the
// same key. Nobody may change what it returns.
func (l *Loaders) Once(ctx context.Context, key string, read func() (any, error)) (any, error) {
	l.mu.Lock()
	p, begun := l.once[key]
	if !begun {
		p = &promise[any]{done: make(chan struct{}), err: errUnanswered}
		l.once[key] = p
	}
	l.mu.Unlock()
	if !begun {
		defer close(p.done) // also if it panics
		p.value, p.err = read()
		return p.value, p.err
	}
	select {
	case <-p.done:
		return p.value, p.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (l *Loaders) resourcesOf(kind string) *batch[backend.Key, *query.Resource] {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.resources[kind] == nil {
		l.resources[kind] = newBatch(l.wait, MaxResources, l.lookup)
	}
	return l.resources[kind]
}

func (l *Loaders) pagesOf(kind string) *batch[string, *query.Page] {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pages[kind] == nil {
		l.pages[kind] = newBatch(l.wait, MaxPages, l.list)
	}
	return l.pages[kind]
}

// lookup reads one batch of resources; an error is that of all.
func (l *Loaders) lookup(ctx context.Context, keys []backend.Key) ([]*query.Resource, []error) {
	found, err := l.reads.Resources(ctx, keys)
	errs := make([]error, len(keys))
	if err != nil {
		found = make([]*query.Resource, len(keys))
		for i := range errs {
			errs[i] = err
		}
	}
	return found, errs
}

// list reads one batch of pages.
func (l *Loaders) list(ctx context.Context, keys []string) ([]*query.Page, []error) {
	requests := make([]query.ListRequest, len(keys))
	l.mu.Lock()
	for i, key := range keys {
		requests[i] = l.requests[key]
	}
	l.mu.Unlock()
	return l.reads.Pages(ctx, requests)
}
