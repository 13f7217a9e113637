package server

import (
	"net/http"
	"time"
)

// MethodsHandler returns the handler of [Server.ServeMethods].
func (s *Server) MethodsHandler() http.Handler { return s.methodsHandler() }

// HasHalf reports whether a string of a document has the escape of half a surrogate pair.
func HasHalf(document string) bool { return scan(document, len(document)).half }

// NewCallers returns the counts of callers.
func NewCallers(limits, defaults CallerLimits, now func() time.Time) *callers {
	return newCallers(limits, defaults, now)
}

// Noisiest returns the callers that take most.
func (c *callers) Noisiest(most int) []CallerState { return c.noisiest(most) }

// Len returns the number of callers that are remembered.
func (c *callers) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.busy) + c.idle.Len()
}

// CachedDocuments returns how many documents the generation that is served has cached, and their tokens.
func (s *Server) CachedDocuments() (documents, tokens int) {
	c := s.generation.Load().cache
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.used.Len(), c.tokens
}
