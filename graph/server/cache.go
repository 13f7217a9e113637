package server

import (
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/sluicegw/sluice/graph/engine"
)

// documentCache caches the most recently used valid documents of all APIs, with their plans, up to
// a total number of tokens. A parsed token takes several hundred bytes, however short its text; a
// field of a plan counts as one token. The cache is safe for concurrent use.
type documentCache struct {
	most int

	mu     sync.Mutex
	closed bool // nothing is cached any more
	tokens int
	used   *simplelru.LRU[documentKey, weighed]
}

// documentKey identifies a document: its text, and the name of the API whose schema it
// is validated against.
type documentKey struct{ api, query string }

type weighed struct {
	doc *document
	// plans has the plans of the document.
	plans  *engine.Engine
	tokens int
}

const (
	// textPerToken is how many bytes of text count as one more token: the text is kept
	// with its comments and blanks.
	textPerToken = 512
	// maxCachedText is the longest text that is cached, in bytes. Without it, a short document
	// could take megabytes by its comments.
	maxCachedText = 32 << 10
)

func newDocumentCache(tokens int) *documentCache {
	c := &documentCache{most: tokens}
	// Each entry weighs at least one token, so the cache never holds more than tokens
	// entries.
	c.used, _ = simplelru.NewLRU(tokens, func(_ documentKey, w weighed) {
		c.tokens -= w.tokens
		w.plans.Forget(w.doc.tree)
	})
	return c
}

// get returns the document of a text, nil if it is not cached.
func (c *documentCache) get(key documentKey) *document {
	c.mu.Lock()
	defer c.mu.Unlock()
	w, _ := c.used.Get(key)
	return w.doc
}

// add caches a document, and drops the least recently used ones to make room.
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

// grow adds the fields of a plan to the weight of a document, if it is still cached.
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

// makeRoom drops the least recently used documents. The caller holds mu.
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
