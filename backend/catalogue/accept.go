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
	// Kinds are the kinds of the catalogue. Required.
	Kinds []descriptor.Kind
	// Places are the places of the declarations in the files. They are named when the catalogue is refused. Default:
	// none.
	Places Places
	// Files is the hash of the catalogue's files. Required if the catalogue has, or ever had, released versions.
	Files string
	// Versions are the released versions of the catalogue.
	Versions []ReleasedVersion
	// AllowBreaking accepts a catalogue that breaks stored resources.
	AllowBreaking bool
	// DryRun checks the catalogue without recording it.
	DryRun bool
	// Start is set when a gateway starts. A return to an earlier catalogue is then accepted with a warning, even if it
	// hides data that was stored since, so that an older gateway can start during a roll-out.
	Start bool
}

// RefusedError is the error of a catalogue that a store does not accept.
type RefusedError struct {
	// Reasons are lines with what would break, where it is declared, and what would be lost.
	Reasons []string
	// Final reports whether the catalogue is refused even with AllowBreaking.
	Final bool
	// Versions reports whether all reasons are about released versions that were removed or changed.
	Versions bool
	// Lost are lines that say what AllowBreaking does to the clients of each of these versions.
	Lost []string
	// Owners reports whether the reasons are about kinds that were given to services, or taken back from them.
	Owners bool
	// Shards is the number of shards of the store, if the reasons are guarded references that a store with several
	// shards does not support; otherwise 0.
	Shards int
}

// Lines returns the error message as lines: the problem, the reasons, and what to do.
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
		advice = "use --allow-breaking to accept that, with this result: " + strings.Join(e.Lost, "; ")
	case e.Final:
		advice = "delete the resources first, or serve them by a kind of another name"
	case len(e.Lost) > 0:
		advice += "; " + strings.Join(e.Lost, "; ")
	}
	out := []string{problem}
	for _, reason := range e.Reasons {
		out = append(out, "  "+reason)
	}
	return append(out, advice)
}

func (e *RefusedError) Error() string { return strings.Join(e.Lines(), "\n") }

// Gate checks catalogues against the contents of a store.
type Gate struct {
	// Store is the store of the resources. Required.
	Store backend.Store
	// ReadOnly makes each candidate a dry run, and forbids purges.
	ReadOnly bool
	// Logger is used to log the numbers of resources of unknown kinds. Default: no log.
	Logger *zap.Logger
}

// Accept records that the catalogue is the newest one of the store, or returns a [*RefusedError].
//
// A catalogue is accepted if the store has accepted it before, or if it breaks nothing compared to the newest one. It
// is refused if it would show values that may have been stored as secrets, or if a released version was removed or
// changed. AllowBreaking accepts it nevertheless. A return to an earlier catalogue that would hide data stored since
// also needs AllowBreaking, unless Start is set.
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

// The shortest and the longest pause after another gateway has changed the record at the same time.
const (
	minRacePause = 10 * time.Millisecond
	maxRacePause = 200 * time.Millisecond
)

// ready returns the gate with default values.
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
	lost := lostVersions(list, c, hash)
	for _, v := range lost {
		refused.Reasons = append(refused.Reasons, v.reason)
		refused.Lost = append(refused.Lost, v.effect)
	}
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
		g.logLost(lost)
		return g.store(ctx, next, stored)
	}
	var breaking []Difference
	switch known := slices.Index(list.Hashes, hash); {
	case known >= 0: // a return to an earlier catalogue, which is removed here and recorded as the newest
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
		earlier, err := g.earlierBreaking(ctx, list.Hashes, newest, outline)
		if err != nil {
			return err
		}
		for _, c := range earlier {
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
		refused.Versions = len(refused.Reasons) == len(lost)
		return refused
	case c.DryRun:
		return nil
	}
	g.logLost(lost)
	for _, reason := range refused.Reasons[len(lost):] {
		g.Logger.Warn("a breaking catalogue is served, as --allow-breaking says", zap.String("change", reason))
	}
	if err := g.logUnknown(ctx, newest, outline); err != nil {
		return err
	}
	list.Secrets = remember(list.Secrets, outline)
	list, _ = list.withVersions(c, hash)
	return g.record(ctx, list, stored, hash, outline)
}

// reasons returns a line about each breaking change, with the number of resources that it may concern.
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

// logUnknown logs the number of stored resources of each kind that the catalogue lacks.
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

// misplaced returns reasons to refuse kinds whose scope or sensitivity differs from the one with which their resources
// were stored. With another scope, the keys would mean other resources; with another sensitivity, the secrets would be
// sought in the wrong place. misplaced looks at the stored resources, not at the record of accepted catalogues,
// because a catalogue with the other scope may have been accepted in the meantime.
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

// misplacedKind returns the reason to refuse one kind, see [Gate.misplaced]. It is empty if there is none. The error
// may be errMeanwhile.
func (g Gate) misplacedKind(ctx context.Context, k *descriptor.Kind) (why string, err error) {
	// Resources without a namespace come first in the order of keys.
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
	case errors.Is(err, backend.ErrUnreadable): // it is stored, and whether it was changed is not known
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

// storedApart reports whether the secrets of a resource are stored in a separate record.
func (g Gate) storedApart(ctx context.Context, key backend.Key) (bool, error) {
	got, err := g.Store.Get(ctx, key.Sensitive())
	if errors.Is(err, backend.ErrUnreadable) {
		return true, nil
	}
	return err == nil && got[0] != nil, err
}

// maxReasons is the maximum number of unreadable resources that are named.
const maxReasons = 10

// unreadable returns lines about stored resources of the candidate's kinds that cannot be read. It reads all of them.
// It is used for a store that has no record of catalogues.
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
