package dependency

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/kind"
)

// The types of conditions that the gateway writes.
const (
	Available   = "Available"
	Progressing = "Progressing"
)

// The statuses of a condition that the gateway writes.
const (
	True  = "True"
	False = "False"
)

// The reasons of conditions that the gateway writes. Controllers use others as well:
// InvalidConfiguration, TransientError and UnrecoverableError.
const (
	ReasonWaiting     = "Waiting" // for the target of a reference
	ReasonProgressing = "Progressing"
	ReasonSuccess     = "Success"
)

// The messages of conditions of a resource that does not wait for a target.
const (
	messageAvailable = "The resource is available"
	messageCurrent   = "The resource is up to date"
	messageReleased  = "All dependencies are ready; the controller has not acted yet"
)

// ConditionFields is a condition of a status without its lastTransitionTime.
type ConditionFields struct {
	Type, Status, Reason, Message string
	Generation                    int64
}

// Waiting returns the conditions of a resource that waits for targets of its references.
func Waiting(waits []Wait, generation int64) []ConditionFields {
	return progress(ReasonWaiting, message(waits), generation)
}

// Released returns the conditions of a resource that has stopped waiting. Its controller has to handle it next.
func Released(generation int64) []ConditionFields {
	return progress(ReasonProgressing, messageReleased, generation)
}

// Finalizing returns the conditions of a resource whose deletion waits only for finalizers.
func Finalizing(finalizers []string, generation int64) []ConditionFields {
	lines := make([]string, len(finalizers))
	for i, f := range finalizers {
		lines[i] = finalizerBegin + f + " to be removed"
	}
	return progress(ReasonProgressing, strings.Join(lines, "\n"), generation)
}

// finalizerBegin is the beginning of the line about a finalizer.
const finalizerBegin = "Waiting for finalizer "

// SaysFinalizing reports whether [Finalizing] has set the condition Available of a status, and no controller has
// replaced the condition since.
func SaysFinalizing(status map[string]any) bool {
	return slices.ContainsFunc(ConditionsOf(status), func(c any) bool {
		return kind.ConditionType(c) == Available && strings.HasPrefix(kind.ConditionText(c, "message"), finalizerBegin)
	})
}

func progress(reason, message string, generation int64) []ConditionFields {
	return []ConditionFields{
		{Type: Available, Status: False, Reason: reason, Message: message, Generation: generation},
		{Type: Progressing, Status: True, Reason: reason, Message: message, Generation: generation},
	}
}

// Done returns the conditions of a resource that waits for nothing and whose kind has no controller.
func Done(generation int64) []ConditionFields {
	return []ConditionFields{
		{Type: Available, Status: True, Reason: ReasonSuccess, Message: messageAvailable, Generation: generation},
		{Type: Progressing, Status: False, Reason: ReasonSuccess, Message: messageCurrent, Generation: generation},
	}
}

// SetConditions returns status with the given conditions, each in place of the condition of the same type. Conditions
// of other types stay. Only fields that shape has are set. If the status of a condition does not change, its
// lastTransitionTime is kept.
func SetConditions(
	status map[string]any, shape *descriptor.Shape, conditions []ConditionFields, now time.Time,
) map[string]any {
	list := slices.Clone(ConditionsOf(status))
	for _, a := range conditions {
		at := slices.IndexFunc(list, func(c any) bool { return kind.ConditionType(c) == a.Type })
		if at < 0 {
			list = append(list, a.tree(shape, nil, now))
			continue
		}
		old, _ := list[at].(map[string]any)
		list[at] = a.tree(shape, old, now)
		for i := len(list) - 1; i > at; i-- { // one of each type
			if kind.ConditionType(list[i]) == a.Type {
				list = slices.Delete(list, i, i+1)
			}
		}
	}
	return withConditions(status, list)
}

// KeepConditions returns status with the conditions Available and Progressing of another status in place of its own.
func KeepConditions(status, of map[string]any) map[string]any {
	list := slices.DeleteFunc(slices.Clone(ConditionsOf(status)), IsOwned)
	for i, c := range ConditionsOf(of) {
		if IsOwned(c) {
			list = slices.Insert(list, min(i, len(list)), c)
		}
	}
	return withConditions(status, list)
}

// ConditionsOf returns the conditions of a status.
func ConditionsOf(status map[string]any) []any {
	list, _ := status["conditions"].([]any)
	return list
}

