package service

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/manifest"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/jsontree"
	"github.com/sluicegw/sluice/backend/service/kind"
)

// Apply makes one resource what a manifest says: created, replaced or left as it is.
// metadata.revision, or the request's expectedRevision before it, is a precondition; on an
// absent resource it is NOT_FOUND. The manifest's is ignored with IgnoreRevision and with
// CreateOnly. The server's own fields in a manifest are always ignored.
func (s *Service) Apply(ctx context.Context, req ApplyRequest) (*Written, error) {
	in, err := s.intendManifest(ctx, req)
	if err != nil {
		return nil, err
	}
	in.found.Manifest = true
	write := s.upsert
	if req.CreateOnly {
		write = s.createValid
	}
	out, err := write(ctx, in)
	return inManifest(in.kind, out, err)
}

// headPath returns the path of a key at the top of a manifest, or of its metadata.
func headPath(path string) string {
	if key, ok := strings.CutPrefix(path, "metadata."); ok {
		return failure.Join("metadata", key)
	}
	return failure.Join("", path)
}

func (s *Service) intendManifest(ctx context.Context, req ApplyRequest) (*intent, error) {
	if req.IgnoreRevision && req.ExpectedRevision != nil {
		return nil, failure.BadInput("ignoreRevision", "ignoreRevision: it does not go with expectedRevision; leave one of them out")
	}
	if req.CreateOnly && req.ExpectedRevision != nil {
		return nil, failure.BadInput("createOnly", "createOnly: it does not go with expectedRevision, since a new resource has no revision; leave one of them out")
	}
	if err := budget.From(ctx).Spend(budget.Steps, budget.ManifestValue*manifest.Size(req.Manifest)+len(req.Manifest)); err != nil {
		return nil, err
	}
	doc, err := manifest.Parse(req.Manifest)
	if err != nil {
		e := failure.BadInput("manifest", "manifest: %v", err)
		var unknown *manifest.UnknownError
		var mistyped *manifest.TypeError
		if errors.As(err, &unknown) {
			e.Path = headPath(unknown.Path)
		} else if errors.As(err, &mistyped) {
			e.Path = headPath(mistyped.Path)
		}
		return nil, e
	}
	known, _ := s.kinds.Find(doc.Kind) // the error of an unknown kind comes after the error of an unknown key
	if err := unknownKey(known, doc); err != nil {
		return nil, err
	}
	k, err := s.manifestKind(doc)
	if err != nil {
		return nil, err
	}
	id := kind.Identity{Kind: k.Name, Namespace: doc.Metadata.Namespace, Name: doc.Metadata.Name}
	if k.Scope == descriptor.Namespaced {
		if id.Namespace == nil {
			id.Namespace = req.Namespace
		} else if req.Namespace != nil && *req.Namespace != *id.Namespace {
			return nil, failure.BadInput("metadata.namespace", "the manifest says namespace %q and the request says %q; leave one of them out", failure.Shorten(*id.Namespace), failure.Shorten(*req.Namespace))
		}
	}
	spec, err := manifestSpec(k, doc)
	if err != nil {
		return nil, err
	}
	meta := manifestMetadata{doc.Metadata, DefaultFieldManager}
	if req.FieldManager != nil {
		meta.manager = *req.FieldManager
	}
	verb, err := s.applyVerb(ctx, k, id, req)
	if err != nil {
		return nil, err
	}
	in, err := s.intendSpec(ctx, wanted{verb: verb, id: id, meta: meta}, spec)
	if err != nil {
		return nil, err
	}
	checkManager(&in.found, meta.manager)
	in.setSubKind(doc.SubKind)
	in.dryRun = req.DryRun
	switch {
	case req.ExpectedRevision != nil:
		in.expected = req.ExpectedRevision
	case !req.IgnoreRevision:
		in.expected, in.expectedOfManifest = doc.Metadata.Revision, true
	}
	return in, nil
}

// applyVerb returns the verb of an apply: UPSERT where the kind offers it and the caller may use it.
// Otherwise an apply can still create an absent resource or update an existing one; the other is refused when
// it is known which of the two it is.
func (s *Service) applyVerb(ctx context.Context, k *kind.Kind, id kind.Identity, req ApplyRequest) (descriptor.Verb, error) {
	if req.CreateOnly {
		return descriptor.VerbCreate, nil
	}
	rights, err := s.RightsToWrite(ctx)
	if err != nil {
		return "", err
	}
	_, key, err := s.kinds.Resolve(id)
	if err != nil {
		return "", err
	}
	var first descriptor.Verb
	for _, v := range []descriptor.Verb{descriptor.VerbUpsert, descriptor.VerbCreate, descriptor.VerbUpdate} {
		if !k.Has(v) {
			continue
		}
		if rights.Authorize(k.Kind, v, key) == nil {
			return v, nil
		}
		first = cmp.Or(first, v)
	}
	return cmp.Or(first, descriptor.VerbUpdate), nil
}

