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

// write is one write of one resource. It has the request, which was checked as far as this is possible without the
// stored resource. The file of each verb has its name and calls the phases of the verb:
//
//	begin             finds the kind and the key, authorizes the verb and checks the metadata
//	takeSpec          reads the spec that was sent (patch.go and status.go: the patch, the status)
//	validateNew       validates a create (an upsert does so once it has found no resource)
//	refuseReadOnly    refuses the write if the gateway is read-only
//	lock              locks the key for the writers of this gateway
//
// The other phases belong to an [attempt]. They are repeated if another writer changes the resource meanwhile:
//
//	load              reads the stored resource (the first attempt of change takes it from the index)
//	admit             checks the expected revision, and that the resource is not being deleted
//	                  (admitStatus in status.go checks only the revision)
//	readState         decodes the state of the stored resource
//	validate          checks the change against the kind as the caller's version declares it
//	validateWhole     checks the change against each newer declaration of the kind
//	answerUnchanged   ends the attempt if nothing changes
//	relate            resolves the references and sets the conditions
//	authorizeContent  refuses content that the caller may not write
//	review            asks the service that reviews changes of the kind, if there is one
//	commit            builds the batch and sends it; a resource service that owns the kind is asked first
//	answer            returns the result
type write struct {
	writer *Writer
	kind   *kind.Kind
	key    backend.Key
	// verb is the verb that the caller asked for; for an apply it is the result of applyVerb.
	verb descriptor.Verb
	// rights are the rights of the caller.
	rights *access.Rights
	// names are the names of fields in the caller's version of the API. All errors and
	// warnings use them.
	names  failure.FieldNames
	dryRun bool
	// expected is the revision that the stored resource must have, nil for any.
	expected *string
	// expectedOfManifest reports whether the manifest itself contains the expected
	// revision.
	expectedOfManifest bool
	meta               metadataChange
	// subKind is the subKind of a resource to be created. If it is not empty, an existing resource must have it.
	subKind string
	// spec is the whole spec that was sent; nil for a patch or a status.
	spec map[string]any
	// writeOnly records how the spec changes write-only fields.
	writeOnly kind.Sent
	// keepsSpec reports whether the write is a patch that leaves the spec as it is.
	keepsSpec bool
	// found has the violations in the request outside the spec.
	found    kind.Violations
	warnings []failure.Warning
	// reading determines how thoroughly the next attempt reads targets.
	reading dependency.Reading
	// baseless counts contradictory answers of the owner: see contradicted.
	baseless int
}

// target is the resource that a caller wants to write, with the verb.
type target struct {
	verb descriptor.Verb
	id   kind.Identity
	// meta is the change of the metadata; nil for none.
	meta changer
	// needs is the verb that the caller must have. If it is empty, verb is needed.
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

// lastYear is the last year that RFC 3339 can express.
const lastYear = 9999

// checkExpiry checks a new expiry and truncates it to milliseconds, which is the precision of stores.
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

// ExpiresAt returns an expiry for [Metadata]. In Metadata the zero time would clear the expiry. Therefore a zero t
// becomes another time in the past.
func ExpiresAt(t time.Time) Optional[time.Time] {
	if t.IsZero() {
		t = t.Add(1)
	}
	return Optional[time.Time]{Set: true, Value: t}
}

// takeSpec reads a whole spec from the request.
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

// object returns a part of the request as an object. It returns BAD_USER_INPUT if the part is null or no object.
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

// setSubKind sets and checks the subKind of a resource that may be created. It also accepts a subKind that only a newer
// version of the API has, because an existing resource may have it. If the resource is absent, validateNew later
// refuses such a subKind.
func (w *write) setSubKind(subKind string) {
	w.subKind = subKind
	if subKind != "" && !slices.Contains(w.kind.Whole().SubKinds, subKind) {
		w.refuseSubKind(&w.found)
	}
}

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

// errRaced means that another writer has changed the resource meanwhile. The write may then be repeated.
var errRaced = errors.New("raced")

// failed translates the error of a batch. It returns errRaced if another writer came first, [sender.ErrLost] if the
// answer of the store was lost, and otherwise the error for the caller.
func (w *write) failed(err error) error {
	switch {
	case sender.Raced(err, w.key):
		return errRaced
	case errors.Is(err, sender.ErrLost):
		return err
	}
	return failure.Of(err, w.key)
}

// The shortest and the longest pause after a write has lost a race against another gateway.
const (
	minRacePause = 2 * time.Millisecond
	maxRacePause = 128 * time.Millisecond
)

// retry locks the key and calls try until it returns a final result or ctx ends. It calls try again after errRaced,
// when another writer has changed the resource, and after [sender.ErrLost], once the outcome of the lost batch is
// known. Writers of this gateway wait for the lock, so a write loses races only against other gateways. A random pause
// lets the other gateway finish first. If an owner keeps contradicting itself, an error ends the attempts: see
// contradicted.
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

// refuseReadOnly returns an error if the gateway is read-only and the write is no dry
// run.
func (w *write) refuseReadOnly() error {
	if w.writer.cfg.ReadOnly && !w.dryRun {
		return failure.Of(backend.ErrReadOnly, w.key)
	}
	return nil
}

// awaitPolicy waits until this gateway and its streams apply the roles and bindings that were just stored.
func (wr *Writer) awaitPolicy(ctx context.Context) {
	_ = wr.reader.AwaitPolicy(ctx) // the write was made, so its answer does not depend on this
}

// change calls try with attempts to change an existing resource. The first attempt starts from the resource in the
// index, which may be outdated, so its result counts only if the attempt is conclusive. All other attempts start from
// the stored resource. If the first attempt exceeds a limit, it is repeated too, because the size of a write depends on
// the stored status.
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
				if a.conclusive && !errors.Is(err, errRaced) && !hasCode(err, failure.CodeLimitExceeded) {
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

// hasCode reports whether err is a [failure.Error] with a code.
func hasCode(err error, code failure.Code) bool {
	known, ok := errors.AsType[*failure.Error](err)
	return ok && known.Code == code
}