// withConditions returns a copy of status with another list of conditions.
func withConditions(status map[string]any, list []any) map[string]any {
	out := make(map[string]any, len(status)+1)
	maps.Copy(out, status)
	out["conditions"] = list
	return out
}

// WithObservedGeneration changes observedGeneration from was to generation in the conditions Available and Progressing
// of a stored status. ok is false if one of the conditions is missing or has another observedGeneration. If done is
// set, ok is also false unless the status has exactly the conditions of [Done]. Most changes of a spec change nothing
// else in the status. So the status need not be decoded: BenchmarkPatch of backend/service (Room) measures the gain.
func WithObservedGeneration(status string, was, generation int64, done bool) (out string, ok bool) {
	conditions := gjson.Get(status, "conditions")
	all := conditions.Array()
	if done && len(all) != 2 {
		return "", false
	}
	b := append(make([]byte, 0, len(status)+8), status[:conditions.Index]...)
	missing := Done(was)
	for i, c := range all {
		b = append(b, "[,"[min(i, 1)])
		raw, typ := c.Raw, c.Get("type").Str
		if typ == Available || typ == Progressing {
			at := slices.IndexFunc(missing, func(a ConditionFields) bool { return a.Type == typ })
			observed := gjson.Get(raw, "observedGeneration")
			if at < 0 || observed.Raw != string(number(was)) || done && !missing[at].sameAs(c) {
				return "", false
			}
			missing = slices.Delete(missing, at, at+1)
			raw = raw[:observed.Index] + string(number(generation)) + raw[observed.Index+len(observed.Raw):]
		}
		b = append(b, raw...)
	}
	b = append(append(b, ']'), status[conditions.Index+len(conditions.Raw):]...)
	return string(b), len(missing) == 0
}

// sameAs reports whether a stored condition has the same status, reason and message.
func (a ConditionFields) sameAs(c gjson.Result) bool {
	return c.Get("status").Str == a.Status && c.Get("reason").Str == a.Reason && c.Get("message").Str == a.Message
}

func number(n int64) json.Number { return json.Number(strconv.FormatInt(n, 10)) }

// MissingConditions returns the conditions whose types do not occur in a status. It modifies the slice conditions.
func MissingConditions(status map[string]any, conditions []ConditionFields) []ConditionFields {
	return slices.DeleteFunc(conditions, func(a ConditionFields) bool {
		return slices.ContainsFunc(ConditionsOf(status), func(c any) bool { return kind.ConditionType(c) == a.Type })
	})
}

// HasFinalCondition reports whether a status has a condition Available other than the one of [Released]. Then the
// controller of the resource has set the condition, or has nothing to do yet.
func HasFinalCondition(status map[string]any) bool {
	return slices.ContainsFunc(ConditionsOf(status), func(c any) bool {
		return kind.ConditionType(c) == Available && kind.ConditionText(c, "message") != messageReleased
	})
}

// WaitingSince returns the time since which the resource waits for a target, according to its condition Progressing;
// the zero time if it does not wait.
func WaitingSince(status map[string]any) (since time.Time) {
	for _, c := range ConditionsOf(status) {
		if kind.ConditionType(c) == Progressing && kind.ConditionText(c, "reason") == ReasonWaiting {
			since, _ = descriptor.ParseTime(kind.ConditionText(c, "lastTransitionTime"))
		}
	}
	return since
}

// IsOwned reports whether a condition has one of the types that the gateway writes.
func IsOwned(condition any) bool {
	t := kind.ConditionType(condition)
	return t == Available || t == Progressing
}

// tree returns the condition as JSON, with the fields that shape has. It keeps other fields of old, which is the
// condition that it replaces; nil if there is none.
func (a ConditionFields) tree(shape *descriptor.Shape, old map[string]any, now time.Time) map[string]any {
	out := map[string]any{}
	maps.Copy(out, old)
	values := map[string]any{
		"type": a.Type, "status": a.Status, "reason": a.Reason, "message": a.Message,
		"observedGeneration": number(a.Generation),
	}
	if since, _ := old["lastTransitionTime"].(string); since == "" || old["status"] != a.Status {
		values["lastTransitionTime"] = descriptor.FormatTime(now.Truncate(time.Millisecond))
	}
	for name, value := range values {
		_, isText := value.(string)
		f := shape.Field(name)
		if f == nil || f.List {
			continue
		}
		if isText && (f.Type == descriptor.TypeString || f.Type == descriptor.TypeTime) ||
			!isText && f.Type == descriptor.TypeSafeInt {
			out[name] = value
		}
	}
	return out
}
