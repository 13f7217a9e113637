package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/dependency"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/jsontree"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/sender"
	"github.com/sluicegw/sluice/internal/span"
	"github.com/sluicegw/sluice/internal/wait"
)

// write is a write of one resource that is under way: what the caller asks for, checked as far as that is possible
// without the stored resource. Each verb has a file of its name, which says which phases it goes through. The phases:
//
//	begin             finds the kind and the key, authorizes the verb and checks the metadata
//	takeSpec          reads the spec that was sent (patch.go and status.go: the patch, the status)
//
// and then, in an [attempt], again as often as another writer comes in between:
//
//	load              reads the stored resource
//	admit             checks the expected revision, and that the resource is not being deleted
//	validate          checks the change against the declarations of the kind
//	relate            finds what the references wait for, and the conditions that follow
//	authorizeContent  refuses what the caller may write, but not with this content
//	review            asks the service that reviews changes of the kind, if there is one
//	commit            builds the batch and sends it
//	answer            says what became of it
type write struct {
	writer *Writer
	kind   *kind.Kind
	key    backend.Key
	// verb that the caller asked for; of an apply see applyVerb.
	verb descriptor.Verb
	// rights are the caller's.
	rights *access.Rights
	// names are those by which the caller knows the fields: those of all errors and warnings.
	names  failure.FieldNames
	dryRun bool
	// expected is the revision that the stored resource must have, nil for any.
	expected *string
	// expectedOfManifest reports whether the expected revision is the manifest's own.
	expectedOfManifest bool
	meta               metadataChange
	// subKind of a resource that is created; an existing one must have it, if it is given.
	subKind string
	// spec that was sent as a whole; nil for a patch and for a status.
	spec map[string]any
	// writeOnly is the effect of the spec on write-only fields.
	writeOnly kind.Sent
	// keepsSpec reports whether it is a patch that leaves the spec as it is.
	keepsSpec bool
	// found are the violations outside the spec.
	found    kind.Violations
	warnings []failure.Warning
	// reading says how the next attempt reads targets.
	reading dependency.Reading
	// baseless is how often the service that owns the resource has said that it is another one than it shows.
	baseless int
}

// target says which verb a caller asks for, and of which resource.
type target struct {
	verb descriptor.Verb
	id   kind.Identity
	// meta is the change of the metadata, nil for none.
	meta changer
	// needs is the verb that the caller must have; empty for verb.
	needs descriptor.Verb
	names failure.FieldNames
}

// begin finds the kind and the key of a write, authorizes it and checks its metadata.
func (wr *Writer) begin(ctx context.Context, t target) (*write, error) {
	k, key, err := wr.kinds.Resolve(t.id)
	if err != nil {
		return nil, err
	}
	if err := access.Offers(k.Kind, t.verb); err != nil {
		return nil, err
	}
	nameVerb(ctx, t.verb, k)
	rights, err := wr.authorize(ctx, k, cmp.Or(t.needs, t.verb), key)
	if err != nil {
		return nil, err
	}
	w := &write{writer: wr, kind: k, key: key, verb: t.verb, rights: rights, names: t.names}
	w.found.FieldNames = t.names
	if t.meta != nil {
		w.meta = t.meta.change(&w.found)
	}
	return w, w.checkExpiry()
}

// lastYear is the last year that RFC 3339 can write.
const lastYear = 9999

// checkExpiry checks a new expiry, and cuts it to what stores keep.
func (w *write) checkExpiry() error {
	expiry := &w.meta.expiresAt
	if !expiry.Set {
		return nil
	}
	if !w.kind.Expires {
		return failure.BadInput("metadata.expiresAt", "resources of kind %s do not expire", w.kind.Name).At(w.key)
	}
	if kept := expiry.Value.UTC().Truncate(time.Millisecond); !kept.IsZero() {
		expiry.Value = kept
	}
	switch {
	case expiry.Value.IsZero():
	case !expiry.Value.After(w.writer.clock()):
		w.found.Add(metadataPath("expiresAt"), "future", nil, "must be in the future")
	case expiry.Value.UTC().Year() > lastYear:
		w.found.Add(metadataPath("expiresAt"), "max", "9999-12-31T23:59:59Z", "must be before the year 10000 in UTC")
	}
	return nil
}

