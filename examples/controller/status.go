package main

import (
	"context"
	"errors"
	"time"

	"github.com/sluicegw/sluice/graph/client"
)

// Types, statuses and reasons of conditions. After the last two nothing is done until the
// spec changes.
const (
	available   = "Available"
	progressing = "Progressing"

	isTrue    = "True"
	isFalse   = "False"
	isUnknown = "Unknown"

	reasonProgressing   = "Progressing"
	reasonSuccess       = "Success"
	reasonTransient     = "TransientError"
	reasonConfiguration = "InvalidConfiguration"
	reasonUnrecoverable = "UnrecoverableError"
)

// What conditions say.
const (
	sayAvailable  = "OpenStack resource is available"
	sayCurrent    = "OpenStack resource is up to date"
	sayExternally = "Waiting for OpenStack resource to be created externally"
	sayReady      = "Waiting for OpenStack resource to be ready"
	sayDeleted    = "Waiting for OpenStack resource to be deleted"
	sayMissing    = "referenced resource does not exist in OpenStack"
	saySeveral    = "found more than one matching OpenStack resource during import"
	sayGone       = "resource has been deleted from OpenStack"
)

// outcome is what came of the work on a resource.
type outcome struct {
	// object as the cloud showed it; nil if it did not.
	object *object
	// gone: the cloud said that there is none.
	gone bool
	// waiting says what for; empty for nothing.
	waiting string
	// err is what went wrong.
	err error
}

// terminalError is what does not pass by itself: somebody has to change the spec.
type terminalError struct{ reason, message string }

func (e *terminalError) Error() string { return e.message }

// conditions are the two that say how far a resource is.
func (o outcome) conditions() []client.Condition {
	p := client.Condition{Type: progressing, Status: isFalse, Reason: reasonSuccess, Message: sayCurrent}
	a := client.Condition{Type: available, Status: isTrue, Reason: reasonSuccess, Message: sayAvailable}
	var terminal *terminalError
	switch {
	case errors.As(o.err, &terminal):
		p.Reason, p.Message = terminal.reason, terminal.message
	case errors.Is(o.err, errRefused):
		p.Reason, p.Message = reasonConfiguration, o.err.Error()
	case o.err != nil:
		p.Status, p.Reason, p.Message = isTrue, reasonTransient, o.err.Error()
	case o.waiting != "":
		p.Status, p.Reason, p.Message = isTrue, reasonProgressing, o.waiting
	}
	if p.Reason != reasonSuccess {
		a.Status, a.Reason, a.Message = isFalse, p.Reason, p.Message
	}
	return []client.Condition{a, p}
}

// report writes the status of a resource that follows from an outcome.
func (c *controller) report(ctx context.Context, r *resource, o outcome) error {
	now := c.now().UTC().Truncate(time.Millisecond)
	next := make(map[string]any, len(r.stored))
	set := func(name string, value any) {
		if r.kind.Field("status."+name) != nil {
			next[name] = value
		}
	}
	for name, value := range r.stored {
		set(name, value)
	}
	if o.gone {
		delete(next, "id")
		delete(next, "resource")
	}
	if o.object != nil {
		set("id", o.object.ID)
		set("resource", shown(r.kind, o.object))
		set("lastSyncTime", now.Format(time.RFC3339Nano))
	}
	var list []any
	for _, condition := range o.conditions() {
		before := r.condition(condition.Type)
		if condition.Type == available && condition.Reason == reasonTransient && o.object == nil && r.status.ID != "" {
			condition.Status = isUnknown // it was there, and now the cloud does not say
		}
		since := before.LastTransitionTime
		if since == "" || before.Status != condition.Status {
			since = now.Format(time.RFC3339Nano)
		}
		list = append(list, map[string]any{
			"type": condition.Type, "status": condition.Status, "reason": condition.Reason, "message": condition.Message,
			"observedGeneration": r.meta.Generation, "lastTransitionTime": since,
		})
	}
	set("conditions", list)
	_, err := c.gateway.UpdateStatus(ctx, client.StatusRequest{
		Kind: r.kind, Namespace: r.key.Namespace, Name: r.key.Name, ExpectedRevision: r.meta.Revision, Status: next,
	})
	return err
}
