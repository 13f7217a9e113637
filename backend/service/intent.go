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
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/jsontree"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/reconcile"
)

// intent is the wanted state of a resource, checked as far as that is possible without the stored one.
type intent struct {
	kind *kind.Kind
	key  backend.Key
	meta metadataChange
	spec map[string]any
	// found are the violations outside the spec.
	found    kind.Violations
	expected *string
	// expectedOfManifest reports whether the expected revision is the manifest's own.
	expectedOfManifest bool
	// verb that the caller asked for; see applyVerb.
	verb descriptor.Verb
	// rights are the caller's.
	rights *access.Rights
	// subKind of a resource that is created; an existing one must have it, if it is given.
	subKind string
	// sent is the effect of the spec on write-only fields.
	sent kind.Sent
	// patch reports whether the spec was made from the stored one.
	patch bool
	// unspecified reports whether the patch leaves the spec as it is.
	unspecified bool
	// read says how the next attempt reads targets. Copies of the intent share it.
	read     *reconcile.Reading
	dryRun   bool
	warnings []failure.Warning
}

// wanted is a write as the caller asks for it, but for the spec or the status.
type wanted struct {
	verb descriptor.Verb
	id   kind.Identity
	meta changer
	// needs is the verb that the caller must have; empty for verb.
	needs descriptor.Verb
}

// intend resolves and authorizes a write and checks its metadata.
func (s *Service) intend(ctx context.Context, w wanted) (*intent, error) {
	k, key, err := s.kinds.Resolve(w.id)
	if err != nil {
		return nil, err
	}
	if err := access.Offers(k.Kind, w.verb); err != nil {
		return nil, err
	}
	rights, err := s.authorize(ctx, k, cmp.Or(w.needs, w.verb), key)
	if err != nil {
		return nil, err
	}
	in := &intent{kind: k, key: key, verb: w.verb, rights: rights, read: new(reconcile.Reading)}
	if w.meta != nil {
		in.meta = w.meta.change(&in.found)
	}
	if kept := in.meta.expiresAt.Value.UTC().Truncate(time.Millisecond); !kept.IsZero() { // as stores keep it
		in.meta.expiresAt.Value = kept
	}
	if t := in.meta.expiresAt; t.Set && !k.Expires {
		return nil, failure.BadInput("metadata.expiresAt", "resources of kind %s do not expire", k.Name).At(key)
	} else if t.Set && !t.Value.IsZero() && !t.Value.After(s.clock()) {
		in.found.Add("metadata.expiresAt", "future", nil, "must be in the future")
	} else if t.Value.UTC().Year() > lastYear {
		in.found.Add("metadata.expiresAt", "max", "9999-12-31T23:59:59Z", "must be before the year 10000 in UTC")
	}
	return in, nil
}

// lastYear is the last year that RFC 3339 can write.
const lastYear = 9999

// ExpiresAt returns the expiry at a time, for [Metadata], where the zero time means none: here it is a
// time in the past.
func ExpiresAt(t time.Time) Optional[time.Time] {
	if t.IsZero() {
		t = t.Add(1)
	}
	return Optional[time.Time]{Set: true, Value: t}
}

// intendSpec is intend with a whole spec.
func (s *Service) intendSpec(ctx context.Context, w wanted, spec any) (*intent, error) {
	in, err := s.intend(ctx, w)
	if err != nil {
		return nil, err
	}
	if in.spec, err = in.parse("spec", spec); err != nil {
		return nil, err
	}
	in.warnings = in.kind.Spec.Deprecated(nil, "spec", in.spec)
	in.sent.Added = in.found.TakeMerged(ctx, in.kind.Spec, "spec", in.spec, in.sent.Cleared)
	return in, nil
}

// object reads the object that the caller gave for a part of the body; null is BAD_USER_INPUT.
func (in *intent) object(part string, value any) (map[string]any, error) {
	tree, err := jsontree.Object(value)
	switch {
	case err != nil:
		return nil, failure.BadInput(part, "%s is not acceptable: %v", part, err).At(in.key)
	case tree == nil:
		return nil, failure.BadInput(part, "%s must not be null; an object is wanted", part).At(in.key)
	}
	return tree, nil
}

// parse reads a part of the body.
func (in *intent) parse(part string, value any) (map[string]any, error) {
	tree, err := in.object(part, value)
	if err != nil {
		return nil, err
	}
	if part == "spec" {
		in.sent.Cleared = in.kind.Spec.TakeCleared(part, tree)
	}
	jsontree.DropNulls(tree)
	switch {
	case part == "spec":
		in.kind.Spec.Canonical(tree)
	case in.kind.Status != nil:
		in.kind.Status.Canonical(tree)
	}
	return tree, nil
}

// parsePatch reads a merge patch, nulls and all, and notes fields that the kind does
// not have; and a second one, which is applied after it.
func (in *intent) parsePatch(ctx context.Context, value any) (patch, later map[string]any, err error) {
	patch, err = jsontree.Object(value)
	if err != nil {
		return nil, nil, failure.BadInput("spec", "spec is not acceptable: %v", err).At(in.key)
	}
	if patch == nil {
		return nil, nil, nil
	}
	jsontree.DropListNulls(patch)
	in.found.DropUnknown(in.kind.Spec, "spec", patch)
	in.kind.Spec.ClearEmpty(patch)
	in.kind.Spec.Canonical(patch)
	in.warnings = in.kind.Spec.Deprecated(nil, "spec", patch)
	return patch, in.found.TakeMergedPatch(ctx, in.kind.Spec, "spec", patch), nil
}

