package catalogue

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/sluicegw/sluice/backend"
)

// maxAccepted is the maximum number of accepted catalogues that a store remembers.
const maxAccepted = 100

// writeTimeout is how long the store may take to begin to write the record.
const writeTimeout = 5 * time.Second

// recordFormat is the version of the stored records.
const recordFormat = 1

// The internal records have the kind recordKind. The record with the name listName lists the accepted catalogues, the
// newest last. For each of them there is a record with its outline, whose name is its hash.
const (
	recordKind = "_catalogue"
	listName   = "accepted"
)

// RecordKey returns the key of the record of accepted catalogues. A gateway creates the record, if it does not exist,
// before it serves a store, unless it is read-only.
func RecordKey() backend.Key { return backend.Key{Kind: recordKind, Name: listName} }

// accepted is the record that lists the accepted catalogues.
type accepted struct {
	Format int      `json:"format"`
	Hashes []string `json:"hashes"`
	// Secrets maps kinds to the paths of fields that were @writeOnly in some catalogue, and have not been shown by a
	// later one. Their stored values may be secret.
	Secrets map[string][]string `json:"secrets"`
	// Versions maps the names of released versions that were accepted to their records.
	Versions map[string]recordedVersion `json:"versions,omitempty"`
	// Files are the hashes of the files of the catalogues accepted since there are released versions, the newest last.
	// Unreleased are the hashes of catalogues accepted earlier.
	Files      []string `json:"files,omitempty"`
	Unreleased []string `json:"unreleased,omitempty"`
}

// list reads the record of accepted catalogues. It returns its contents and the stored resource, which is nil if there
// is none.
func (g Gate) list(ctx context.Context) (accepted, *backend.Resource, error) {
	var out accepted
	stored, err := g.get(ctx, listName, &out)
	return out, stored, err
}

// Newest returns the hash of the catalogue that a store has accepted last; empty if it has accepted none.
func Newest(ctx context.Context, store backend.Store) (string, error) {
	list, _, err := Gate{Store: store}.list(ctx)
	if err != nil || len(list.Hashes) == 0 {
		return "", err
	}
	return list.Hashes[len(list.Hashes)-1], nil
}

// Succession describes the newest catalogue of a store, and its predecessor.
type Succession struct {
	// Newest is the hash of the newest catalogue; empty if the store has accepted none.
	Newest string
	// At is the time when the newest catalogue was accepted, or when its released versions last changed, by the store's
	// clock.
	At time.Time
	// Before is the hash of the predecessor; empty if there is none.
	Before string
}

// LastSuccession returns the newest catalogue of a store and its predecessor.
func LastSuccession(ctx context.Context, store backend.Store) (out Succession, err error) {
	list, stored, err := Gate{Store: store}.list(ctx)
	n := len(list.Hashes)
	if err != nil || n == 0 {
		return out, err
	}
	out.Newest = list.Hashes[n-1]
	out.At = stored.UpdatedAt
	if n > 1 {
		out.Before = list.Hashes[n-2]
	}
	return out, nil
}

// RecordedOutline returns the outline of a catalogue that a store has accepted. hash is its hash.
func RecordedOutline(ctx context.Context, store backend.Store, hash string) (Outline, error) {
	return Gate{Store: store}.outline(ctx, hash)
}

// References returns the fields of a kind that are references, by their paths.
func (o Outline) References(kind string) map[string]FieldOutline {
	out := map[string]FieldOutline{}
	for path, f := range o.Kinds[kind].Fields {
		if f.Refers != "" {
			out[path] = f
		}
	}
	return out
}

// outline reads the outline of an accepted catalogue from its record.
func (g Gate) outline(ctx context.Context, hash string) (Outline, error) {
	var out Outline
	stored, err := g.get(ctx, hash, &out)
	if err == nil && stored == nil {
		err = fmt.Errorf("catalogue %s: the record is missing: %w", hash, backend.ErrUnreadable)
	}
	return out, err
}

func (g Gate) get(ctx context.Context, name string, into any) (*backend.Resource, error) {
	got, err := g.Store.Get(ctx, backend.Key{Kind: recordKind, Name: name})
	if err != nil || got[0] == nil {
		return nil, err
	}
	raw, err := backend.DecodeBody(got[0].Body)
	if err == nil {
		err = json.Unmarshal(raw, into)
	}
	if err != nil {
		return nil, fmt.Errorf("catalogue: record %s: %w: %w", name, backend.ErrUnreadable, err)
	}
	if a, ok := into.(*accepted); ok && a.Format > recordFormat {
		return nil, backend.FormatErrorf("catalogue: the record has format %d, this release knows %d", a.Format, recordFormat)
	}
	return got[0], nil
}

// record records that a catalogue was accepted and is now the newest. It fails if another gateway has changed the
// record in the meantime.
func (g Gate) record(ctx context.Context, list accepted, stored *backend.Resource, hash string, outline Outline) error {
	list.Hashes = append(slices.Clone(list.Hashes), hash)
	one, err := put(hash, outline, backend.Condition{})
	if err != nil {
		return err
	}
	return g.store(ctx, list, stored, one)
}

// store stores the list and applies other actions on records. It fails if another gateway has changed the record in the
// meantime.
func (g Gate) store(ctx context.Context, list accepted, stored *backend.Resource, actions ...backend.Action) error {
	list.Format = recordFormat
	for len(list.Hashes) > maxAccepted {
		gone := list.Hashes[0]
		list.Hashes = list.Hashes[1:]
		actions = append(actions, backend.Action{Key: backend.Key{Kind: recordKind, Name: gone}, Op: backend.OpDelete})
	}
	cond := backend.Condition{Presence: backend.Absent}
	if stored != nil {
		cond = backend.Condition{Revision: stored.Revision}
	}
	all, err := put(listName, list, cond)
	if err != nil {
		return err
	}
	id := make([]byte, 16)
	_, _ = rand.Read(id)
	_, err = g.Store.Apply(
		ctx,
		backend.Batch{
			RequestID: hex.EncodeToString(id),
			Deadline:  backend.ClockOf(g.Store)().Add(writeTimeout),
			Actions:   append(actions, all),
		},
	)
	return err
}

func put(name string, v any, cond backend.Condition) (backend.Action, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return backend.Action{}, err
	}
	return backend.Action{
		Key: backend.Key{Kind: recordKind, Name: name}, If: cond, Op: backend.OpPut,
		Put: backend.Put{UID: name, Body: backend.EncodeBody(raw)},
	}, nil
}
