package service

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/manifest"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
)

// Upsert creates a resource. If the resource exists, Upsert replaces its spec at any revision.
func (wr *Writer) Upsert(ctx context.Context, req UpsertRequest) (out *Written, err error) {
	ctx, verb := traceVerb(ctx, descriptor.VerbUpsert)
	if verb.Recording() {
		defer func() { endVerb(verb, out, err) }()
	}
	w, err := wr.beginNew(ctx, descriptor.VerbUpsert, CreateRequest(req))
	if err != nil {
		return nil, err
	}
	return w.upsert(ctx)
}

// upsert creates the resource if it is absent and replaces it otherwise. If the caller expects a revision and the
// resource is absent, upsert returns NOT_FOUND.
func (w *write) upsert(ctx context.Context) (*Written, error) {
	return w.retry(ctx, func() (*Written, error) {
		current, err := w.writer.loader.loadToWrite(ctx, w.kind, w.key)
		there := current != nil || errors.Is(err, backend.ErrUnreadable)
		switch {
		case there && !w.isReadable(): // a caller who has CREATE but not GET gets here
			return nil, w.exists(failure.Of(backend.ErrExists, w.key))
		case replaceable(err, w.expected):
			return w.discard(ctx)
		case err != nil:
			return nil, err
		case current != nil:
			return w.upsertExisting(ctx, current)
		}
		return w.upsertAbsent(ctx)
	})
}

// upsertExisting replaces the resource. For an apply by a caller who has CREATE but not UPSERT (see applyVerb), it also
// requires UPDATE.
func (w *write) upsertExisting(ctx context.Context, current *storedResource) (*Written, error) {
	if w.verb == descriptor.VerbCreate {
		if err := w.rights.Authorize(w.kind.Kind, descriptor.VerbUpdate, w.key); err != nil {
			return w.applyUnchanged(ctx, current, err)
		}
	}
	return w.attempt(current).replace(ctx)
}

// upsertAbsent creates the resource. For an apply by a caller who has UPDATE but not UPSERT (see applyVerb), it also
// requires CREATE.
func (w *write) upsertAbsent(ctx context.Context) (*Written, error) {
	if w.expected != nil {
		return nil, w.gone()
	}
	if w.verb == descriptor.VerbUpdate {
		if err := w.rights.Authorize(w.kind.Kind, descriptor.VerbCreate, w.key); err != nil {
			return nil, err
		}
	}
	if err := w.validateNew(ctx); err != nil {
		return nil, err
	}
	out, err := w.attempt(nil).create(ctx)
	if hasCode(err, failure.CodeAlreadyExists) {
		return nil, errRaced
	}
	return out, err
}

// applyUnchanged handles the apply of a caller who may not update the resource. It succeeds if the apply would change
// nothing. Otherwise it returns refused, the error that names the missing verb. An apply that sets write-only values is
// always refused, because its result would tell the caller whether its values equal the stored ones.
func (w *write) applyUnchanged(ctx context.Context, current *storedResource, refused error) (*Written, error) {
	if w.setsWriteOnly() {
		return nil, refused
	}
	trial := *w
	trial.dryRun = true
	out, err := trial.attempt(current).replace(ctx)
	if err != nil || out.Outcome != Unchanged {
		return nil, refused
	}
	out.DryRun = w.dryRun
	return out, nil
}

// Apply creates or replaces the resource of a manifest, or leaves it unchanged. If the request or the manifest
// (metadata.revision) has a revision, the stored resource must have this revision. Apply returns CONFLICT if the
// resource has another revision, and NOT_FOUND if it does not exist. With IgnoreRevision or CreateOnly the revision of
// the manifest is ignored. Fields of the manifest that only the gateway sets, such as metadata.uid, are always ignored.
func (wr *Writer) Apply(ctx context.Context, req ApplyRequest) (out *Written, err error) {
	ctx, verb := traceVerb(ctx, verbApply)
	if verb.Recording() {
		defer func() { endVerb(verb, out, err) }()
	}
	w, err := wr.beginManifest(ctx, req)
	if err != nil {
		return nil, err
	}
	if req.CreateOnly {
		return w.create(ctx)
	}
	return w.upsert(ctx)
}

