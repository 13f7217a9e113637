package service

import (
	"context"
	"errors"
	"slices"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/body"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/dependency"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/jsontree"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/reconcile"
	"github.com/sluicegw/sluice/backend/service/sender"
	"github.com/sluicegw/sluice/internal/span"
)

// attempt is one attempt at a [write]: it reads the stored resource and computes the state to
// store.
type attempt struct {
	*write
	// current is the stored resource; nil if there is none.
	current *storedResource
	// was is the state of current; nil if current is nil or cannot be read.
	was *kind.State
	// concealed reports whether the sensitive values are missing in the field was, because they could not be decrypted.
	concealed bool
	// keepsSealed reports whether the write leaves the encrypted record of sensitive values as it is.
	keepsSealed bool
	// next is the state to store.
	next *kind.State
	// specChanged reports whether the stored form of the spec changes. It is set for a new resource.
	specChanged bool
	// managersOnly reports whether only the ownership of labels and annotations by field managers
	// changes.
	managersOnly bool
	// relation is the decision about the references of next.
	relation dependency.Decision
	// warnings are the warnings of the write, followed by the warnings of this attempt.
	warnings []failure.Warning
	// conclusive reports whether the result of the attempt counts even if current came from the index, which may be
	// outdated. It is set if current is verified: the store checks its revision when it applies the batch, or the
	// record was compared with the owner.
	conclusive bool
}

// attempt returns an attempt based on a stored resource, which is nil if there is none.
func (w *write) attempt(current *storedResource) *attempt {
	return &attempt{write: w, current: current, warnings: slices.Clip(w.warnings)}
}

// admit returns an error if the stored resource does not have the expected revision. It also returns an error if the
// resource is being deleted, unless the write only removes finalizers.
func (a *attempt) admit() error {
	if a.expected != nil {
		if err := expect(*a.expected, a.current.Resource); err != nil {
			return err
		}
	}
	if a.current.Deleting && !(a.keepsSpec && a.meta.releases()) {
		return failure.Of(backend.ErrDeleting, a.key)
	}
	return nil
}

// readState reads the state that the attempt changes. Sensitive values that cannot be decrypted are
// accepted if the write keeps them as stored or replaces all of them. A damaged spec is accepted
// for a patch of metadata only.
func (a *attempt) readState() error {
	was, err := a.current.state(a.kind.Whole())
	if err == nil {
		a.was = was
		return nil
	}
	if !a.keepsSpec && !errors.Is(err, backend.ErrEncrypted) {
		return err
	}
	shown, unread := kind.StateOf(a.current.Resource)
	if unread != nil {
		return unread
	}
	a.keepsSealed = a.leavesWriteOnly(shown)
	if !a.keepsSealed && !a.replacesWriteOnly() {
		return err
	}
	a.was = shown
	a.concealed = true
	return nil
}

// leavesWriteOnly reports whether the write changes neither the spec, including its write-only fields, nor the expiry.
func (w *write) leavesWriteOnly(shown *kind.State) bool {
	if expiry := w.meta.expiresAt; expiry.Set && !expiry.Value.Equal(shown.ExpiresAt) { // the values expire too
		return false
	}
	switch {
	case w.isStatus() || w.keepsSpec:
		return true
	case w.verb == descriptor.VerbPatch || w.setsWriteOnly():
		return false
	}
	return w.kind.Spec.Identical(w.kind.Spec.Shown(w.spec), w.kind.Spec.Shown(shown.Spec))
}

// replacesWriteOnly reports whether the write sets all write-only fields. Their stored values are then not needed.
func (w *write) replacesWriteOnly() bool {
	return w.verb != descriptor.VerbPatch && w.kind.Whole().Spec.GivesWriteOnly(failure.At("spec"), w.spec, w.writeOnly)
}

// validateNew validates a write that creates its resource, first against the kind of the caller's version, then against
// each newer kind ([kind.Kind.NextValidator]).
func (w *write) validateNew(ctx context.Context) error {
	found := w.found.Clone()
	if slices.Contains(w.kind.Whole().SubKinds, w.subKind) && !slices.Contains(w.kind.SubKinds, w.subKind) {
		w.refuseSubKind(&found)
	}
	at := failure.At("spec")
	found.Object(ctx, w.kind.Spec, at, w.spec)
	for next := w.kind.NextValidator(); next != nil && found.Err(w.key) == nil; next = next.NextValidator() {
		found.Object(ctx, next.Spec, at, next.Spec.Known(w.spec))
	}
	return found.Err(w.key)
}

