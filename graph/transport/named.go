package transport

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"strings"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/sluicegw/sluice/backend/service/failure"
)

// sha256Prefix is the prefix of ids that are hashes; see the appendix on persisted
// documents of the GraphQL over HTTP specification.
const sha256Prefix = "sha256:"

// NamedDocumentsConfig configures [NamedDocuments].
type NamedDocumentsConfig struct {
	// Trusted are manifest files written by the compilers of clients: Apollo's
	// persisted query manifest, Relay's persisted_queries.json, and GraphQL Code
	// Generator's persisted documents.
	Trusted []string
	// TrustedOnly refuses all documents that are neither in a manifest nor passed to
	// [NamedDocuments.With].
	TrustedOnly bool
}

const (
	// maxRegistered is the maximum number of documents that clients can register; then the
	// least recently used one is dropped.
	maxRegistered = 1000
	// maxRegisteredBytes is the maximum size in bytes of a document that is registered. A larger
	// one is only executed.
	maxRegisteredBytes = 32 << 10
)

// Validate refuses a configuration with which every document would be refused.
func (c NamedDocumentsConfig) Validate() error {
	if c.TrustedOnly && len(c.Trusted) == 0 {
		return errors.New("trusted-only: needs trusted-documents, the manifests that clients' compilers wrote")
	}
	return nil
}

// NamedDocuments has the documents that clients can name instead of sending them: trusted ones, and
// those that clients have registered (automatic persisted queries). It is safe for concurrent use.
type NamedDocuments struct {
	cfg        NamedDocumentsConfig
	trusted    map[string]string // by id, and by sha256Prefix and hash
	registered *lru.Cache[string, string]
}

// OpenNamedDocuments reads the manifests.
func OpenNamedDocuments(cfg NamedDocumentsConfig) (*NamedDocuments, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	s := &NamedDocuments{cfg: cfg, trusted: map[string]string{}}
	s.registered, _ = lru.New[string, string](maxRegistered) // the size is positive
	for _, path := range cfg.Trusted {
		if err := s.trust(path); err != nil {
			return nil, fmt.Errorf("trusted-documents: %s: %w", path, err)
		}
	}
	return s, nil
}

// With returns NamedDocuments that also trust the given documents, by their hashes. It
// shares everything else with s.
func (s *NamedDocuments) With(documents []string) *NamedDocuments {
	out := *s
	out.trusted = maps.Clone(s.trusted)
	for _, query := range documents {
		out.trusted[sha256Prefix+hashOf(query)] = query
	}
	return &out
}

// ResolvedDocument is the document of a request.
type ResolvedDocument struct {
	Query string
	// register is the id under which to register the document; empty if it is not to be
	// registered.
	register string
}

// Resolve returns the document of a request. The errors are for the client.
func (s *NamedDocuments) Resolve(r *Request) (ResolvedDocument, *gqlerror.Error) {
	id, automatic, err := named(r)
	if err != nil {
		return ResolvedDocument{}, err
	}
	switch {
	case id == "" && r.Query == "":
		return ResolvedDocument{}, badRequest("the request has neither a query nor a documentId")
	case id == "":
		return s.sent(r.Query)
	case r.Query == "":
		return s.known(id)
	}
	if hash, ok := strings.CutPrefix(id, sha256Prefix); ok && hash != hashOf(r.Query) {
		return ResolvedDocument{}, badRequest("the hash is not that of the query that came with it")
	}
	out, err := s.sent(r.Query)
	if err == nil && automatic && !s.cfg.TrustedOnly && len(r.Query) <= maxRegisteredBytes {
		out.register = id
	}
	return out, err
}

// Remember registers a document, which must be valid, if the client has asked for that.
func (s *NamedDocuments) Remember(r ResolvedDocument) {
	if r.register != "" {
		s.registered.Add(r.register, strings.Clone(r.Query))
	}
}

// sent resolves a document that was sent as text.
func (s *NamedDocuments) sent(query string) (ResolvedDocument, *gqlerror.Error) {
	if s.cfg.TrustedOnly {
		if _, ok := s.trusted[sha256Prefix+hashOf(query)]; !ok {
			return ResolvedDocument{}, s.untrusted()
		}
	}
	return ResolvedDocument{Query: query}, nil
}

func (s *NamedDocuments) untrusted() *gqlerror.Error {
	return refusal(failure.CodeForbidden, "this gateway executes trusted documents only, and this is none (configuration key trusted-only)")
}

func (s *NamedDocuments) known(id string) (ResolvedDocument, *gqlerror.Error) {
	if query, ok := s.trusted[id]; ok {
		return ResolvedDocument{Query: query}, nil
	}
	if query, ok := s.registered.Get(id); ok {
		return ResolvedDocument{Query: query}, nil
	}
	if s.cfg.TrustedOnly { // sending the text would not help
		return ResolvedDocument{}, s.untrusted()
	}
	// Apollo's clients look for this text.
	return ResolvedDocument{}, refusal(failure.CodePersistedQueryNotFound, "PersistedQueryNotFound")
}

// named returns the id that a request names. automatic reports whether it uses Apollo's protocol,
// in which clients register documents that are not found.
func named(r *Request) (id string, automatic bool, err *gqlerror.Error) {
	if r.DocumentID != "" {
		if strings.Contains(r.DocumentID, ":") && !strings.HasPrefix(r.DocumentID, sha256Prefix) {
			return "", false, badRequest("documentId: sha256:<hex> and ids without a colon are accepted")
		}
		return r.DocumentID, false, nil
	}
	given, ok := r.Extensions["persistedQuery"]
	if !ok || given == nil {
		return "", false, nil
	}
	fields, _ := given.(map[string]any)
	hash, _ := fields["sha256Hash"].(string)
	if fmt.Sprint(fields["version"]) != "1" || len(hash) != hex.EncodedLen(sha256.Size) {
		return "", false, badRequest(`extensions.persistedQuery: {"version": 1, "sha256Hash": 64 hexadecimal digits} is accepted`)
	}
	return sha256Prefix + strings.ToLower(hash), true, nil
}

func hashOf(query string) string {
	sum := sha256.Sum256([]byte(query))
	return hex.EncodeToString(sum[:])
}
