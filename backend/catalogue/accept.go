package catalogue

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/body"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/internal/wait"
)

// maxAccepted is how many accepted catalogues a store remembers.
const maxAccepted = 100

// writeTimeout is how long the store may take to begin a write of the record.
const writeTimeout = 5 * time.Second

// recordFormat is the version of the stored records.
const recordFormat = 1

// The kind of the internal records: one, of this name, lists what was accepted,
// the newest last; one for each of those has its outline, by its hash.
const (
	recordKind = "_catalogue"
	listName   = "accepted"
)

// accepted is the record that lists the catalogues.
type accepted struct {
	Format int      `json:"format"`
	Hashes []string `json:"hashes"`
}

// RefusedError says why a store does not accept a catalogue.
type RefusedError struct {
	// Changes that break something, or what else is in the way.
	Reasons []string
	// Final says that the flag does not help.
	Final bool
}

func (e *RefusedError) Error() string {
	advice := "start with --allow-breaking if that is meant: what is not read any more stays stored"
	if e.Final {
		advice = "delete the resources first, or serve them by a kind of another name"
	}
	return "the catalogue breaks what is stored:\n  " + strings.Join(e.Reasons, "\n  ") + "\n" + advice
}

// Gate holds catalogues against what a store has.
type Gate struct {
	// Store of the resources. Required.
	Store backend.Store
	// Clock is the gateway's; a store's own clock takes precedence. Default: time.Now.
	Clock func() time.Time
	// Logger is told of resources whose kinds are not known. Default: none.
	Logger *zap.Logger
}

// Accept lets a gateway with these kinds serve the store, or says in a
// [*RefusedError] why it cannot. A catalogue that the store has accepted before,
// or that breaks nothing in the newest one, is accepted; others are with allow.
func (g Gate) Accept(ctx context.Context, kinds []descriptor.Kind, allow bool) error {
	if g.Logger == nil {
		g.Logger = zap.NewNop()
	}
	if g.Clock == nil {
		g.Clock = time.Now
	}
	if c, ok := g.Store.(backend.Clock); ok {
		g.Clock = c.Now
	}
	outline := OutlineOf(kinds)
	for {
		err := g.accept(ctx, kinds, outline, allow)
		if !errors.Is(err, backend.ErrConflict) && !errors.Is(err, backend.ErrExists) && !errors.Is(err, backend.ErrNotFound) {
			return err
		}
		if !wait.For(ctx, 10*time.Millisecond) { // another gateway begins at the same time
			return ctx.Err()
		}
	}
}

func (g Gate) accept(ctx context.Context, kinds []descriptor.Kind, outline Outline, allow bool) error {
	list, stored, err := g.list(ctx)
	if err != nil {
		return err
	}
	refused := &RefusedError{}
	if refused.Reasons, err = g.misplaced(ctx, kinds); err != nil {
		return err
	}
	if len(refused.Reasons) > 0 {
		refused.Final = true
		return refused
	}
	hash := outline.Hash()
	var newest Outline
	if n := len(list.Hashes); n > 0 {
		if newest, err = g.outline(ctx, list.Hashes[n-1]); err != nil {
			return err
		}
	}
	known := slices.Index(list.Hashes, hash)
	switch {
	case known >= 0 && known == len(list.Hashes)-1:
		return g.tellUnknown(ctx, newest, outline)
	case known >= 0: // gone back to: the next one is compared with it
		list.Hashes = slices.Delete(list.Hashes, known, known+1)
	case len(list.Hashes) > 0:
		for _, c := range Breaking(Diff(newest, outline)) {
			refused.Reasons = append(refused.Reasons, c.String())
		}
	default:
		if refused.Reasons, err = g.unreadable(ctx, kinds); err != nil {
			return err
		}
	}
	if len(refused.Reasons) > 0 && !allow {
		return refused
	}
	for _, reason := range refused.Reasons {
		g.Logger.Warn("a breaking catalogue is served, as --allow-breaking says", zap.String("change", reason))
	}
	if err := g.tellUnknown(ctx, newest, outline); err != nil {
		return err
	}
	return g.record(ctx, list, stored, hash, outline)
}

