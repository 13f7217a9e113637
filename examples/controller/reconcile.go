package main

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"reflect"
	"slices"
	"time"

	"github.com/sluicegw/sluice/graph/client"
)

// finalizer is added to each managed resource before anything is created for it in the cloud.
const finalizer = "example.org/cloud"

// maxConflicts is how many times in a row a resource is read again, without a pause, because somebody else has changed
// it.
const maxConflicts = 5

// controller creates, changes and removes the objects of a cloud as the resources of a gateway demand.
type controller struct {
	gateway *client.Client
	cloud   *cloud
	kinds   map[string]client.Kind
	// resync is how often a resource is reconciled if its spec has no resyncPeriod; 0 means never.
	resync time.Duration
	// poll is the interval at which the controller asks for the state of an object that the cloud has not completed.
	poll time.Duration
	now  func() time.Time
	log  *slog.Logger
}

// reconcile changes the cloud as the resource demands, and then the status of the resource as the state of the cloud
// demands. It depends only on the present state, so it can be interrupted anywhere and repeated. after is the time
// after which to call it again; 0 for never.
func (c *controller) reconcile(ctx context.Context, k key) (after time.Duration, err error) {
	for range maxConflicts {
		var r *resource
		if r, err = c.read(ctx, k); err != nil || r == nil {
			break
		}
		if after, err = c.step(ctx, r); !conflict(err) {
			break
		}
	}
	if err != nil {
		c.log.Warn("is tried again", "resource", k, "cause", err)
	}
	return after, err
}

// conflict reports whether err means that somebody else has changed a resource since it was read.
func conflict(err error) bool {
	var e *client.Error
	return errors.As(err, &e) && (e.Extensions.Code == "CONFLICT" || e.Extensions.Code == "ABORTED")
}

// step reconciles a resource that was read.
func (c *controller) step(ctx context.Context, r *resource) (time.Duration, error) {
	if r.Metadata.DeletionRequestedAt != nil {
		return c.finalize(ctx, r)
	}
	if r.waits() {
		return 0, nil // the gateway says so in the conditions
	}
	if wait, settled := c.settled(r); settled {
		return wait, nil
	}
	r.search = r.mustSearch()
	var err error
	if r.cloud, err = c.connect(ctx, r); err != nil {
		return c.finish(ctx, r, outcome{err: err})
	}
	var o outcome
	if r.spec.ManagementPolicy == unmanaged {
		o = c.adopt(ctx, r)
	} else {
		if !slices.Contains(r.Metadata.Finalizers, finalizer) { // before anything is made in the cloud
			if err := c.patch(ctx, r, client.MetadataPatch{AddFinalizers: []string{finalizer}}); err != nil {
				return 0, err
			}
		}
		o = c.ensure(ctx, r)
	}
	return c.finish(ctx, r, o)
}

// settled reports whether there is nothing to do now. The duration is the time until there may be; 0 means that there
// is nothing to do until the resource changes.
func (c *controller) settled(r *resource) (time.Duration, bool) {
	p := r.Condition(progressing)
	switch {
	case p.Status != isFalse || p.ObservedGeneration != r.Metadata.Generation:
		return 0, false
	case p.Reason == reasonConfiguration || p.Reason == reasonUnrecoverable:
		return 0, true
	case r.status.LastSyncTime.IsZero(): // it was ready before it had a controller
		return 0, false
	}
	period := r.period(c.resync)
	if period <= 0 {
		return 0, true
	}
	left := r.status.LastSyncTime.Add(period).Sub(c.now())
	if left <= 0 {
		return 0, false
	}
	return left + rand.N(period/5+1), true // later by up to a fifth, so that not all come at once
}

// finish writes the outcome to the status and returns the time after which to reconcile the resource again.
func (c *controller) finish(ctx context.Context, r *resource, o outcome) (time.Duration, error) {
	if ctx.Err() != nil {
		return 0, ctx.Err() // the controller stops: that is no state of the resource
	}
	if err := c.report(ctx, r, o); err != nil {
		return 0, err
	}
	var terminal *terminalError
	switch {
	case errors.As(o.err, &terminal), errors.Is(o.err, errRefused):
		return 0, nil
	case o.err != nil:
		return 0, o.err
	case o.waiting != "":
		return c.poll, nil
	}
	return 0, nil // the change of the status comes back, and with it the time of the next look
}