// manifestKind finds the kind that a manifest names, and checks its apiVersion.
func (s *Service) manifestKind(doc *manifest.Document) (*kind.Kind, error) {
	k, err := s.kinds.Find(doc.Kind)
	if err != nil {
		return nil, err
	}
	if doc.Kind != k.Name {
		return nil, failure.BadInput("kind", "kind %q is written %q", failure.Shorten(doc.Kind), k.Name)
	}
	switch {
	case doc.APIVersion == k.APIVersion():
	case doc.APIVersion == "" && doc.Version == k.Version:
	case doc.APIVersion == "" && doc.Version == "":
		return nil, failure.BadInput("apiVersion", "apiVersion is missing; kind %s has %s", k.Name, k.APIVersion())
	default:
		return nil, failure.BadInput("apiVersion", "kind %s has apiVersion %s, not %q", k.Name, k.APIVersion(), failure.Shorten(doc.APIVersion+doc.Version))
	}
	return k, nil
}

// manifestMetadata is the metadata of a manifest. Absent fields stay as they are, and null clears.
type manifestMetadata struct {
	manifest.Metadata
	manager string
}

func (m manifestMetadata) change(v *kind.Violations) metadataChange {
	cleared := func(name string) bool { return slices.Contains(m.Cleared, name) }
	pairs := func(name string, given map[string]string, removed []string, check func(path, value string)) pairsChange {
		out := pairsChange{all: cleared(name) || given != nil && m.manager == ""}
		for _, key := range removed {
			out.take(v, failure.Join("metadata."+name, key), key, nil)
		}
		for _, key := range jsontree.Keys(given) {
			at := failure.Join("metadata."+name, key)
			check(at, given[key])
			out.take(v, at, key, new(given[key]))
		}
		return out
	}
	out := metadataChange{
		labels:      pairs("labels", m.Labels, m.ClearedLabels, v.LabelValue),
		annotations: pairs("annotations", m.Annotations, m.ClearedAnnotations, anyValue),
		description: Optional[string]{Set: cleared("description")}, expiresAt: Optional[time.Time]{Set: cleared("expiresAt")}, manager: m.manager,
	}
	if m.Description != nil {
		out.description = Optional[string]{Set: true, Value: *m.Description}
	}
	if m.ExpiresAt != nil {
		out.expiresAt = ExpiresAt(*m.ExpiresAt)
	}
	out.check(v)
	return out
}

// Manifest writes a stored resource as the manifest that would apply it
// UNCHANGED through this gateway: with all that its kind can name and that is
// shown. Write-only fields and fields of a newer gateway are not printed, and are kept when the manifest is
// applied.
func (s *Service) Manifest(r *backend.Resource, format ManifestFormat) (string, error) {
	k, st, err := s.stateOf(r)
	if err != nil {
		return "", err
	}
	doc := manifest.Document{
		APIVersion: k.APIVersion(), Kind: k.Name, SubKind: st.SubKind,
		Metadata: manifest.Metadata{Name: r.Name, Labels: st.Meta.Labels, Annotations: st.Meta.Annotations},
	}
	if err := placeSpec(k, &doc, k.Spec.Shown(st.Spec)); err != nil {
		return "", failure.Of(fmt.Errorf("manifest: %w", err), r.Key)
	}
	if r.Namespace != "" {
		doc.Metadata.Namespace = &r.Namespace
	}
	if st.Meta.Description != "" {
		doc.Metadata.Description = &st.Meta.Description
	}
	if k.Expires && !r.ExpiresAt.IsZero() {
		doc.Metadata.ExpiresAt = &r.ExpiresAt
	}
	write := doc.YAML
	if format == JSON {
		write = doc.JSON
	}
	out, err := write()
	if err != nil {
		return "", failure.Of(fmt.Errorf("manifest: %w", err), r.Key)
	}
	return string(out), nil
}

// SpecJSON is the spec of a stored resource, with all that its kind can name and
// that is shown, in stored form.
func (s *Service) SpecJSON(r *backend.Resource) ([]byte, error) {
	return s.partJSON(r, func(k *kind.Kind, st *kind.State) map[string]any { return k.Spec.Shown(st.Spec) })
}

// StatusJSON is the status of a stored resource, with all that its kind can name, in
// stored form; nil if there is none.
func (s *Service) StatusJSON(r *backend.Resource) ([]byte, error) {
	return s.partJSON(r, func(k *kind.Kind, st *kind.State) map[string]any {
		status := st.Status()
		if k.Status == nil || status == nil {
			return nil
		}
		return k.Status.Project(status)
	})
}

func (s *Service) partJSON(r *backend.Resource, part func(*kind.Kind, *kind.State) map[string]any) ([]byte, error) {
	k, st, err := s.stateOf(r)
	if err != nil {
		return nil, err
	}
	tree := part(k, st)
	if tree == nil {
		return nil, nil
	}
	raw, err := json.Marshal(tree)
	if err != nil {
		return nil, failure.Of(fmt.Errorf("json: %w", err), r.Key)
	}
	return raw, nil
}

// stateOf returns the kind and the state of a stored resource.
func (s *Service) stateOf(r *backend.Resource) (*kind.Kind, *kind.State, error) {
	k, err := s.kinds.Find(r.Kind)
	if err != nil {
		return nil, nil, err
	}
	st, err := kind.StateOf(r)
	if err != nil {
		return nil, nil, failure.Of(err, r.Key)
	}
	return k, st, nil
}
