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

// Candidate is a catalogue with which a store is about to be served.
type Candidate struct {
	// Kinds of the catalogue. Required.
	Kinds []descriptor.Kind
	// Places are the positions of the catalogue's declarations, which a refusal names.
	// Default: none.
	Places Places
	// Files is the hash of the catalogue's files. Required if it has, or ever had,
	// versions.
	Files string
	// Versions are its released versions.
	Versions []ReleasedVersion
	// AllowBreaking accepts a catalogue that breaks what is stored.
	AllowBreaking bool
	// DryRun records nothing.
	DryRun bool
	// Start is set when a gateway starts. Then a return to a recorded catalogue is accepted with a
	// warning, even if it hides data that was stored since, so that an older gateway can start in
	// the middle of a roll-out.
	Start bool
}

// RefusedError is the error of a catalogue that a store does not accept.
type RefusedError struct {
	// Reasons are lines that say what would break, where it is declared, and what would be
	// lost.
	Reasons []string
	// Final reports that AllowBreaking does not help.
	Final bool
	// Versions reports that the only reasons are released versions that are gone or
	// changed.
	Versions bool
	// Owners reports that the reasons are kinds that were given to services, or taken from
	// them.
	Owners bool
	// Shards is the number of shards of the store if the reasons are guarded references that
	// a store of several shards cannot hold; else 0.
	Shards int
}

// Lines returns the text of the error in lines.
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
	// ReadOnly makes each candidate a dry run, and purges nothing.
	ReadOnly bool
	// Logger receives the numbers of resources of unknown kinds. Default: none.
	Logger *zap.Logger
}

// Accept accepts a catalogue for the store and records it, or returns a [*RefusedError]. It accepts
// a catalogue that the store has accepted before, or that breaks nothing of the newest one, unless
// it shows what may have been stored as a secret, or has lost or changed a released version.
// AllowBreaking accepts others. A return to a recorded catalogue that hides data stored since needs
// AllowBreaking too, unless Start is set.
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

// Bounds of the pauses after a race against another gateway was lost.
const (
	minRacePause = 10 * time.Millisecond
	maxRacePause = 200 * time.Millisecond
)

// ready returns the gate with its defaults.
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

// logUnknown logs how many resources of kinds are stored that the catalogue does not have.
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

// misplaced finds kinds with resources that were stored under another scope or sensitivity: their
// keys would mean other resources, or their secrets are in another place. It looks at the stored
// resources instead of the record, since a catalogue with the other scope may have been accepted
// earlier.
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

// errMeanwhile means that a resource was changed while its parts were being read.
var errMeanwhile = errors.New("changed meanwhile")

// misplacedKind returns the reason why resources of a kind are misplaced, empty if there is none,
// or errMeanwhile.
func (g Gate) misplacedKind(ctx context.Context, k *descriptor.Kind) (why string, err error) {
	// Resources without a namespace come first.
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

// maxReasons is the most unreadable resources that are named.
const maxReasons = 10

// unreadable reads all stored resources of the candidate's kinds, for a store without a
// record, and returns lines about those that cannot be read.
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