// ExpiresAt returns the expiry at a time, for [Metadata], where the zero time means none: here it is a
// time in the past.
func ExpiresAt(t time.Time) Optional[time.Time] {
	if t.IsZero() {
		t = t.Add(1)
	}
	return Optional[time.Time]{Set: true, Value: t}
}

// takeSpec reads the spec that was sent as a whole.
func (w *write) takeSpec(ctx context.Context, sent any) error {
	spec, err := w.object("spec", sent)
	if err != nil {
		return err
	}
	at := failure.At("spec")
	w.writeOnly.Cleared = w.kind.Spec.TakeCleared(at, spec)
	jsontree.DropNulls(spec)
	w.kind.Spec.Canonical(spec)
	w.spec = spec
	w.warnings = w.kind.Spec.Deprecated(nil, at, w.names, spec)
	w.writeOnly.Added = w.found.TakeMerged(ctx, w.kind.Spec, at, spec, w.writeOnly.Cleared)
	return nil
}

// object reads the object that was sent for a part of the body; null is BAD_USER_INPUT.
func (w *write) object(part string, sent any) (map[string]any, error) {
	tree, err := jsontree.Object(sent)
	switch {
	case err != nil:
		return nil, failure.BadInput(part, "%s is not acceptable: %v", part, err).At(w.key)
	case tree == nil:
		return nil, failure.BadInput(part, "%s must not be null; an object is wanted", part).At(w.key)
	}
	return tree, nil
}

// setSubKind checks the subKind of a resource that may be created. An existing one may have a subKind that a view does
// not have, and its manifest has it, too; so that is checked by validateNew.
func (w *write) setSubKind(subKind string) {
	w.subKind = subKind
	if subKind != "" && !slices.Contains(w.kind.Whole().SubKinds, subKind) {
		w.refuseSubKind(&w.found)
	}
}

// refuseSubKind adds that the kind does not have the subKind.
func (w *write) refuseSubKind(found *kind.Violations) {
	if len(w.kind.SubKinds) == 0 {
		found.Add(failure.At("subKind"), "unknown", nil, "kind %s has no subKinds", w.kind.Name)
		return
	}
	accepted := strings.Join(w.kind.SubKinds, ", ")
	found.Add(failure.At("subKind"), "in", accepted, "must be one of %s", accepted)
}

// setsWriteOnly reports whether the spec that was sent sets or clears write-only fields.
func (w *write) setsWriteOnly() bool {
	if !w.kind.Spec.Hides {
		return false
	}
	return len(w.writeOnly.Cleared)+len(w.writeOnly.Added) > 0 || !jsontree.Equal(w.kind.Spec.Shown(w.spec), w.spec)
}

// isReadable reports whether the caller may read the resource.
func (w *write) isReadable() bool { return w.rights.Sees(w.kind.Kind, w.key) }

// errRaced means that another writer came in between, so that the write may be tried again.
var errRaced = errors.New("raced")

// failed returns what the error of a batch means for the write: errRaced, [reconcile.ErrLost], or the error for the
// caller.
func (w *write) failed(err error) error {
	switch {
	case sender.Raced(err, w.key):
		return errRaced
	case errors.Is(err, sender.ErrLost):
		return err
	}
	return failure.Of(err, w.key)
}

// Bounds of the pauses of a write that lost a race against another gateway.
const (
	minRacePause = 2 * time.Millisecond
	maxRacePause = 128 * time.Millisecond
)