// validate checks the change of the spec against the kind of the caller's version of the API. It does not check parts
// of the spec that do not change.
func (a *attempt) validate(ctx context.Context, spec map[string]any) error {
	if a.keepsSpec || a.keepsSealed {
		return a.found.Err(a.key)
	}
	found := a.found.Clone()
	found.Change(ctx, a.kind.Spec, failure.At("spec"), spec, a.was.Spec)
	if a.subKind != "" && a.subKind != a.was.SubKind {
		found.Add(failure.At("subKind"), "immutable", nil, "is set at creation and cannot be changed")
	}
	return found.Err(a.key)
}

// validateWhole checks the change of the spec against each newer declaration of the kind ([kind.Kind.NextValidator]),
// ignoring fields that a declaration does not know.
func (a *attempt) validateWhole(ctx context.Context, spec map[string]any) error {
	if a.keepsSealed {
		return nil
	}
	for next := a.kind.NextValidator(); next != nil; next = next.NextValidator() {
		found := a.found.Clone()
		found.Change(ctx, next.Spec, failure.At("spec"), next.Spec.Known(spec), a.was.Spec)
		if err := found.Err(a.key); err != nil {
			return err
		}
	}
	return nil
}

// create stores a new resource after its input was validated.
func (a *attempt) create(ctx context.Context) (*Written, error) {
	a.next = a.newState()
	a.specChanged = true
	if err := a.relate(ctx); err != nil {
		return nil, err
	}
	if a.dryRun { // no batch checks whether the resource exists
		current, err := a.writer.loader.load(ctx, a.kind, a.key)
		if err == nil && current != nil {
			err = backend.ErrExists
		}
		if err != nil {
			return nil, failure.Of(err, a.key)
		}
	}
	return a.store(ctx)
}

// newState returns the state of a new resource.
func (w *write) newState() *kind.State {
	st := &kind.State{
		SubKind:   w.subKind,
		Spec:      w.spec,
		Meta:      w.meta.applyTo(body.Metadata{}),
		ExpiresAt: w.meta.expiresAt.Value,
	}
	st.Meta.Generation = 1
	return st
}

// replace replaces the stored spec and metadata by those of the request.
func (a *attempt) replace(ctx context.Context) (*Written, error) {
	if err := a.admit(); err != nil {
		return nil, err
	}
	err := a.readState()
	switch {
	case replaceable(err, a.expected):
		return a.overwrite(ctx)
	case err != nil:
		return nil, failure.Of(err, a.key)
	}
	spec := a.spec
	if a.kind.Spec.Hides || !a.kind.Spec.CanName(a.was.Spec) { // stored fields are added to it
		spec = jsontree.Clone(spec).(map[string]any)
		a.kind.Spec.KeepWriteOnly(spec, a.was.Spec, failure.At("spec"), a.writeOnly)
	}
	return a.replaceSpec(ctx, spec)
}

// replaceSpec replaces the stored spec by spec, and changes the metadata. It adds to spec the stored fields that this
// gateway's catalogue does not know.
func (a *attempt) replaceSpec(ctx context.Context, spec map[string]any) (*Written, error) {
	if err := a.validate(ctx, spec); err != nil {
		return nil, err
	}
	a.next = a.was.WithMetadata(a.meta.applyTo(a.was.Meta))
	if !a.keepsSpec {
		a.kind.Spec.KeepUnknown(spec, a.was.Spec)
		if err := a.validateWhole(ctx, spec); err != nil {
			return nil, err
		}
		a.specChanged = a.concealed && !a.keepsSealed || !a.kind.Whole().Spec.Identical(spec, a.was.Spec)
		if a.specChanged {
			a.next = a.next.WithSpec(spec)
		}
	}
	if a.meta.expiresAt.Set {
		a.next.ExpiresAt = a.meta.expiresAt.Value
	}
	if err := a.meta.validate(a.was, a.next).Err(a.key); err != nil {
		return nil, err
	}
	return a.storeChange(ctx)
}

// storeChange resolves references and stores the next state if it differs from the state that was read. It increments
// the generation only if the effective spec changes: setting a field to its default value, or removing such a value,
// does not count.
func (a *attempt) storeChange(ctx context.Context) (*Written, error) {
	if a.specChanged {
		if a.was == nil || a.concealed || !a.kind.Whole().Spec.Equivalent(a.next.Spec, a.was.Spec) {
			a.next.Meta.Generation++
		}
	} else {
		if a.next.SameBesides(a.was) {
			return a.answerUnchanged(ctx)
		}
		sameManagers := a.next.WithMetadata(a.next.Meta)
		sameManagers.Meta.Managers = a.was.Meta.Managers
		a.managersOnly = sameManagers.SameBesides(a.was)
	}
	if err := a.relate(ctx); err != nil {
		return nil, err
	}
	if a.finalizersChanged() && dependency.SaysFinalizing(a.next.Status()) {
		a.next = a.writer.reconciler.Finalizing(a.kind.Whole(), a.next)
	}
	if a.relation.Overruled && a.next.SameBesides(a.was) { // nothing is left of the status report
		a.warnings = append(a.warnings, a.waitWarnings()...)
		return a.unchanged(), nil
	}
	a.conclusive = !a.dryRun
	return a.store(ctx)
}

