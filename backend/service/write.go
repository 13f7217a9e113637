package service

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/jsontree"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/reconcile"
	"github.com/sluicegw/sluice/internal/wait"
)

// Create stores a new resource: NOT_FOUND never, ALREADY_EXISTS if it is there.
func (s *Service) Create(ctx context.Context, req CreateRequest) (*Written, error) {
	in, err := s.intendNew(ctx, descriptor.VerbCreate, req)
	if err != nil {
		return nil, err
	}
	return s.createValid(ctx, in)
}

// intendNew is intendSpec for a resource that may be created.
func (s *Service) intendNew(ctx context.Context, verb descriptor.Verb, req CreateRequest) (*intent, error) {
	in, err := s.intendSpec(ctx, wanted{verb: verb, id: req.Identity, meta: req.Metadata}, req.Spec)
	if err == nil {
		in.setSubKind(req.SubKind)
		in.dryRun = req.DryRun
	}
	return in, err
}

// createValid stores an intent that must have no violations.
func (s *Service) createValid(ctx context.Context, in *intent) (*Written, error) {
	if err := in.judge(ctx, nil).Err(in.key); err != nil {
		// What exists is said first: then the input need not be mended.
		if current, readErr := s.load(ctx, in.kind, in.key); readErr == nil && current != nil {
			return nil, in.exists(failure.Of(backend.ErrExists, in.key))
		}
		return nil, err
	}
	out, err := s.repeat(ctx, in.key, func() (*Written, error) { return s.create(ctx, in) })
	return out, in.exists(err)
}

// exists adds to an error ALREADY_EXISTS that the caller may not read what is there, and takes its revision out: it would
// tell the caller of each change.
func (in *intent) exists(err error) error {
	known, ok := errors.AsType[*failure.Error](err)
	if !ok || known.Code != failure.CodeAlreadyExists || in.rights.Sees(in.kind.Kind, in.key) {
		return err
	}
	out := *known
	out.Message += ", and you may not read it"
	out.CurrentRevision = ""
	return &out
}

// Update replaces the spec of an existing resource at the expected revision.
func (s *Service) Update(ctx context.Context, req UpdateRequest) (*Written, error) {
	in, err := s.intendSpec(ctx, wanted{verb: descriptor.VerbUpdate, id: req.Identity, meta: req.Metadata}, req.Spec)
	if err != nil {
		return nil, err
	}
	in.expected, in.dryRun = &req.ExpectedRevision, req.DryRun
	return s.retry(ctx, in.kind, in.key, func(current *stored) (*Written, error) {
		return s.replace(ctx, in, current)
	})
}

// retry reads a resource, which must be there, and lets write judge it, again as often as
// another writer comes in between. At first it takes what the index has. That may be old, so
// it is believed only if a write was sent that holds it to be current. A write that is too large, or has too
// many values, depends on the stored status, and is refused before it is sent.
func (s *Service) retry(ctx context.Context, k *kind.Kind, key backend.Key, write func(current *stored) (*Written, error)) (*Written, error) {
	first := true
	return s.repeat(ctx, key, func() (*Written, error) {
		if first {
			first = false
			if recent := s.recent(k, key); recent != nil {
				if err := recent.payToWrite(ctx); err != nil {
					return nil, err
				}
				if out, err := write(recent); recent.used && !errors.Is(err, errRaced) && !hasCode(err, failure.CodeLimitExceeded) {
					return out, err
				}
			}
		}
		current, err := s.loadToWrite(ctx, k, key)
		if err == nil && current == nil {
			err = failure.Of(backend.ErrNotFound, key)
		}
		if err != nil {
			return nil, err
		}
		return write(current)
	})
}

// hasCode reports whether an error is one for the caller with a code.
func hasCode(err error, code failure.Code) bool {
	known, ok := errors.AsType[*failure.Error](err)
	return ok && known.Code == code
}

// Bounds of the pauses of a write that lost a race against another gateway.
const (
	minRacePause = 2 * time.Millisecond
	maxRacePause = 128 * time.Millisecond
)

// repeat writes until neither another writer comes in between nor the attempt
// is lost, or until the request's time is over. The writers of this gateway take turns at the key; random
// pauses give way to writers of other gateways. Each attempt is settled before the next.
func (s *Service) repeat(ctx context.Context, key backend.Key, write func() (*Written, error)) (*Written, error) {
	if _, limited := ctx.Deadline(); !limited {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.cfg.RetryTimeout)
		defer cancel()
	}
	contended, ok := s.turns.take(ctx, key)
	if !ok {
		return nil, failure.Of(backend.ErrConflict, key)
	}
	defer s.turns.pass(key)
	backoff := wait.Backoff{Least: minRacePause, Most: maxRacePause}
	for {
		out, err := write()
		switch {
		case errors.Is(err, errRaced):
			contended, err = true, backend.ErrConflict
		case errors.Is(err, reconcile.ErrLost):
			err = fmt.Errorf("%w: %w", backend.ErrUnavailable, err)
		case contended && hasCode(err, failure.CodeTimeout): // while others wrote
			return nil, failure.Of(backend.ErrConflict, key)
		default:
			if err == nil && s.cfg.Access.Enabled && (key.Kind == access.RoleKind || key.Kind == access.BindingKind) {
				_, _ = s.RightsNow(ctx) // at this gateway the new rights hold from the answer on, also for streams
			}
			return out, err
		}
		if !backoff.Wait(ctx) {
			return nil, failure.Of(err, key)
		}
	}
}