func (wr *Writer) beginManifest(ctx context.Context, req ApplyRequest) (*write, error) {
	doc, k, err := wr.readManifest(ctx, req)
	if err != nil {
		return nil, err
	}
	id, err := manifestIdentity(k, doc, req)
	if err != nil {
		return nil, err
	}
	spec, err := manifestSpec(k, doc)
	if err != nil {
		return nil, err
	}
	meta := manifestMetadata{doc.Metadata, DefaultFieldManager}
	if req.FieldManager != nil {
		meta.manager = *req.FieldManager
	}
	verb, err := wr.applyVerb(ctx, k, id, req)
	if err != nil {
		return nil, err
	}
	w, err := wr.begin(ctx, target{verb: verb, id: id, meta: meta, names: failure.ManifestNames})
	if err != nil {
		return nil, err
	}
	if err := w.takeSpec(ctx, spec); err != nil {
		return nil, err
	}
	checkManager(&w.found, meta.manager)
	w.setSubKind(doc.SubKind)
	w.dryRun = req.DryRun
	switch {
	case req.ExpectedRevision != nil:
		w.expected = req.ExpectedRevision
	case !req.IgnoreRevision:
		w.expected = doc.Metadata.Revision
		w.expectedOfManifest = true
	}
	return w, nil
}

// readManifest reads the manifest of a request, and finds its kind.
func (wr *Writer) readManifest(ctx context.Context, req ApplyRequest) (*manifest.Document, *kind.Kind, error) {
	if req.IgnoreRevision && req.ExpectedRevision != nil {
		return nil, nil, failure.BadInput("ignoreRevision", "ignoreRevision: it does not go with expectedRevision; leave one of them out")
	}
	if req.CreateOnly && req.ExpectedRevision != nil {
		return nil, nil, failure.BadInput("createOnly",
			"createOnly: it does not go with expectedRevision, since a new resource has no revision; leave one of them out")
	}
	price := budget.ManifestValue*manifest.Size(req.Manifest) + len(req.Manifest)
	if err := budget.From(ctx).Spend(budget.Steps, price); err != nil {
		return nil, nil, err
	}
	doc, err := manifest.Parse(req.Manifest)
	if err != nil {
		return nil, nil, manifestError(err)
	}
	known, _ := wr.kinds.Find(doc.Kind) // the error of an unknown kind comes after the error of an unknown key
	if err := unknownKey(known, doc); err != nil {
		return nil, nil, err
	}
	k, err := wr.manifestKind(doc)
	return doc, k, err
}

// manifestError returns the error of a manifest that cannot be parsed, with the path if it is known.
func manifestError(err error) error {
	e := failure.BadInput("manifest", "manifest: %v", err)
	var unknown *manifest.UnknownError
	var mistyped *manifest.TypeError
	switch {
	case errors.As(err, &unknown):
		e.Path = headPath(unknown.Path).Text(failure.ManifestNames)
	case errors.As(err, &mistyped):
		e.Path = headPath(mistyped.Path).Text(failure.ManifestNames)
	}
	return e
}

// headPath returns the failure path of a top-level key of a manifest, or of a key of its metadata, such as
// metadata.name.
func headPath(path string) *failure.Path {
	if key, ok := strings.CutPrefix(path, "metadata."); ok {
		return metadataPath(key)
	}
	return failure.At(path)
}

// manifestIdentity returns the identity of the resource in a manifest. If the manifest has no namespace, the resource
// gets the namespace of the request.
func manifestIdentity(k *kind.Kind, doc *manifest.Document, req ApplyRequest) (kind.Identity, error) {
	id := kind.Identity{Kind: k.Name, Namespace: doc.Metadata.Namespace, Name: doc.Metadata.Name}
	switch {
	case k.Scope != descriptor.Namespaced:
	case id.Namespace == nil:
		id.Namespace = req.Namespace
	case req.Namespace != nil && *req.Namespace != *id.Namespace:
		return id, failure.BadInput("metadata.namespace",
			"the manifest says namespace %q and the request says %q; leave one of them out",
			failure.Shorten(*id.Namespace), failure.Shorten(*req.Namespace))
	}
	return id, nil
}

// applyVerb returns the verb under which an apply is authorized first. It is UPSERT if the kind offers UPSERT and the
// caller may use it, otherwise CREATE or UPDATE. Whether CREATE or UPDATE is needed is known only when the resource was
// read. upsertExisting and upsertAbsent then check the needed verb.
func (wr *Writer) applyVerb(
	ctx context.Context, k *kind.Kind, id kind.Identity, req ApplyRequest,
) (descriptor.Verb, error) {
	if req.CreateOnly {
		return descriptor.VerbCreate, nil
	}
	rights, err := wr.reader.RightsToWrite(ctx)
	if err != nil {
		return "", err
	}
	_, key, err := wr.kinds.Resolve(id)
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
func (wr *Writer) manifestKind(doc *manifest.Document) (*kind.Kind, error) {
	k, err := wr.kinds.Find(doc.Kind)
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
		return nil, failure.BadInput(
			"apiVersion",
			"kind %s has apiVersion %s, not %q",
			k.Name,
			k.APIVersion(),
			failure.Shorten(doc.APIVersion+doc.Version),
		)
	}
	return k, nil
}
