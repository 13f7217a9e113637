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

// sha256Prefix is the prefix of ids that are hashes, from the appendix on persisted
// documents of the GraphQL over HTTP specification.
const sha256Prefix = "sha256:"

// NamedDocumentsConfig configures [NamedDocuments].
type NamedDocumentsConfig struct {
	// Trusted are manifest files that compilers of clients wrote: Apollo's
	// persisted query manifest, Relay's persisted_queries.json, GraphQL Code
	// Generator's persisted documents.
	Trusted []string
	// TrustedOnly refuses every document that is not in a manifest, nor given to [NamedDocuments.With].
	TrustedOnly bool
}

const (
	// maxRegistered is how many documents clients can register; the least recently used goes.
	maxRegistered = 1000
	// maxRegisteredBytes is the largest document that is registered, in bytes. A larger one is executed and forgotten.
	maxRegisteredBytes = 32 << 10
)

// Validate refuses a configuration that would refuse all documents.
func (c NamedDocumentsConfig) Validate() error {
	if c.TrustedOnly && len(c.Trusted) == 0 {
		return errors.New("trusted-only: needs trusted-documents, the manifests that clients' compilers wrote")
	}
	return nil
}

// NamedDocuments holds the documents that clients name instead of sending them: the documents that were trusted at
// start, and the documents that clients registered (automatic persisted queries). It is safe for concurrent use.
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

// With returns NamedDocuments that trust these documents as well, by their hashes. It
// shares everything else with s.
func (s *NamedDocuments) With(documents []string) *NamedDocuments {
	out := *s
	out.trusted = maps.Clone(s.trusted)
	for _, query := range documents {
		out.trusted[sha256Prefix+hashOf(query)] = query
	}
	return &out
}

// ResolvedDocument is the document that a request means.
type ResolvedDocument struct {
	Query string
	// register is the id under which to register it; empty for none.
	register string
}

// Resolve returns the document that a request means. The errors are for the client.
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

// Remember registers a document if the client asked for that. The document must be valid.
func (s *NamedDocuments) Remember(r ResolvedDocument) {
	if r.register != "" {
		s.registered.Add(r.register, strings.Clone(r.Query))
	}
}

// sent resolves a document that came as text.
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
	// Apollo's clients know this text
	return ResolvedDocument{}, refusal(failure.CodePersistedQueryNotFound, "PersistedQueryNotFound")
}

// named returns the id that a request names. automatic reports that it uses Apollo's protocol, whose
// clients register documents that are not found.
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
