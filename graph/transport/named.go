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

// sha256Prefix begins ids that are hashes; see the appendix on persisted documents in the GraphQL over HTTP
// specification.
const sha256Prefix = "sha256:"

// NamedDocumentsConfig configures [NamedDocuments].
type NamedDocumentsConfig struct {
	// Trusted are the paths of manifests, which compilers of clients have written: Apollo's persisted query manifest,
	// Relay's persisted_queries.json, or persisted documents of GraphQL Code Generator.
	Trusted []string
	// TrustedOnly makes the gateway refuse all documents except those in manifests and those passed to
	// [NamedDocuments.With].
	TrustedOnly bool
}

const (
	// maxRegistered is the maximum number of documents that clients have registered. The least recently used one is
	// dropped for another.
	maxRegistered = 1000
	// maxRegisteredBytes is the maximum size of a registered document in bytes. Larger documents are executed but not
	// registered.
	maxRegisteredBytes = 32 << 10
)

// Validate returns an error for a configuration that would refuse every document.
func (c NamedDocumentsConfig) Validate() error {
	if c.TrustedOnly && len(c.Trusted) == 0 {
		return errors.New("trusted-only: needs trusted-documents, the manifests that clients' compilers wrote")
	}
	return nil
}

// NamedDocuments are the documents that clients can name instead of sending them: trusted documents, and documents that
// clients have registered (automatic persisted queries). Safe for concurrent use.
type NamedDocuments struct {
	cfg        NamedDocumentsConfig
	trusted    map[string]string // by id, and by sha256Prefix and hash
	registered *lru.Cache[string, string]
}

// OpenNamedDocuments reads the manifests of cfg.
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

// With returns NamedDocuments that also trust the given documents, by their hashes. Everything else is shared.
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
	// register is the id under which the document is to be registered; empty if it is not.
	register string
}

// Resolve returns the document that a request sends or names. The error is for the client.
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

// Remember registers a document if the client has asked for that. The document must be valid.
func (s *NamedDocuments) Remember(r ResolvedDocument) {
	if r.register != "" {
		s.registered.Add(r.register, strings.Clone(r.Query))
	}
}

// sent resolves a document that the request contains.
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
	// Apollo's clients recognize this text.
	return ResolvedDocument{}, refusal(failure.CodePersistedQueryNotFound, "PersistedQueryNotFound")
}

// named returns the id of the document that a request names; "" if it names none. automatic reports whether the request
// uses Apollo's protocol, with which clients register documents that are not found.
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
