package service

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
)

// intent is one wanted state of one resource, checked as far as it can be
// without knowing what is stored.
type intent struct {
	kind                *kind
	key                 backend.Key
	meta                Metadata
	labels, annotations map[string]string
	spec                map[string]any
	// found are the violations outside the spec.
	found    violations
	expected *string
	// verb that the caller asked for; see applyVerb.
	verb   descriptor.Verb
	caller Caller
	// subKind of a resource that is created; an existing one must have it, if it is given.
	subKind string
	// cleared are the paths of write-only fields that the spec clears.
	cleared map[string]bool
	// patch says that the spec was made of what is stored.
	patch    bool
	dryRun   bool
	warnings []string
}

// intend resolves and authorizes a write and checks its metadata.
func (s *Service) intend(ctx context.Context, c Caller, verb descriptor.Verb, id Identity, meta Metadata) (*intent, error) {
	k, key, err := s.kinds.resolve(id)
	if err != nil {
		return nil, err
	}
	if err := authorize(ctx, c, k.Kind, verb); err != nil {
		return nil, err
	}
	in := &intent{kind: k, key: key, meta: meta, verb: verb, caller: c}
	in.labels, in.annotations = meta.check(&in.found)
	if t := meta.ExpiresAt; t.Set && !k.Expires {
		return nil, badInput("metadata.expiresAt", "resources of kind %s do not expire", k.Name).of(key)
	} else if t.Set && !t.Value.IsZero() && !t.Value.After(s.cfg.Clock()) {
		in.found.add("metadata.expiresAt", "future", "", "must be in the future")
	} else if t.Value.UTC().Year() > lastYear {
		in.found.add("metadata.expiresAt", "max", "9999-12-31T23:59:59Z", "must be before the year 10000 in UTC")
	}
	return in, nil
}

// lastYear is the last one that RFC 3339 can write.
const lastYear = 9999

// ExpiresAt is the expiry at a time, for [Metadata]. There the zero time stands
// for none; here it is as long past as any other of its century.
func ExpiresAt(t time.Time) Optional[time.Time] {
	if t.IsZero() {
		t = t.Add(1)
	}
	return Optional[time.Time]{Set: true, Value: t}
}

// intendSpec also reads a whole spec.
func (s *Service) intendSpec(ctx context.Context, c Caller, verb descriptor.Verb, id Identity, meta Metadata, spec any) (*intent, error) {
	in, err := s.intend(ctx, c, verb, id, meta)
	if err != nil {
		return nil, err
	}
	if in.spec, err = in.parse("spec", spec); err != nil {
		return nil, err
	}
	in.warnings = in.kind.spec.deprecated(nil, "spec", in.spec)
	return in, nil
}

// parse reads a part of the body; null is BAD_USER_INPUT.
func (in *intent) parse(part string, value any) (map[string]any, error) {
	tree, err := readObject(value)
	if err != nil {
		return nil, badInput(part, "%s is not acceptable: %v", part, err).of(in.key)
	}
	if tree == nil {
		return nil, badInput(part, "%s must not be null; an object is wanted", part).of(in.key)
	}
	if part == "spec" {
		in.cleared = in.kind.spec.takeCleared(nil, part, tree)
	}
	dropNulls(tree, maxTreeDepth)
	return tree, nil
}

// parsePatch reads a merge patch, nulls and all, and notes fields that the kind does not have.
func (in *intent) parsePatch(value any) (map[string]any, error) {
	patch, err := readObject(value)
	if err != nil {
		return nil, badInput("spec", "spec is not acceptable: %v", err).of(in.key)
	}
	if patch == nil {
		return nil, nil
	}
	dropListNulls(patch, maxTreeDepth)
	in.found.dropUnknown(in.kind.spec, "spec", patch)
	in.kind.spec.clearEmpty(patch)
	in.warnings = in.kind.spec.deprecated(nil, "spec", patch)
	return patch, nil
}

// setSubKind checks the subKind of a resource that may be created.
func (in *intent) setSubKind(subKind string) {
	in.subKind = subKind
	if subKind == "" || slices.Contains(in.kind.SubKinds, subKind) {
		return
	}
	if len(in.kind.SubKinds) == 0 {
		in.found.add("subKind", "unknown", "", "kind %s has no subKinds", in.kind.Name)
		return
	}
	accepted := strings.Join(in.kind.SubKinds, ", ")
	in.found.add("subKind", "in", accepted, "must be one of %s", accepted)
}

// judge returns all violations of the intent, a change of what is stored or,
// where old is nil, a new resource.
func (in *intent) judge(ctx context.Context, old *state) *violations {
	found := in.found.clone()
	if old == nil {
		found.object(ctx, in.kind.spec, "spec", in.spec)
		return &found
	}
	found.keep(in.kind.spec, old.spec)
	found.object(ctx, in.kind.spec, "spec", in.spec)
	found.transition(ctx, in.kind.spec, "spec", in.spec, in.kind.spec.project(old.spec))
	if in.subKind != "" && in.subKind != old.subKind {
		found.add("subKind", "immutable", "", "is set at creation and cannot be changed")
	}
	return &found
}

// open says whether the caller may write on what is stored: its revision, then whether it is frozen.
func (in *intent) open(current *backend.Resource) error {
	if in.expected != nil {
		if err := expect(*in.expected, current); err != nil {
			return err
		}
	}
	if current.Deleting {
		return translate(backend.ErrDeleting, in.key)
	}
	return nil
}

// expect holds a caller's revision against what is stored: it must be the
// current one, that of the last change of the spec, or one between them in the
// current epoch. So a change of the spec since the caller read is a conflict
// and a change of the status is not.
func expect(expected string, current *backend.Resource) error {
	r, err := backend.ParseRevision(expected)
	if err == nil && (r == current.Revision || r == current.SpecRevision ||
		r.Epoch == current.Revision.Epoch && current.SpecRevision.Compare(r) < 0 && r.Compare(current.Revision) < 0) {
		return nil
	}
	return conflict(expected, current)
}

func conflict(expected string, current *backend.Resource) error {
	e := &Error{
		Code: CodeConflict, ExpectedRevision: shorten(expected), CurrentRevision: current.Revision.String(),
		Message: fmt.Sprintf("%s was changed since you read it: revision %q is expected, %q is current; read it again and repeat the change", describe(current.Key), shorten(expected), current.Revision),
	}
	return e.of(current.Key)
}

// keeping is the intent with the write-only fields that it leaves as they are. A
// patch has them already.
func (in *intent) keeping(was *state) *intent {
	if in.patch || !in.kind.spec.hides {
		return in
	}
	out := *in
	out.spec = cloneTree(in.spec).(map[string]any)
	in.kind.spec.keepWriteOnly(out.spec, was.spec, "spec", in.cleared)
	return &out
}