// patch changes the metadata of a resource.
func (c *controller) patch(ctx context.Context, r *resource, p client.MetadataPatch) (err error) {
	p.Kind, p.Namespace, p.Name, p.ExpectedRevision = r.kind, r.key.Namespace, r.key.Name, r.Metadata.Revision
	r.Metadata.Revision, err = c.gateway.PatchMetadata(ctx, p)
	return err
}

// ensure creates the object of a managed resource, or changes it to match the spec.
func (c *controller) ensure(ctx context.Context, r *resource) outcome {
	o, err := c.find(ctx, r)
	want := r.wanted()
	if errors.Is(err, errNotThere) {
		if o, err = r.cloud.create(ctx, r.key.Kind, want); err != nil {
			return outcome{gone: true, err: err}
		}
	}
	if err != nil {
		return outcome{err: err}
	}
	switch {
	case o.State == stateDeleting: // by somebody else; then it is created again
		return outcome{object: o, waiting: sayDeleted}
	case o.State != stateActive:
		return outcome{object: o, waiting: sayReady}
	case reflect.DeepEqual(o.Properties, want.Properties):
		return outcome{object: o}
	}
	changed, err := r.cloud.replace(ctx, r.key.Kind, o.ID, want)
	if err != nil {
		return outcome{object: o, err: err}
	}
	return outcome{object: changed}
}

// find returns the object of a managed resource. It looks for the id in the status, and then for the owner, because the
// controller may have crashed before it stored the id.
func (c *controller) find(ctx context.Context, r *resource) (*object, error) {
	if r.status.ID != "" {
		if o, err := r.cloud.get(ctx, r.key.Kind, r.status.ID); !errors.Is(err, errNotThere) {
			return o, err
		}
	}
	return r.cloud.owned(ctx, r.key.Kind, r.Metadata.UID)
}

// adopt looks for the object of a resource that is not managed. It uses the id in the status if the present import has
// found that object, otherwise the import in the spec.
func (c *controller) adopt(ctx context.Context, r *resource) outcome {
	id, absent := r.status.ID, &terminalError{reasonUnrecoverable, sayGone}
	if r.search || id == "" {
		id, absent = r.spec.Import.ID, &terminalError{reasonUnrecoverable, sayMissing}
	}
	var o *object
	var err error
	if id != "" {
		if o, err = r.cloud.get(ctx, r.key.Kind, id); errors.Is(err, errNotThere) {
			return outcome{gone: true, err: absent}
		}
	} else {
		var found []*object
		found, err = r.cloud.search(ctx, r.key.Kind, request{Filter: r.resolved("spec.import.filter", r.spec.Import.Filter)})
		switch {
		case err != nil:
		case len(found) > 1:
			return outcome{err: &terminalError{reasonConfiguration, saySeveral}}
		case len(found) == 1:
			o = found[0]
		case r.search || r.status.LastSyncTime.IsZero():
			return outcome{waiting: sayExternally}
		default: // of a kind whose objects have no ids
			return outcome{gone: true, err: &terminalError{reasonUnrecoverable, sayGone}}
		}
	}
	if err != nil {
		return outcome{err: err}
	}
	if o.State != stateActive {
		return outcome{object: o, waiting: sayReady}
	}
	return outcome{object: o}
}

// finalize removes the object of a resource that is being deleted, unless the spec says to detach it, and then removes
// the finalizer. It does nothing as long as other resources or other finalizers prevent the deletion.
func (c *controller) finalize(ctx context.Context, r *resource) (time.Duration, error) {
	if !slices.Contains(r.Metadata.Finalizers, finalizer) || len(r.Metadata.Finalizers) > 1 || r.blocked {
		return 0, nil // a change tells when that is different
	}
	if r.spec.ManagedOptions.OnDelete != detach {
		var err error
		if r.cloud, err = c.connect(ctx, r); err != nil {
			return c.finish(ctx, r, outcome{err: err})
		}
		o, err := c.find(ctx, r)
		if err == nil {
			if o.State != stateDeleting {
				err = r.cloud.remove(ctx, r.key.Kind, o.ID)
			}
			return c.finish(ctx, r, outcome{object: o, waiting: sayDeleted, err: err})
		}
		if !errors.Is(err, errNotThere) {
			return c.finish(ctx, r, outcome{err: err})
		}
	}
	return 0, c.patch(ctx, r, client.MetadataPatch{RemoveFinalizers: []string{finalizer}})
}
