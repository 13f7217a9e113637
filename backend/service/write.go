package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/sluicegw/sluice/backend"
)

// intent is one wanted state of one resource, checked as far as it can be
// without knowing what is stored.
type intent struct {
	kind                *kind
	key                 backend.Key
	meta                Metadata
	labels, annotations map[string]string
	spec                map[string]any
	// found are the violations that do not depend on what is stored.
	found    violations
	expected *string
	dryRun   bool
	warnings []string
}

// Create stores a new resource: NOT_FOUND never, ALREADY_EXISTS if it is there.
func (s *Service) Create(ctx context.Context, c Caller, req CreateRequest) (*Written, error) {
	in, err := s.intend(ctx, c, backend.VerbCreate, req.Identity, req.Metadata, req.Spec)
	if err != nil {
		return nil, err
	}
	if err := in.found.err(in.key); err != nil {
		// What exists is said first: then the input need not be mended.
		if current, readErr := s.read(ctx, in.kind, in.key); readErr == nil && current != nil {
			return nil, translate(backend.ErrExists, in.key)
		}
		return nil, err
	}
	return s.create(ctx, in)
}

// Update replaces the spec of an existing resource at the expected revision.
func (s *Service) Update(ctx context.Context, c Caller, req UpdateRequest) (*Written, error) {
	in, err := s.intend(ctx, c, backend.VerbUpdate, req.Identity, req.Metadata, req.Spec)
	if err != nil {
		return nil, err
	}
	in.expected = &req.ExpectedRevision
	for range s.cfg.Retries {
		current, err := s.read(ctx, in.kind, in.key)
		if err != nil {
			return nil, err
		}
		if current == nil {
			return nil, translate(backend.ErrNotFound, in.key)
		}
		out, err := s.replace(ctx, in, current)
		if !errors.Is(err, errRaced) {
			return out, err
		}
	}
	return nil, translate(backend.ErrConflict, in.key)
}

// errRaced says that another writer came in between, so that the write may be judged anew.
var errRaced = errors.New("raced")

// Delete removes a resource.
func (s *Service) Delete(ctx context.Context, c Caller, req DeleteRequest) (*Written, error) {
	k, key, err := s.resolve(req.Identity)
	if err != nil {
		return nil, err
	}
	if err := s.authorize(ctx, c, k.Kind, backend.VerbDelete); err != nil {
		return nil, err
	}
	for range s.cfg.Retries {
		cond := backend.Condition{Presence: backend.Present}
		if req.ExpectedRevision != nil {
			current, err := s.read(ctx, k, key)
			if err != nil {
				return nil, err
			}
			if current == nil {
				return nil, translate(backend.ErrNotFound, key)
			}
			if err := expect(*req.ExpectedRevision, current); err != nil {
				return nil, err
			}
			cond.Revision = current.Revision
		}
		res, err := s.apply(ctx, k, backend.Action{Key: key, If: cond, Do: backend.DeedDelete})
		switch {
		case errors.Is(err, backend.ErrConflict):
			continue
		case err != nil:
			return nil, s.fail(err, key)
		}
		return &Written{Resource: s.present(k, res.Resources[0])}, nil
	}
	return nil, translate(backend.ErrConflict, key)
}

// intend resolves, authorizes and validates a wanted state.
func (s *Service) intend(ctx context.Context, c Caller, verb backend.Verb, id Identity, meta Metadata, spec any) (*intent, error) {
	k, key, err := s.resolve(id)
	if err != nil {
		return nil, err
	}
	if err := s.authorize(ctx, c, k.Kind, verb); err != nil {
		return nil, err
	}
	raw, err := json.Marshal(spec)
	if err != nil {
		return nil, translate(fmt.Errorf("spec: %w", err), key)
	}
	if string(raw) == "null" {
		return nil, badInput("spec", "spec must not be null; an object with the fields %s is wanted", k.spec.names()).of(key)
	}
	tree, err := parseTree(raw)
	if err != nil {
		return nil, badInput("spec", "spec is not acceptable: %v", err).of(key)
	}
	in := &intent{kind: k, key: key, meta: meta, spec: tree}
	in.labels, in.annotations = meta.check(&in.found)
	in.found.object(ctx, k.spec, "spec", tree)
	in.warnings = k.spec.deprecated(nil, "spec", tree)
	return in, nil
}

// deprecated collects a warning for each deprecated field that is set.
func (s *shape) deprecated(out []string, path string, tree map[string]any) []string {
	for _, name := range sortedKeys(tree) {
		f := s.fields[name]
		if f == nil || len(out) >= maxViolations {
			continue
		}
		at := join(path, name)
		if f.Deprecated != "" {
			out = append(out, at+" is deprecated: "+f.Deprecated)
		}
		switch value := tree[name].(type) {
		case map[string]any:
			if f.shape != nil {
				out = f.shape.deprecated(out, at, value)
			}
		case []any:
			for _, e := range value {
				if m, ok := e.(map[string]any); ok && f.shape != nil {
					out = f.shape.deprecated(out, at+"[]", m)
				}
			}
		}
	}
	return out
}