// errRaced means that another writer came in between, so that the write may be judged again.
var errRaced = errors.New("raced")

// answerTo returns what the error of a batch about a resource means for its write: errRaced,
// [reconcile.ErrLost], or the error for the caller.
func answerTo(err error, key backend.Key) error {
	switch {
	case reconcile.Raced(err, key):
		return errRaced
	case errors.Is(err, reconcile.ErrLost):
		return err
	}
	return failure.Of(err, key)
}

// Patch changes parts of a spec at the expected revision; the result must be acceptable.
func (s *Service) Patch(ctx context.Context, req PatchRequest) (*Written, error) {
	w := wanted{verb: descriptor.VerbPatch, id: req.Identity, meta: req.MetadataPatch}
	finalizes := len(req.AddFinalizers)+len(req.RemoveFinalizers) > 0
	if finalizes && req.finalizersAlone() {
		w.needs = descriptor.VerbFinalize
	}
	in, err := s.intend(ctx, w)
	if err != nil {
		return nil, err
	}
	if finalizes {
		if err := in.rights.Authorize(in.kind.Kind, descriptor.VerbFinalize, in.key); err != nil {
			return nil, err
		}
	}
	patch, later, err := in.parsePatch(ctx, req.Patch)
	if err != nil {
		return nil, err
	}
	in.expected, in.dryRun, in.unspecified = &req.ExpectedRevision, req.DryRun, len(patch)+len(later) == 0
	warnings := slices.Clip(in.warnings)
	return s.retry(ctx, in.kind, in.key, func(current *stored) (*Written, error) {
		if err := in.open(current.Resource); err != nil {
			return nil, err
		}
		was, err := in.base(current)
		if err != nil {
			return nil, failure.Of(err, in.key)
		}
		in.patch, in.spec = true, was.Spec
		if !in.unspecified {
			in.spec = jsontree.Merged(in.kind.Spec.Known(was.Spec), patch)
			in.warnings = append(warnings, in.kind.Spec.Cleared("spec", was.Spec, patch)...)
		}
		if len(later) > 0 {
			in.spec = jsontree.Merged(in.spec, later)
		}
		return s.replace(ctx, in, current)
	})
}

// Upsert creates a resource, or replaces its spec at any revision.
func (s *Service) Upsert(ctx context.Context, req UpsertRequest) (*Written, error) {
	in, err := s.intendNew(ctx, descriptor.VerbUpsert, CreateRequest(req))
	if err != nil {
		return nil, err
	}
	return s.upsert(ctx, in)
}

// upsert creates an absent resource, unless a revision is expected, and replaces an existing one.
func (s *Service) upsert(ctx context.Context, in *intent) (*Written, error) {
	return s.repeat(ctx, in.key, func() (*Written, error) {
		current, err := s.loadToWrite(ctx, in.kind, in.key)
		switch {
		case (current != nil || errors.Is(err, backend.ErrUnreadable)) && !in.rights.Sees(in.kind.Kind, in.key): // CREATE was enough to come here
			return nil, in.exists(failure.Of(backend.ErrExists, in.key))
		case replaceable(err, in.expected):
			return s.discard(ctx, in)
		case err != nil:
			return nil, err
		case current != nil:
			if in.verb == descriptor.VerbCreate { // an apply, to a kind without UPSERT
				if err := in.rights.Authorize(in.kind.Kind, descriptor.VerbUpdate, in.key); err != nil {
					return s.unchanged(ctx, in, current, err)
				}
			}
			return s.replace(ctx, in, current)
		case in.expected != nil:
			return nil, in.gone()
		case in.verb == descriptor.VerbUpdate:
			if err := in.rights.Authorize(in.kind.Kind, descriptor.VerbCreate, in.key); err != nil {
				return nil, err
			}
		}
		if err := in.judge(ctx, nil).Err(in.key); err != nil {
			return nil, err
		}
		out, err := s.create(ctx, in)
		if hasCode(err, failure.CodeAlreadyExists) {
			return nil, errRaced
		}
		return out, err
	})
}

// unchanged answers an apply that may not update: the error names the missing verb, unless the intent would
// change nothing. Write-only values are not compared: a caller could guess them.
func (s *Service) unchanged(ctx context.Context, in *intent, current *stored, refused error) (*Written, error) {
	if in.sendsWriteOnly() {
		return nil, refused
	}
	trial := *in
	trial.dryRun = true
	out, err := s.replace(ctx, &trial, current)
	if err != nil || out.Outcome != Unchanged {
		return nil, refused
	}
	out.DryRun = in.dryRun
	return out, nil
}
