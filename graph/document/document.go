// Package document holds the documents that clients name instead of sending
// them: the documents that were trusted at start, and the ones that clients registered
// (automatic persisted queries).
package document

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"strings"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/vektah/gqlparser/v2/gqlerror"
)

// Codes that clients of persisted queries know, from Apollo's protocol and ours.
const (
	codeNotFound  = "PERSISTED_QUERY_NOT_FOUND"
	codeForbidden = "FORBIDDEN"
	codeBadInput  = "BAD_USER_INPUT"
)

// sha256Prefix is the prefix of ids that are hashes, from the appendix on persisted
// documents of the GraphQL over HTTP specification.
const sha256Prefix = "sha256:"

// Config of a store.
type Config struct {
	// Trusted are manifest files that compilers of clients wrote: Apollo's
	// persisted query manifest, Relay's persisted_queries.json, GraphQL Code
	// Generator's persisted documents.
	Trusted []string
	// TrustedOnly refuses every document that is not in a manifest, nor given to [Store.With].
	TrustedOnly bool
	// Registered is how many documents clients can register; the least recently used goes. Default 1,000.
	Registered int
	// RegisteredBytes is the largest document that is registered, in bytes. A larger one is executed and forgotten. Default 32 KiB.
	RegisteredBytes int
}

// Validate returns every problem of the configuration, joined.
func (c Config) Validate() error {
	var errs []error
	if c.TrustedOnly && len(c.Trusted) == 0 {
		errs = append(errs, errors.New("trusted-only: needs trusted-documents, the manifests that clients' compilers wrote"))
	}
	if c.Registered < 0 {
		errs = append(errs, fmt.Errorf("registered-documents: %d is negative; 0 means the default", c.Registered))
	}
	if c.RegisteredBytes < 0 {
		errs = append(errs, fmt.Errorf("registered-bytes: %d is negative; 0 means the default", c.RegisteredBytes))
	}
	return errors.Join(errs...)
}

// Store holds documents and resolves references to them. It is safe for concurrent use.
type Store struct {
	cfg        Config
	trusted    map[string]string // by id, and by sha256Prefix and hash
	registered *lru.Cache[string, string]
}

// Open reads the manifests.
func Open(cfg Config) (*Store, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if cfg.Registered == 0 {
		cfg.Registered = 1000
	}
	if cfg.RegisteredBytes == 0 {
		cfg.RegisteredBytes = 32 << 10
	}
	s := &Store{cfg: cfg, trusted: map[string]string{}}
	var err error
	if s.registered, err = lru.New[string, string](cfg.Registered); err != nil {
		return nil, fmt.Errorf("registered documents: %w", err)
	}
	for _, path := range cfg.Trusted {
		if err := s.trust(path); err != nil {
			return nil, fmt.Errorf("trusted-documents: %s: %w", path, err)
		}
	}
	return s, nil
}

// With returns a store that trusts these documents as well, by their hashes. It
// shares everything else with s.
func (s *Store) With(documents []string) *Store {
	out := *s
	out.trusted = maps.Clone(s.trusted)
	for _, query := range documents {
		out.trusted[sha256Prefix+hashOf(query)] = query
	}
	return &out
}

// Reference is the part of a request that tells which document it means.
type Reference struct {
	Query, DocumentID string
	Extensions        map[string]any
}

// Resolved is the document that a request means.
type Resolved struct {
	Query string
	// register is the id under which to register it; empty for none.
	register string
}

// Resolve returns the document that a request means. The errors are for the client.
func (s *Store) Resolve(r *Reference) (Resolved, *gqlerror.Error) {
	id, automatic, err := named(r)
	if err != nil {
		return Resolved{}, err
	}
	switch {
	case id == "" && r.Query == "":
		return Resolved{}, refusal(codeBadInput, "the request has neither a query nor a documentId")
	case id == "":
		return s.sent(r.Query)
	case r.Query == "":
		return s.known(id)
	}
	if hash, ok := strings.CutPrefix(id, sha256Prefix); ok && hash != hashOf(r.Query) {
		return Resolved{}, refusal(codeBadInput, "the hash is not that of the query that came with it")
	}
	out, err := s.sent(r.Query)
	if err == nil && automatic && !s.cfg.TrustedOnly && len(r.Query) <= s.cfg.RegisteredBytes {
		out.register = id
	}
	return out, err
}

// Remember registers a document if the client asked for that. The document must be valid.
func (s *Store) Remember(r Resolved) {
	if r.register != "" {
		s.registered.Add(r.register, strings.Clone(r.Query))
	}
}

// sent resolves a document that came as text.
func (s *Store) sent(query string) (Resolved, *gqlerror.Error) {
	if s.cfg.TrustedOnly {
		if _, ok := s.trusted[sha256Prefix+hashOf(query)]; !ok {
			return Resolved{}, s.untrusted()
		}
	}
	return Resolved{Query: query}, nil
}

func (s *Store) untrusted() *gqlerror.Error {
	return refusal(codeForbidden, "this gateway executes trusted documents only, and this is none (configuration key trusted-only)")
}

func (s *Store) known(id string) (Resolved, *gqlerror.Error) {
	if query, ok := s.trusted[id]; ok {
		return Resolved{Query: query}, nil
	}
	if query, ok := s.registered.Get(id); ok {
		return Resolved{Query: query}, nil
	}
	if s.cfg.TrustedOnly { // sending the text would not help
		return Resolved{}, s.untrusted()
	}
	return Resolved{}, refusal(codeNotFound, "PersistedQueryNotFound") // Apollo's clients know this text
}

// named returns the id that a request names. automatic reports that it uses Apollo's protocol, whose
// clients register documents that are not found.
func named(r *Reference) (id string, automatic bool, err *gqlerror.Error) {
	if r.DocumentID != "" {
		if strings.Contains(r.DocumentID, ":") && !strings.HasPrefix(r.DocumentID, sha256Prefix) {
			return "", false, refusal(codeBadInput, "documentId: sha256:<hex> and ids without a colon are accepted")
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
		return "", false, refusal(codeBadInput, `extensions.persistedQuery: {"version": 1, "sha256Hash": 64 hexadecimal digits} is accepted`)
	}
	return sha256Prefix + strings.ToLower(hash), true, nil
}

func hashOf(query string) string {
	sum := sha256.Sum256([]byte(query))
	return hex.EncodeToString(sum[:])
}

func refusal(code, message string) *gqlerror.Error {
	return &gqlerror.Error{Message: message, Extensions: map[string]any{"code": code}}
}