// create stores an intent whose own violations are none.
func (s *Service) create(ctx context.Context, in *intent) (*Written, error) {
	spec, err := json.Marshal(in.spec)
	if err != nil {
		return nil, translate(err, in.key)
	}
	body := &backend.Body{Version: in.kind.Version, Spec: spec, Metadata: in.meta.applyTo(backend.BodyMetadata{}, in.labels, in.annotations)}
	body.Metadata.Generation = 1
	out := &Written{Outcome: Created, Warnings: in.warnings}
	if in.dryRun {
		return out, nil
	}
	put, err := in.kind.put(s.cfg.NewID(), body)
	if err != nil {
		return nil, translate(err, in.key)
	}
	res, err := s.apply(ctx, in.kind, backend.Action{Key: in.key, If: backend.Condition{Presence: backend.Absent}, Do: backend.DeedPut, Put: put})
	if err != nil {
		return nil, s.fail(err, in.key)
	}
	out.Resource = s.present(in.kind, res.Resources[0])
	return out, nil
}

// put is what the store is given. Index rows come from the descriptor.
func (k *kind) put(uid string, body *backend.Body) (backend.Put, error) {
	raw, err := body.Encode()
	return backend.Put{UID: uid, Caller: true, Body: raw}, err
}

// replace judges an intent against what is stored, in the order of DESIGN:
// revision, frozen, validation, identical. It answers errRaced if the stored
// resource changed meanwhile.
func (s *Service) replace(ctx context.Context, in *intent, current *backend.Resource) (*Written, error) {
	if in.expected != nil {
		if err := expect(*in.expected, current); err != nil {
			return nil, err
		}
	}
	if current.Deleting {
		return nil, translate(backend.ErrDeleting, in.key)
	}
	old, err := current.DecodeBody()
	if err != nil {
		return nil, s.fail(err, in.key)
	}
	was, err := parseTree(old.Spec)
	if err != nil {
		return nil, s.fail(fmt.Errorf("stored spec: %w: %w", backend.ErrUnreadable, err), in.key)
	}
	found := violations{list: in.found.list[:len(in.found.list):len(in.found.list)], dropped: in.found.dropped}
	found.immutable(in.kind.spec, "spec", in.spec, was)
	if err := found.err(in.key); err != nil {
		return nil, err
	}
	spec := cloneTree(in.spec).(map[string]any)
	in.kind.spec.keepUnknown(spec, was)
	body := &backend.Body{SubKind: old.SubKind, Version: in.kind.Version, Status: old.Status, Metadata: in.meta.applyTo(old.Metadata, in.labels, in.annotations)}
	sameSpec := equal(spec, was)
	if sameSpec && sameMetadata(body.Metadata, old.Metadata) {
		return &Written{Resource: s.present(in.kind, current), Outcome: Unchanged, Warnings: in.warnings}, nil
	}
	body.Spec = old.Spec
	if !sameSpec {
		body.Metadata.Generation++
		if body.Spec, err = json.Marshal(spec); err != nil {
			return nil, translate(err, in.key)
		}
	}
	out := &Written{Outcome: Updated, Warnings: in.warnings}
	if in.dryRun {
		out.Resource = s.present(in.kind, current)
		return out, nil
	}
	put, err := in.kind.put(current.UID, body)
	if err != nil {
		return nil, translate(err, in.key)
	}
	put.ExpiresAt = current.ExpiresAt
	res, err := s.apply(ctx, in.kind, backend.Action{
		Key: in.key, Do: backend.DeedPut, Put: put,
		If: backend.Condition{Presence: backend.Present, Revision: current.Revision, NotDeleting: true},
	})
	switch {
	case errors.Is(err, backend.ErrConflict), errors.Is(err, backend.ErrNotFound):
		return nil, errRaced
	case err != nil:
		return nil, s.fail(err, in.key)
	}
	out.Resource = s.present(in.kind, res.Resources[0])
	return out, nil
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
	e := &Error{
		Code: CodeConflict, ExpectedRevision: shorten(expected), CurrentRevision: current.Revision.String(),
		Message: fmt.Sprintf("%s was changed since you read it: revision %q is expected, %q is current; read it again and repeat the change", describe(current.Key), shorten(expected), current.Revision),
	}
	return e.of(current.Key)
}

// apply sends one action with a fresh request id and a deadline.
func (s *Service) apply(ctx context.Context, k *kind, a backend.Action) (backend.Result, error) {
	return s.store(k.Kind).Apply(ctx, backend.Batch{
		RequestID: s.cfg.NewID(),
		Deadline:  s.cfg.Clock().Add(s.cfg.WriteTimeout),
		Actions:   []backend.Action{a},
	})
}

// fail translates an error for the caller. The cause stays inside, for the log of the edge.
func (s *Service) fail(err error, key backend.Key) error { return translate(err, key) }
