package server

import (
	"context"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/handler/lru"
)

// What is remembered of documents: the ones used last, none that is long. A
// short document can come in endless forms, with comments of megabytes.
const (
	documentCache      = 1000
	documentCacheBytes = 32 << 10
)

// short is a cache of short keys.
type short[T any] struct{ graphql.Cache[T] }

func newShort[T any]() short[T] { return short[T]{lru.New[T](documentCache)} }

// Add remembers a value, unless its key is long.
func (c short[T]) Add(ctx context.Context, key string, value T) {
	if len(key) <= documentCacheBytes {
		c.Cache.Add(ctx, key, value)
	}
}
