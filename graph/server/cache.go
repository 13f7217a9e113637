package server

import (
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/sluicegw/sluice/graph/engine"
)

// documentCache caches the most recently used valid documents of all APIs with their plans, up to a total number of
// tokens. A parsed token takes several hundred bytes, however short it is; a field of a plan counts as one token. Safe
// for concurrent use.
type documentCache struct {
	most int

	mu     sync.Mutex
	closed bool // nothing is cached any more
	tokens int
	used   *simplelru.LRU[documentKey, weighed]
}

// documentKey identifies a document by its text and by the API against whose schema it is validated.
type documentKey struct{ api, query string }

type weighed struct {
	doc *document
	// plans is the engine that has the plans of the document.
	plans  *engine.Engine
	tokens int
}

const (
	// textPerToken is how many bytes of text count as one token, because the text is cached too, with comments and
	// blanks.
	textPerToken = 512
	// maxCachedText is the maximum length of a cached text in bytes. A short document with long comments could
	// otherwise take megabytes.
	maxCachedText = 32 << 10
)

func newDocumentCache(tokens int) *documentCache {
	c := &documentCache{most: tokens}
	// Each entry counts as at least one token, so this limit on the number of entries does not restrict the cache.
	c.used, _ = simplelru.NewLRU(tokens, func(_ documentKey, w weighed) {
		c.tokens -= w.tokens
		w.plans.Forget(w.doc.tree)
	})
	return c
}

// get returns the cached document with a text; nil if there is none.
func (c *documentCache) get(key documentKey) *document {
	c.mu.Lock()
	defer c.mu.Unlock()
	w, _ := c.used.Get(key)
	return w.doc
}

// add caches a document, and drops the least recently used ones to make room for it.
func (c *documentCache) add(key documentKey, doc *document, plans *engine.Engine, tokens int) {
	tokens += 1 + len(key.query)/textPerToken
	if tokens > c.most || len(key.query) > maxCachedText {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.used.Contains(key) {
		return
	}
	c.used.Add(key, weighed{doc: doc, plans: plans, tokens: tokens})
	plans.Keep(doc.tree, func(fields int) { c.grow(key, doc, fields) })
	c.tokens += tokens
	c.makeRoom()
}

// grow adds the number of fields of a new plan to the tokens of a document, if it is still cached.
func (c *documentCache) grow(key documentKey, doc *document, fields int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w, _ := c.used.Peek(key)
	if w.doc != doc {
		return
	}
	w.tokens += fields
	c.used.Add(key, w)
	c.tokens += fields
	c.makeRoom()
}

// makeRoom drops the least recently used documents until the others fit. The caller holds mu.
func (c *documentCache) makeRoom() {
	for c.tokens > c.most {
		c.used.RemoveOldest()
	}
}

// close drops all documents and stops caching.
func (c *documentCache) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	c.used.Purge()
}
