package service

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/manifest"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
)

// Apply makes one resource what a manifest says: created, replaced or left as it is.
// metadata.revision, or the request's expectedRevision before it, is a precondition; on an
// absent resource it is NOT_FOUND. The manifest's is ignored with IgnoreRevision and with
// CreateOnly. The server's own fields in a manifest are always ignored.
func (s *Service) Apply(ctx context.Context, c access.Caller, req ApplyRequest) (*Written, error) {
	in, err := s.intendManifest(ctx, c, req)
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

func (s *Service) intendManifest(ctx context.Context, c access.Caller, req ApplyRequest) (*intent, error) {
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
	meta := metadataOf(doc.Metadata)
	if meta.manager = DefaultFieldManager; req.FieldManager != nil {
		meta.manager = *req.FieldManager
	}
	verb, err := s.applyVerb(ctx, c, k, id, req)
	if err != nil {
		return nil, err
	}
	in, err := s.intendSpec(ctx, c, wanted{verb: verb, id: id, meta: meta}, spec)
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
func (s *Service) applyVerb(ctx context.Context, c access.Caller, k *kind.Kind, id kind.Identity, req ApplyRequest) (descriptor.Verb, error) {
	if req.CreateOnly {
		return descriptor.VerbCreate, nil
	}
	rights, err := s.RightsToWrite(ctx, c)
	if err != nil {
		return "", err
	}
	_, key, err := s.kinds.Resolve(id)
	if err != nil {
		return "", err
	}
	first := descriptor.VerbUpdate
	for _, v := range []descriptor.Verb{descriptor.VerbCreate, descriptor.VerbUpsert} {
		if k.Has(v) {
			first = v
		}
	}
	for _, v := range []descriptor.Verb{descriptor.VerbUpsert, descriptor.VerbCreate, descriptor.VerbUpdate} {
		if k.Has(v) && rights.Authorize(k.Kind, v, key) == nil {
			return v, nil
		}
	}
	return first, nil
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

// metadataOf returns the metadata that a manifest sets. Absent fields stay as they are, and null clears.
func metadataOf(m manifest.Metadata) Metadata {
	out := Metadata{mapped: true}
	if m.Labels != nil {
		out.Labels = Optional[[]Label]{Set: true, Value: []Label{}}
		for _, key := range slices.Sorted(maps.Keys(m.Labels)) {
			out.Labels.Value = append(out.Labels.Value, Label{Key: key, Value: m.Labels[key]})
		}
	}
	if m.Annotations != nil {
		out.Annotations = Optional[[]Annotation]{Set: true, Value: []Annotation{}}
		for _, key := range slices.Sorted(maps.Keys(m.Annotations)) {
			out.Annotations.Value = append(out.Annotations.Value, Annotation{Key: key, Value: m.Annotations[key]})
		}
	}
	if m.Description != nil {
		out.Description = Optional[string]{Set: true, Value: *m.Description}
	}
	if m.ExpiresAt != nil {
		out.ExpiresAt = ExpiresAt(*m.ExpiresAt)
	}
	for _, key := range m.Cleared {
		switch key {
		case "labels":
			out.Labels.Set = true
		case "annotations":
			out.Annotations.Set = true
		case "description":
			out.Description.Set = true
		case "expiresAt":
			out.ExpiresAt.Set = true
		}
	}
	return out
}

// Manifest writes a stored resource as the manifest that would apply it
// UNCHANGED through this gateway: with all that its kind can name and that is
// shown. Write-only fields and fields of a newer gateway are not printed, and are kept when the manifest is
// applied.
func (s *Service) Manifest(r *backend.Resource, format ManifestFormat) (string, error) {
	k, err := s.kinds.Find(r.Kind)
	if err != nil {
		return "", err
	}
	st, err := kind.StateOf(r)
	if err != nil {
		return "", failure.Of(err, r.Key)
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