// retry makes attempts until neither another writer comes in between nor the batch is lost, or until the request's
// time is over; the backoff bounds the pauses alone. Where a service that contradicts itself would go on for all that
// time, [write.contradicted] ends it. The writers of this gateway lock the key; random pauses give way to writers of
// other gateways. What became of an attempt is known before the next begins.
func (w *write) retry(ctx context.Context, try func() (*Written, error)) (*Written, error) {
	if err := w.refuseReadOnly(); err != nil {
		return nil, err
	}
	wr := w.writer
	if _, limited := ctx.Deadline(); !limited {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, wr.cfg.RetryTimeout)
		defer cancel()
	}
	contended, locked := w.lock(ctx)
	if !locked {
		return nil, failure.Of(backend.ErrConflict, w.key)
	}
	defer wr.locks.unlock(w.key)
	backoff := wait.Backoff{Least: minRacePause, Most: maxRacePause}
	for attempts := 1; ; attempts++ {
		out, err := try()
		noteAttempts(ctx, attempts)
		switch {
		case errors.Is(err, errRaced):
			contended = true
			wr.cfg.Observe.Raced()
			err = backend.ErrConflict
		case errors.Is(err, sender.ErrLost):
			err = fmt.Errorf("%w: %w", backend.ErrUnavailable, err)
		case contended && hasCode(err, failure.CodeTimeout): // while others wrote
			return nil, failure.Of(backend.ErrConflict, w.key)
		case err == nil && wr.cfg.Access.Enabled && access.GivesRights(w.kind.Name):
			wr.awaitPolicy(ctx)
			return out, nil
		default:
			return out, err
		}
		if !backoff.Wait(ctx) {
			return nil, failure.Of(err, w.key)
		}
	}
}

// lock locks the key for the writers of this gateway: see [keyLocks.lock].
func (w *write) lock(ctx context.Context) (waited, locked bool) {
	begin := time.Now()
	waited, locked = w.writer.locks.lock(ctx, w.key)
	if waited {
		end := time.Now()
		w.writer.cfg.Observe.LockWait.Observe(end.Sub(begin).Seconds())
		span.Past(ctx, span.Lock, begin, end)
	}
	return waited, locked
}

// refuseReadOnly returns an error if the gateway takes no changes and this is no dry run.
func (w *write) refuseReadOnly() error {
	if w.writer.cfg.ReadOnly && !w.dryRun {
		return failure.Of(backend.ErrReadOnly, w.key)
	}
	return nil
}

// awaitPolicy waits until this gateway, also for its streams, has the rights of the roles and bindings that are stored.
func (wr *Writer) awaitPolicy(ctx context.Context) {
	_ = wr.reader.AwaitPolicy(ctx) // the write was made, so its answer does not depend on this
}

// change makes attempts at a resource that must be there. At first it takes what the index has. That may be old, so the
// outcome is believed only if a batch was sent that holds it to be current. A write that is too large, or has too
// many values, depends on the stored status, and is refused before it is sent.
func (w *write) change(ctx context.Context, try func(*attempt) (*Written, error)) (*Written, error) {
	first := true
	return w.retry(ctx, func() (*Written, error) {
		if first {
			first = false
			if recent := w.writer.loader.recent(w.kind, w.key); recent != nil {
				if err := recent.payToWrite(ctx); err != nil {
					return nil, err
				}
				a := w.attempt(recent)
				out, err := try(a)
				if a.sent && !errors.Is(err, errRaced) && !hasCode(err, failure.CodeLimitExceeded) {
					return out, err
				}
			}
		}
		current, err := w.writer.loader.loadToWrite(ctx, w.kind, w.key)
		if err == nil && current == nil {
			err = failure.Of(backend.ErrNotFound, w.key)
		}
		if err != nil {
			return nil, err
		}
		return try(w.attempt(current))
	})
}

// hasCode reports whether an error is one for the caller with a code.
func hasCode(err error, code failure.Code) bool {
	known, ok := errors.AsType[*failure.Error](err)
	return ok && known.Code == code
}
