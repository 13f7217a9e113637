package server

import (
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"github.com/vektah/gqlparser/v2/ast"
)

// documentCache remembers the valid documents that were used last, and their plans, as many
// as have a number of tokens in all: a token takes several hundred bytes once it is
// parsed, whatever its text, and a field of a plan counts as one. It is safe for concurrent use.
type documentCache struct {
	most  int
	plans keeper

	mu     sync.Mutex
	closed bool // nothing is remembered any more
	tokens int
	used   *simplelru.LRU[string, weighed]
}

// keeper keeps what was compiled from a document as long as that is remembered.
type keeper interface {
	Keep(doc *ast.QueryDocument, weigh func(fields int))
	Forget(*ast.QueryDocument)
}

type weighed struct {
	doc    *ast.QueryDocument
	tokens int
}

const (
	// textPerToken is how many bytes of text count as one token more: the text is
	// kept, with the comments and blanks in it.
	textPerToken = 512
	// maxRemembered is the longest text that is remembered, in bytes. A short
	// document can come in endless forms, with comments of megabytes.
	maxRemembered = 32 << 10
)

func newDocumentCache(tokens int, plans keeper) *documentCache {
	c := &documentCache{most: tokens, plans: plans}
	// No entry weighs less than a token, so it never holds more than that many.
	c.used, _ = simplelru.NewLRU(tokens, func(_ string, w weighed) {
		c.tokens -= w.tokens
		plans.Forget(w.doc)
	})
	return c
}

// get returns the document of a text, nil if it is not remembered.
func (c *documentCache) get(query string) *ast.QueryDocument {
	c.mu.Lock()
	defer c.mu.Unlock()
	w, _ := c.used.Get(query)
	return w.doc
}

// add remembers a document, and forgets those used longest ago to make room.
func (c *documentCache) add(query string, doc *ast.QueryDocument, tokens int) {
	tokens += 1 + len(query)/textPerToken
	if tokens > c.most || len(query) > maxRemembered {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.used.Contains(query) {
		return
	}
	c.used.Add(query, weighed{doc: doc, tokens: tokens})
	c.plans.Keep(doc, func(fields int) { c.grow(query, doc, fields) })
	c.tokens += tokens
	c.makeRoom()
}

// grow adds the fields of a plan to what a document weighs, if it is still remembered.
func (c *documentCache) grow(query string, doc *ast.QueryDocument, fields int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w, _ := c.used.Peek(query)
	if w.doc != doc {
		return
	}
	c.used.Add(query, weighed{doc: doc, tokens: w.tokens + fields})
	c.tokens += fields
	c.makeRoom()
}

// makeRoom forgets the documents used longest ago. The caller holds mu.
func (c *documentCache) makeRoom() {
	for c.tokens > c.most {
		c.used.RemoveOldest()
	}
}

// close forgets all documents, and remembers none any more.
func (c *documentCache) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	c.used.Purge()
}