// finalizersChanged reports whether the write changes the finalizers of a resource whose deletion waits only for
// finalizers.
func (a *attempt) finalizersChanged() bool {
	return a.next.Meta.Finalizing && !slices.Equal(a.next.Meta.Finalizers, a.was.Meta.Finalizers)
}

// relate resolves the references of the next state and sets its conditions.
func (a *attempt) relate(ctx context.Context) error {
	r := reconcile.Replacement{
		Kind: a.kind.Whole(), Key: a.key, Was: a.was,
		SpecChanged: a.specChanged, StatusReport: a.isStatus(), Read: a.reading,
	}
	if a.current != nil {
		r.Stored = a.current.Resource
	}
	ctx, traced := span.Start(ctx, span.Relate)
	defer traced.End()
	next, relation, err := a.writer.reconciler.Relate(ctx, r, a.next)
	if err != nil {
		return failure.Of(err, a.key)
	}
	if traced.Recording() {
		traced.Set(span.References.Int(len(relation.Refs)), span.Waits.Int(len(relation.Waits)))
	}
	a.next = next
	a.relation = relation
	return nil
}

// store stores the next state if the caller may store it, and returns the answer.
func (a *attempt) store(ctx context.Context) (*Written, error) {
	if err := a.authorizeContent(ctx); err != nil {
		return nil, err
	}
	if err := a.review(ctx); err != nil {
		return nil, err
	}
	res, err := a.commit(ctx)
	switch {
	case err == nil:
		return a.answer(res), nil
	case a.readTooLittle(err):
		a.reading = min(a.reading+1, dependency.OneByOne)
		return nil, errRaced
	case a.current != nil && errors.Is(err, backend.ErrNotFound):
		return nil, errRaced
	}
	return nil, a.failed(err)
}

// readTooLittle reports whether a batch failed because the attempt relied on an outdated target. Then the next attempt
// must read targets more thoroughly; see [dependency.Reading].
func (a *attempt) readTooLittle(err error) bool {
	if sender.Raced(err, a.key) {
		return true
	}
	return a.reading < dependency.OneByOne && errors.Is(err, backend.ErrUnreadable)
}

// answer returns the answer to a write. In a dry run, res is the resource that would be
// stored.
func (a *attempt) answer(res *backend.Resource) *Written {
	out := &Written{Outcome: Updated, DryRun: a.dryRun, Warnings: append(a.warnings, a.waitWarnings()...)}
	switch {
	case a.current == nil:
		out.Outcome = Created
	case a.managersOnly: // the resource was as the manifest says
		out.Outcome = Unchanged
	}
	if !a.isReadable() { // the caller needed only CREATE
		out.Warnings = append(out.Warnings, a.notReadable())
		return out
	}
	out.Resource = a.writer.present(a.kind, res)
	return out
}

// unchanged returns the answer to a write that changes nothing.
func (a *attempt) unchanged() *Written {
	return &Written{
		Outcome: Unchanged, DryRun: a.dryRun, Warnings: a.warnings,
		Resource: a.writer.present(a.kind, a.current.Resource),
	}
}

// notReadable returns the warning that the answer has no resource, because the caller may create it but not read it.
func (w *write) notReadable() failure.Warning {
	done := "was created"
	if w.dryRun {
		done = "would be created"
	}
	return failure.Warning{
		Code:    failure.WarningNotReadable,
		Message: "the resource " + done + ", and you may not read it: that needs the verb GET",
	}
}

// waitWarnings returns a warning for each target that the resource waits for, and one if conditions that the caller
// sent were not stored because the resource waits.
func (a *attempt) waitWarnings() []failure.Warning {
	var out []failure.Warning
	if a.relation.Overruled {
		out = append(out, failure.Warning{
			Code: failure.WarningWaiting, Path: "status.conditions",
			Message: "the resource waits for others: its conditions Available and Progressing say so, " +
				"and what the status says of them was not taken over",
		})
	}
	for _, w := range a.relation.Waits {
		path := a.kind.Path(w.Path).Text(a.names)
		out = append(out, failure.Warning{Code: failure.WarningWaiting, Message: w.String(), Path: path})
	}
	return out
}
