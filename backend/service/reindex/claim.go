package reindex

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/kind"
)

// definitionFormat is the version of the stored record.
const definitionFormat = 1

// How the gateways of one store agree on whose index definitions hold.
const (
	// definitionRenew is how old a sign of life may be before it is renewed.
	definitionRenew = 20 * time.Second
	// definitionLease is how long a sign of life counts.
	definitionLease = time.Minute
	// maxClaims is how often a gateway that loses the race for the record tries again before its next look.
	maxClaims = 8
	// maxSuperseded bounds the memory of fingerprints that were replaced.
	maxSuperseded = 16
)

// definitionsKey is the internal record of the definitions of all kinds.
func definitionsKey() backend.Key {
	return backend.Key{Kind: "_index", Name: "definitions"}
}

// definitions says, per kind, whose rows the index is to have. It decides only
// who reindexes; reads look at the fingerprints of the resources themselves.
type definitions struct {
	Format int                   `json:"format"`
	Kinds  map[string]definition `json:"kinds"`
}

// definition is the current one of a kind.
type definition struct {
	Fingerprint string `json:"fingerprint"`
	// Number grows with each take-over.
	Number int64 `json:"number"`
	// Superseded are the fingerprints it replaced, the newest last.
	Superseded []string `json:"superseded,omitempty"`
	// Seen is the last sign of life of a gateway with this definition.
	Seen time.Time `json:"seen"`
}

// errDefinitionFormat: a newer release has written the record.
var errDefinitionFormat = errors.New("the record of index definitions has a newer format")

func decodeDefinitions(body []byte) (definitions, error) {
	raw, err := backend.DecodeBody(body)
	if err != nil {
		return definitions{}, err
	}
	var d definitions
	if err := json.Unmarshal(raw, &d); err != nil {
		return definitions{}, fmt.Errorf("index definitions: %w: %w", backend.ErrUnreadable, err)
	}
	if d.Format > definitionFormat {
		return definitions{}, errDefinitionFormat
	}
	return d, nil
}

// claim says whether a gateway with the fingerprint is to make the rows of the
// kind, and the definition to be stored for that. A fingerprint that the record
// does not know is taken for the newer one and takes over. One that was
// superseded is the older gateway's, and waits while a newer gateway gives
// signs of life: when the last of those is gone, as after a way back to the
// release before, it takes over again.
func (d definition) claim(fingerprint string, now time.Time) (next definition, mine bool) {
	age := now.Sub(d.Seen).Abs()
	switch {
	case d.Fingerprint == fingerprint && (age < definitionRenew || len(d.Superseded) == 0):
		return d, true // nobody waits for a sign of life while nothing was superseded: an idle store is not written
	case d.Fingerprint == fingerprint:
		d.Seen = now
		return d, true
	case slices.Contains(d.Superseded, fingerprint) && age < definitionLease:
		return d, false
	}
	next = definition{Fingerprint: fingerprint, Number: d.Number + 1, Seen: now}
	for _, old := range append(slices.Clone(d.Superseded), d.Fingerprint) {
		if old != fingerprint && old != "" {
			next.Superseded = append(next.Superseded, old)
		}
	}
	next.Superseded = next.Superseded[max(len(next.Superseded)-maxSuperseded, 0):]
	return next, true
}

// claimKinds writes what is to be written of the record and returns the kinds whose
// rows this gateway makes.
func (p *Keeper) claimKinds(ctx context.Context) ([]*kind.Kind, error) {
	for range maxClaims {
		current, d, err := p.definitions(ctx)
		if err != nil {
			return nil, err
		}
		put := backend.Action{Key: definitionsKey(), If: current, Op: backend.OpPut}
		next, mine, changed := d.claimAll(p.cfg.Kinds, p.cfg.Clock().UTC().Truncate(time.Millisecond))
		if !changed {
			return mine, nil
		}
		raw, err := json.Marshal(next)
		if err != nil {
			return nil, err
		}
		put.Put = backend.Put{UID: p.cfg.NewID(), Body: backend.EncodeBody(raw)}
		_, err = p.applyAll(ctx, []backend.Action{put})
		if !errors.Is(err, backend.ErrConflict) && !errors.Is(err, backend.ErrExists) && !errors.Is(err, backend.ErrNotFound) {
			return mine, err
		}
	}
	return nil, backend.ErrConflict
}

// definitions reads the record, and says what holds of it as long as nobody writes it. One
// that cannot be read begins anew: it saves work and guards nothing.
func (p *Keeper) definitions(ctx context.Context) (current backend.Condition, d definitions, err error) {
	got, err := p.cfg.Store.Get(ctx, definitionsKey())
	switch {
	case err != nil && !errors.Is(err, backend.ErrUnreadable):
		return current, d, err
	case err != nil || got[0] == nil:
		return backend.Condition{Presence: backend.Absent}, d, nil
	}
	if d, err = decodeDefinitions(got[0].Body); !errors.Is(err, errDefinitionFormat) {
		err = nil
	}
	return backend.Condition{Revision: got[0].Revision}, d, err
}

// claimAll claims all kinds of a catalogue and leaves others as they are.
func (d definitions) claimAll(c kind.Catalogue, now time.Time) (next definitions, mine []*kind.Kind, changed bool) {
	next = definitions{Format: definitionFormat, Kinds: map[string]definition{}}
	for name, def := range d.Kinds {
		next.Kinds[name] = def
	}
	for _, k := range c.All() {
		def, ok := next.Kinds[k.Name].claim(k.Rows.Fingerprint, now)
		if ok {
			mine = append(mine, k)
		}
		if def.Number != d.Kinds[k.Name].Number || !def.Seen.Equal(d.Kinds[k.Name].Seen) {
			next.Kinds[k.Name], changed = def, true
		}
	}
	return next, mine, changed
}