// setSubKind checks the subKind of a resource that may be created.
func (in *intent) setSubKind(subKind string) {
	in.subKind = subKind
	if subKind == "" || slices.Contains(in.kind.SubKinds, subKind) {
		return
	}
	if len(in.kind.SubKinds) == 0 {
		in.found.Add("subKind", "unknown", nil, "kind %s has no subKinds", in.kind.Name)
		return
	}
	accepted := strings.Join(in.kind.SubKinds, ", ")
	in.found.Add("subKind", "in", accepted, "must be one of %s", accepted)
}

// judge returns all violations of the intent: as a change of old, or as a new resource if old is nil.
func (in *intent) judge(ctx context.Context, old *kind.State) *kind.Violations {
	found := in.found.Clone()
	if old == nil {
		found.Object(ctx, in.kind.Spec, "spec", in.spec)
		return &found
	}
	found.Change(ctx, in.kind.Spec, "spec", in.spec, old.Spec)
	if in.subKind != "" && in.subKind != old.SubKind {
		found.Add("subKind", "immutable", nil, "is set at creation and cannot be changed")
	}
	return &found
}

// open returns an error if the stored resource has another revision than expected, or is frozen.
func (in *intent) open(current *backend.Resource) error {
	if in.expected != nil {
		if err := expect(*in.expected, current); err != nil {
			return err
		}
	}
	if current.Deleting && !in.unspecified { // a patch of no spec may remove finalizers
		return failure.Of(backend.ErrDeleting, in.key)
	}
	return nil
}

// expect checks a caller's revision: it must be the current one, the one of the last change of the spec,
// or lie between them in the current epoch. So a change of the spec since the caller read is a conflict and a
// change of the status is not.
func expect(expected string, current *backend.Resource) error {
	r, err := backend.ParseRevision(expected)
	if err == nil && (r == current.Revision || r == current.SpecRevision ||
		r.Epoch == current.Revision.Epoch && current.SpecRevision.Compare(r) < 0 && r.Compare(current.Revision) < 0) {
		return nil
	}
	return conflict(expected, current)
}

func conflict(expected string, current *backend.Resource) error {
	e := &failure.Error{
		Code: failure.CodeConflict, ExpectedRevision: failure.Shorten(expected), CurrentRevision: current.Revision.String(),
		Message: fmt.Sprintf("%s was changed since you read it: revision %q is expected, %q is current; read it again and repeat the change", failure.Describe(current.Key), failure.Shorten(expected), current.Revision),
	}
	return e.At(current.Key)
}

// gone returns the error of an apply that expects a revision of an absent resource; it says how to apply
// without one.
func (in *intent) gone() error {
	e := failure.Of(backend.ErrNotFound, in.key)
	e.ExpectedRevision = failure.Shorten(*in.expected)
	e.Message += fmt.Sprintf(", and the change is based on its revision %q", e.ExpectedRevision)
	if in.expectedOfManifest {
		e.Path = "metadata.revision"
		e.Message += "; ignoreRevision (sluice apply --ignore-revision) creates it anew"
	}
	return e
}

// keeping returns the intent with the stored write-only fields that it leaves alone. A patch has them
// already.
func (in *intent) keeping(was *kind.State) *intent {
	if in.patch || !in.kind.Spec.Hides {
		return in
	}
	out := *in
	out.spec = jsontree.Clone(in.spec).(map[string]any)
	in.kind.Spec.KeepWriteOnly(out.spec, was.Spec, "spec", in.sent)
	return &out
}

// base returns the state that the intent changes. Sensitive values that cannot be decrypted need not be,
// if the intent leaves them as they are stored, or keeps none of them; a patch of metadata alone does not
// need what is damaged either.
func (in *intent) base(current *stored) (*kind.State, error) {
	was, err := current.state(in.kind)
	if err == nil || !in.unspecified && !errors.Is(err, backend.ErrEncrypted) {
		return was, err
	}
	shown, unread := kind.StateOf(current.Resource)
	if unread != nil {
		return shown, unread
	}
	if current.kept = in.keepsConcealed(shown); !current.kept && !in.replacesConcealed() {
		return was, err
	}
	current.read, current.concealed = shown, true
	return shown, nil
}

// sendsWriteOnly reports whether the spec that was sent sets or clears write-only fields.
func (in *intent) sendsWriteOnly() bool {
	return in.kind.Spec.Hides && (len(in.sent.Cleared)+len(in.sent.Added) > 0 || !jsontree.Equal(in.kind.Spec.Shown(in.spec), in.spec))
}

// keepsConcealed reports whether the intent leaves all write-only fields as they are, and
// the rest of the spec as it is shown.
func (in *intent) keepsConcealed(shown *kind.State) bool {
	switch {
	case in.meta.expiresAt.Set && !in.meta.expiresAt.Value.Equal(shown.ExpiresAt): // they expire with the resource
		return false
	case in.verb == descriptor.VerbStatus || in.unspecified:
		return true
	case in.patch || in.verb == descriptor.VerbPatch || in.sendsWriteOnly():
		return false
	}
	return in.kind.Spec.Identical(in.kind.Spec.Shown(in.spec), in.kind.Spec.Shown(shown.Spec))
}

// replacesConcealed reports whether the intent gives all write-only fields, so that none of
// them is kept.
func (in *intent) replacesConcealed() bool {
	return !in.patch && in.verb != descriptor.VerbPatch && in.kind.Spec.GivesWriteOnly("spec", in.spec, in.sent)
}
