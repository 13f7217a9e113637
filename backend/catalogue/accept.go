package catalogue

import (
	"context"
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

// Candidate is a catalogue that a store is to be served with.
type Candidate struct {
	// Kinds of the catalogue. Required.
	Kinds []descriptor.Kind
	// Places of what the catalogue says, for the lines of a refusal. Default: none.
	Places Places
	// Files is the hash of its files. Required if there are, or were, versions.
	Files string
	// Versions are its released versions.
	Versions []ReleasedVersion
	// AllowBreaking accepts a catalogue that breaks what is stored.
	AllowBreaking bool
	// DryRun records nothing.
	DryRun bool
	// Start is set at the start of a gateway: one that goes back to a recorded catalogue is accepted with a warning
	// although that hides what has been stored since. So an older gateway can start in the middle of a roll-out.
	Start bool
}

// RefusedError is the error of a catalogue that a store does not accept.
type RefusedError struct {
	// Reasons are lines: what would break, where the catalogue says so, and what would be lost.
	Reasons []string
	// Final is set if the flag does not help.
	Final bool
	// Versions is set if the reasons are released versions alone that are gone or changed.
	Versions bool
	// Owners is set if the reasons are kinds that were given to services, or taken from them.
	Owners bool
	// Shards is how many shards the store has, if the reasons are guarded references that no
	// store of several shards can hold; else 0.
	Shards int
}

// Lines are the text of the error.
func (e *RefusedError) Lines() []string {
	problem, advice := "the catalogue breaks what is stored:", "use --allow-breaking to accept that: what can no longer be read stays stored"
	switch {
	case e.Shards > 0:
		problem = fmt.Sprintf("the store has %d shards, and no guarded reference can lead from one to another:", e.Shards)
		advice = "leave out guarded: true there, or use a store with one shard"
	case e.Owners:
		problem = "the catalogue changes who owns stored resources:"
		advice = "give the kind another name, or remove first what is stored: delete resources that the gateway stores itself; " +
			"of a mirror, take the kind out of the catalogue and use sluice catalogue purge, which asks no service"
	case e.Versions:
		problem = "the catalogue breaks clients of released versions:"
		advice = "use --allow-breaking to give these versions up"
	case e.Final:
		advice = "delete the resources first, or serve them by a kind of another name"
	}
	out := []string{problem}
	for _, reason := range e.Reasons {
		out = append(out, "  "+reason)
	}
	return append(out, advice)
}

func (e *RefusedError) Error() string { return strings.Join(e.Lines(), "\n") }

// Gate compares catalogues with the contents of a store.
type Gate struct {
	// Store of the resources. Required.
	Store backend.Store
	// ReadOnly records nothing and purges nothing: each candidate is a dry run.
	ReadOnly bool
	// Logger receives the numbers of resources whose kinds are not known. Default: none.
	Logger *zap.Logger
}

// Accept lets a gateway serve the store with a catalogue, or says in a [*RefusedError] why it cannot. A catalogue that
// the store has accepted before, or that breaks nothing in the newest one, is accepted, unless it shows what may have
// been stored as a secret, or has lost or changed a released version; others are with AllowBreaking. Going back to a
// recorded catalogue that hides what has been stored since needs AllowBreaking too, unless the gateway starts.
func (g Gate) Accept(ctx context.Context, c Candidate) error {
	g = g.ready()
	c.DryRun = c.DryRun || g.ReadOnly
	backoff := wait.Backoff{Least: minRacePause, Most: maxRacePause}
	for {
		err := g.accept(ctx, c, OutlineOf(c.Kinds))
		if !errors.Is(err, backend.ErrConflict) && !errors.Is(err, backend.ErrExists) &&
			!errors.Is(err, backend.ErrNotFound) {
			return err
		}
		if !backoff.Wait(ctx) { // another gateway begins at the same time
			return ctx.Err()
		}
	}
}

// Bounds of the pauses of a gateway that lost a race against another one.
const (
	minRacePause = 10 * time.Millisecond
	maxRacePause = 200 * time.Millisecond
)

// ready is the gate with its defaults.
func (g Gate) ready() Gate {
	if g.Logger == nil {
		g.Logger = zap.NewNop()
	}
	return g
}

func (g Gate) accept(ctx context.Context, c Candidate, outline Outline) error {
	list, stored, err := g.list(ctx)
	if err != nil {
		return err
	}
	refused := &RefusedError{Final: true}
	if refused.Reasons, refused.Shards, err = g.guardedApart(ctx, c); err == nil && len(refused.Reasons) == 0 {
		refused.Reasons, err = g.misplaced(ctx, c)
	}
	if err == nil && len(refused.Reasons) == 0 {
		refused.Reasons, err = g.owners(ctx, list.Hashes, c)
		refused.Owners = len(refused.Reasons) > 0
	}
	switch {
	case err != nil:
		return err
	case len(refused.Reasons) > 0:
		return refused
	}
	refused.Final = false
	hash := outline.Hash()
	var newest Outline
	if n := len(list.Hashes); n > 0 {
		if newest, err = g.outline(ctx, list.Hashes[n-1]); err != nil {
			return err
		}
	}
	refused.Reasons = lostVersions(list, c, hash)
	lost := len(refused.Reasons)
	if n := len(list.Hashes); n > 0 && list.Hashes[n-1] == hash {
		if len(refused.Reasons) > 0 && !c.AllowBreaking {
			refused.Versions = true
			return refused
		}
		if err := g.logUnknown(ctx, newest, outline); err != nil {
			return err
		}
		next, changed := list.withVersions(c, hash)
		if !changed || c.DryRun {
			return nil
		}
		return g.store(ctx, next, stored)
	}
	var breaking []Difference
	switch known := slices.Index(list.Hashes, hash); {
	case known >= 0: // gone back to: the next one is compared with it
		list.Hashes = slices.Delete(list.Hashes, known, known+1)
		hidden, err := g.Hidden(ctx, newest, outline)
		if err != nil {
			return err
		}
		if !c.Start {
			refused.Reasons = append(refused.Reasons, hidden...)
			break
		}
		for _, line := range hidden {
			g.Logger.Warn("the recorded catalogue hides what has been stored since", zap.String("change", line))
		}
	case len(list.Hashes) > 0:
		breaking = Breaking(Diff(newest, outline))
		again, err := g.comeback(ctx, list.Hashes, newest, outline)
		if err != nil {
			return err
		}
		for _, c := range again {
			if !slices.Contains(breaking, c) {
				breaking = append(breaking, c)
			}
		}
	default:
		unreadable, err := g.unreadable(ctx, c)
		if err != nil {
			return err
		}
		refused.Reasons = append(refused.Reasons, unreadable...)
	}
	breaking = append(breaking, uncovered(list.Secrets, outline, breaking)...)
	reasons, err := g.reasons(ctx, c.Places.Locate(breaking))
	if err != nil {
		return err
	}
	refused.Reasons = append(refused.Reasons, reasons...)
	switch {
	case len(refused.Reasons) > 0 && !c.AllowBreaking:
		refused.Versions = len(refused.Reasons) == lost
		return refused
	case c.DryRun:
		return nil
	}
	for _, reason := range refused.Reasons {
		g.Logger.Warn("a breaking catalogue is served, as --allow-breaking says", zap.String("change", reason))
	}
	if err := g.logUnknown(ctx, newest, outline); err != nil {
		return err
	}
	list.Secrets = remember(list.Secrets, outline)
	list, _ = list.withVersions(c, hash)
	return g.record(ctx, list, stored, hash, outline)
}

// reasons returns lines about breaking changes, with the number of resources that they may concern.
func (g Gate) reasons(ctx context.Context, changes []Difference) ([]string, error) {
	var out []string
	for _, c := range changes {
		concerned, err := g.concern(ctx, c)
		if err != nil {
			return nil, err
		}
		out = append(out, fmt.Sprintf("%s; %s", c, concerned))
	}
	return out, nil
}

// logUnknown logs how many resources are stored of kinds that the catalogue does not have.
func (g Gate) logUnknown(ctx context.Context, newest, outline Outline) error {
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

// misplaced finds kinds that have resources of another scope, whose keys would mean
// others, or resources whose secrets lie elsewhere. The stored resources count, not the record: a catalogue
// of the other scope may have been accepted before.
func (g Gate) misplaced(ctx context.Context, c Candidate) (reasons []string, err error) {
	for i := range c.Kinds {
		why, err := "", errMeanwhile
		for errors.Is(err, errMeanwhile) {
			why, err = g.misplacedKind(ctx, &c.Kinds[i])
		}
		if err != nil {
			return nil, err
		}
		if why != "" {
			reasons = append(reasons, c.Places.ofKind(c.Kinds[i].Name)+why)
		}
	}
	return reasons, nil
}

// errMeanwhile means that a resource was changed while its parts were read.
var errMeanwhile = errors.New("changed meanwhile")

// misplacedKind returns the reason why resources of a kind are misplaced, empty if none is, or errMeanwhile.
func (g Gate) misplacedKind(ctx context.Context, k *descriptor.Kind) (why string, err error) {
	// Those without a namespace come first.
	page, err := g.Store.Range(ctx, backend.Range{Kind: k.Name, Limit: 1, Reverse: k.Scope == descriptor.Global})
	if err != nil || len(page.Resources) == 0 {
		return "", err
	}
	first := page.Resources[0]
	if (first.Key.Namespace == "") != (k.Scope == descriptor.Global) {
		n, err := g.count(ctx, k.Name)
		if err != nil {
			return "", err
		}
		other := descriptor.Namespaced
		if k.Scope == other {
			other = descriptor.Global
		}
		return fmt.Sprintf("kind %s has %s resources (resources of the kind: %d): its scope cannot be %s while they are stored, because their keys would mean others", k.Name, other, n, k.Scope), nil
	}
	apart, err := g.storedApart(ctx, first.Key)
	if err != nil || apart == k.Sensitive {
		return "", err
	}
	switch now, err := g.Store.Get(ctx, first.Key); {
	case errors.Is(err, backend.ErrUnreadable): // it cannot be told, and is there
	case err != nil:
		return "", err
	case now[0] == nil || now[0].Revision != first.Revision:
		return "", errMeanwhile
	}
	n, err := g.count(ctx, k.Name)
	if err != nil {
		return "", err
	}
	how := map[bool]string{
		true:  "apart from its resources: it has to stay sensitive",
		false: "with its resources: it cannot become sensitive",
	}[apart]
	return fmt.Sprintf("kind %s has what is @writeOnly %s while they are stored (resources of the kind: %d)", k.Name, how, n), nil
}

// storedApart reports whether the secrets of a resource lie in a separate record.
func (g Gate) storedApart(ctx context.Context, key backend.Key) (bool, error) {
	got, err := g.Store.Get(ctx, key.Sensitive())
	if errors.Is(err, backend.ErrUnreadable) {
		return true, nil
	}
	return err == nil && got[0] != nil, err
}

// maxReasons bounds how many unreadable resources are named.
const maxReasons = 10

// unreadable reads all stored resources of the kinds, for a store without a record.
func (g Gate) unreadable(ctx context.Context, c Candidate) (reasons []string, err error) {
	var bodies body.Compiler
	for i := range c.Kinds {
		kind := &c.Kinds[i]
		shape := bodies.Kind(kind)
		for page, err := range backend.Pages(ctx, g.Store, backend.Range{Kind: kind.Name, Limit: 500}) {
			if err != nil {
				return nil, err
			}
			for _, stored := range page.Resources {
				if _, err := shape.Read(stored); err != nil {
					reasons = append(
						reasons, fmt.Sprintf("%s%s cannot be read: %v", c.Places.ofKind(kind.Name), stored.Key, err),
					)
					if len(reasons) == maxReasons {
						return reasons, nil
					}
				}
			}
		}
	}
	return reasons, nil
}
