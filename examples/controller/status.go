package main

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"time"

	"github.com/sluicegw/sluice/graph/client"
)

// These are types, statuses and reasons of conditions. After one of the last two reasons, the controller does nothing
// until the spec changes.
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

// These are messages of conditions.
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

// outcome is the result of reconciling a resource. The status of the resource is derived from it.
type outcome struct {
	// object is the object as the cloud has returned it; nil if the cloud has returned none.
	object *object
	// gone is set if the cloud has no such object.
	gone bool
	// waiting is the message about what the resource waits for; empty if it does not wait.
	waiting string
	// err is the error of the reconciliation.
	err error
}

// terminalError is an error that remains until somebody changes the spec.
type terminalError struct{ reason, message string }

func (e *terminalError) Error() string { return e.message }

// conditions returns the conditions Available and Progressing.
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

// report writes the status that follows from an outcome. It writes nothing if the status has not changed, because each
// write is a change that all listeners receive, including this controller.
func (c *controller) report(ctx context.Context, r *resource, o outcome) error {
	next := r.next(o, c.now().UTC().Truncate(time.Millisecond))
	if next == nil {
		return nil
	}
	_, err := c.gateway.UpdateStatus(ctx, client.StatusRequest{
		Kind: r.kind, Namespace: r.key.Namespace, Name: r.key.Name, ExpectedRevision: r.Metadata.Revision, Status: next,
	})
	return err
}

// next returns the status that follows from an outcome. If the resource has an error or waits, and the stored status is
// the same, it returns nil.
func (r *resource) next(o outcome, now time.Time) map[string]any {
	next := make(map[string]any, len(r.stored))
	set := func(name string, value any) {
		if r.kind.Field("status."+name) != nil {
			next[name] = value
		}
	}
	for name, value := range r.stored {
		set(name, value)
	}
	if o.gone || r.search && o.object == nil {
		delete(next, "id")
		delete(next, "resource")
		delete(next, "lastSyncTime")
	}
	if o.object != nil {
		set("id", o.object.ID)
		set("resource", shown(r.kind, o.object))
	}
	var list []any
	for _, condition := range o.conditions() {
		before := r.Condition(condition.Type)
		if condition.Type == available && condition.Reason == reasonTransient && o.object == nil && r.status.ID != "" && !r.search {
			condition.Status = isUnknown // it was there, and now the cloud does not say
		}
		since := before.LastTransitionTime
		if since == "" || before.Status != condition.Status {
			since = now.Format(time.RFC3339Nano)
		}
		list = append(list, map[string]any{
			"type": condition.Type, "status": condition.Status, "reason": condition.Reason, "message": condition.Message,
			"observedGeneration": r.Metadata.Generation, "lastTransitionTime": since,
		})
	}
	set("conditions", list)
	if (o.err != nil || o.waiting != "") && same(next, r.stored) {
		return nil
	}
	if o.object != nil {
		set("lastSyncTime", now.Format(time.RFC3339Nano))
	}
	return next
}

// same reports whether a status equals the stored one.
func same(next, stored map[string]any) bool {
	raw, err := json.Marshal(next)
	var read map[string]any
	return err == nil && json.Unmarshal(raw, &read) == nil && reflect.DeepEqual(read, stored)
}