// list reads the record of what was accepted.
func (g Gate) list(ctx context.Context) (accepted, *backend.Resource, error) {
	var out accepted
	stored, err := g.get(ctx, listName, &out)
	return out, stored, err
}

// outline reads one that was accepted.
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
		return nil, fmt.Errorf("catalogue: the record has format %d, this release knows %d: %w", a.Format, recordFormat, backend.ErrFormat)
	}
	return got[0], nil
}

// tellUnknown logs how many resources are stored of kinds that the catalogue does not have.
func (g Gate) tellUnknown(ctx context.Context, newest, outline Outline) error {
	for name := range newest.Kinds {
		if _, known := outline.Kinds[name]; known {
			continue
		}
		n, err := g.count(ctx, name)
		if err != nil {
			return err
		}
		if n > 0 {
			g.Logger.Warn("resources of a kind that is not in the catalogue are kept and not served", zap.String("kind", name), zap.Int("resources", n))
		}
	}
	return nil
}

func (g Gate) count(ctx context.Context, kind string) (int, error) {
	page, err := g.Store.Range(ctx, backend.Range{Kind: kind, Count: true})
	return page.Count, err
}

// misplaced finds kinds that have resources of another scope: their keys would
// mean others. What is stored counts, not the record: a catalogue of the other
// scope may have been accepted before.
func (g Gate) misplaced(ctx context.Context, kinds []descriptor.Kind) (reasons []string, err error) {
	for i := range kinds {
		k := &kinds[i]
		// Those without a namespace come first.
		page, err := g.Store.Range(ctx, backend.Range{Kind: k.Name, Limit: 1, Reverse: k.Scope == descriptor.Global})
		if err != nil {
			return nil, err
		}
		if len(page.Resources) == 0 || (page.Resources[0].Namespace == "") == (k.Scope == descriptor.Global) {
			continue
		}
		n, err := g.count(ctx, k.Name)
		if err != nil {
			return nil, err
		}
		other := descriptor.Namespaced
		if k.Scope == other {
			other = descriptor.Global
		}
		reasons = append(reasons, fmt.Sprintf("kind %s has %s resources (resources of the kind: %d): its scope cannot be %s while they are stored", k.Name, other, n, k.Scope))
	}
	return reasons, nil
}

// maxReasons bounds how many unreadable resources are named.
const maxReasons = 10

// unreadable reads all that is stored of the kinds, where no record says what is.
func (g Gate) unreadable(ctx context.Context, kinds []descriptor.Kind) (reasons []string, err error) {
	var bodies body.Compiler
	for i := range kinds {
		shape := bodies.Kind(&kinds[i])
		r := backend.Range{Kind: kinds[i].Name, Limit: 500}
		for {
			page, err := g.Store.Range(ctx, r)
			if err != nil {
				return nil, err
			}
			for _, stored := range page.Resources {
				if _, err := shape.Read(stored); err != nil {
					if reasons = append(reasons, fmt.Sprintf("%s cannot be read: %v", stored.Key, err)); len(reasons) == maxReasons {
						return reasons, nil
					}
				}
			}
			if !page.More || len(page.Resources) == 0 {
				break
			}
			last := page.Resources[len(page.Resources)-1]
			r.Start = backend.Successor(backend.OrderTuple(last.Namespace, last.Name))
		}
	}
	return reasons, nil
}

// record stores that a catalogue was accepted and is the newest.
func (g Gate) record(ctx context.Context, list accepted, stored *backend.Resource, hash string, outline Outline) error {
	list.Format, list.Hashes = recordFormat, append(slices.Clone(list.Hashes), hash)
	var actions []backend.Action
	one, err := put(hash, outline, backend.Condition{})
	if err != nil {
		return err
	}
	actions = append(actions, one)
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
	_, err = g.Store.Apply(ctx, backend.Batch{RequestID: hex.EncodeToString(id), Deadline: g.Clock().Add(writeTimeout), Actions: append(actions, all)})
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
