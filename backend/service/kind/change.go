package kind

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"unsafe"

	"github.com/tidwall/gjson"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/jsontree"
)

// maxChangedPaths is the maximum number of paths in a change. If more have changed, their parents are listed in place
// of them.
const maxChangedPaths = 64

// changeOf returns the description of a change for its log entry: a JSON object with two members. "before" has the
// previous values of those parts of the body that have changed, or null for a part that was absent. "paths" lists the
// paths that have changed. was is the stored body. next has the parts that the change writes. Fields that are
// write-only in this catalogue are left out. The result is nil if was cannot be read, or if the description would be
// longer than [backend.MaxChange].
func (k *Kind) changeOf(was []byte, next []member) []byte {
	before, err := partsOf(was)
	if err != nil {
		return nil
	}
	var c changedPaths
	replaced := make([]member, 0, len(before))
	for _, part := range differing(before, next) {
		c.differ(part.name, k.partShape(part.name), part.was, part.now)
		value := part.was
		if value == "" {
			value = "null"
		} else if part.name == "spec" && k.Spec.Hides {
			if value, err = k.shownSpec(value); err != nil {
				return nil
			}
		}
		replaced = append(replaced, member{part.name, value})
	}
	out := append(objectOf(`{"before":`, replaced), `,"paths":[`...)
	for i, path := range c.shortened() {
		if i > 0 {
			out = append(out, ',')
		}
		out = jsontree.AppendText(out, path)
	}
	out = append(out, "]}"...)
	if len(out) > backend.MaxChange {
		return nil
	}
	return out
}

// objectOf returns text followed by the JSON object of the members.
func objectOf(text string, members []member) []byte {
	room := len(text) + len("{}")
	for _, m := range members {
		room += len(`"":,`) + len(m.name) + len(m.raw)
	}
	out := append(append(make([]byte, 0, room), text...), '{')
	for i, m := range members {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(jsontree.AppendText(out, m.name), ':'), m.raw...)
	}
	return append(out, '}')
}

// shownSpec returns a stored spec without the fields that are write-only now. The stored spec has such fields if they
// were not write-only in an earlier catalogue.
func (k *Kind) shownSpec(raw string) (string, error) {
	spec, err := jsontree.Parse(raw)
	if err != nil {
		return "", err
	}
	k.Spec.takeHidden(spec)
	shown, err := jsontree.Append(nil, spec)
	return string(shown), err
}

// partShape returns the shape of a part of the body; nil if the part is compared as a whole.
func (k *Kind) partShape(name string) *Shape {
	switch name {
	case "spec":
		return k.Spec
	case "status":
		return k.Status
	}
	return nil
}

// ChangedPaths returns the paths that a change has changed, such as "spec.size". It returns none if the log entry does
// not list them.
func ChangedPaths(e *backend.Event) []string {
	var c struct{ Paths []string }
	if json.Unmarshal(e.Change, &c) != nil {
		return nil
	}
	return c.Paths
}

// partsBefore returns the previous values of the parts of the body that a change has replaced. known is false if the
// log entry does not have these values.
func partsBefore(change []byte) (parts []member, known bool) {
	text := string(change)
	if !gjson.Valid(text) {
		return nil, false
	}
	before := gjson.Get(text, "before")
	if !before.IsObject() {
		return nil, false
	}
	parts, err := membersIn(before.Raw)
	return parts, err == nil
}

// StatusChange returns the stored status before and after a change; "" if there was no status. Both are "" if the
// change has not changed the status. known is false if the log entry does not have the previous state.
func StatusChange(e *backend.Event) (was, now string, known bool) {
	before := gjson.GetBytes(e.Change, "before.status")
	if !gjson.ValidBytes(e.Change) || !before.Exists() {
		_, known = partsBefore(e.Change)
		return "", "", known
	}
	body, err := backend.DecodeBody(e.Resource.Body)
	return before.Raw, gjson.GetBytes(body, "status").Raw, err == nil
}

// ChangedSpec reports whether a change may have replaced the spec.
func ChangedSpec(e *backend.Event) bool {
	paths := ChangedPaths(e)
	return len(paths) == 0 ||
		slices.ContainsFunc(paths, func(p string) bool { return p == "spec" || strings.HasPrefix(p, "spec.") })
}

// Before returns the resource before a change; nil if it did not exist. known is false if the log entry does not have
// the previous state.
func Before(e *backend.Event) (r *backend.Resource, known bool) {
	switch {
	case e.Type == backend.Added:
		return nil, true
	case e.Type == backend.Deleted:
		return e.Resource, true
	case e.Change == nil || e.Before == nil:
		return nil, false
	}
	parts, known := partsBefore(e.Change)
	if !known {
		return nil, false
	}
	body, err := bodyBefore(parts, e.Resource.Body)
	if err != nil {
		return nil, false
	}
	out := backend.Resource{Key: e.Resource.Key, Envelope: e.Resource.Envelope, Body: body}
	out.Revision = e.Before.Revision
	out.UpdatedAt = e.Before.UpdatedAt
	out.ExpiresAt = e.Before.ExpiresAt
	out.Deleting = e.Before.Deleting
	return &out, true
}

// bodyBefore returns the body before a change: the body after the change, with the previous values of the replaced
// parts.
func bodyBefore(replaced []member, after []byte) ([]byte, error) {
	parts, err := partsOf(after)
	if err != nil {
		return nil, err
	}
	for _, was := range replaced {
		parts = slices.DeleteFunc(parts, func(m member) bool { return m.name == was.name })
		if was.raw != "null" {
			parts = append(parts, was)
		}
	}
	return objectOf(bodyHead, parts), nil
}

// bodyHead is the first byte of a stored body, which names its format.
const bodyHead = string(rune(backend.BodyJSON))

// member is a member of a JSON object.
type member struct{ name, raw string }

// partsOf returns the parts of a stored body, which are the members of its JSON object.
func partsOf(body []byte) ([]member, error) {
	raw, err := backend.DecodeBody(body)
	if err != nil {
		return nil, err
	}
	return membersIn(textOf(raw))
}

// textOf returns raw as a string without copying it. raw must not be modified afterwards.
func textOf(raw []byte) string { return unsafe.String(unsafe.SliceData(raw), len(raw)) }

// maxMembers is the maximum number of members of an object that are compared one by one.
const maxMembers = 256

// membersIn returns the members of a valid JSON object. If a name is repeated, the last value counts.
func membersIn(raw string) (out []member, err error) {
	out = make([]member, 0, 8)
	gjson.Parse(raw).ForEach(func(name, value gjson.Result) bool {
		if at := slices.IndexFunc(out, func(o member) bool { return o.name == name.Str }); at >= 0 {
			out[at].raw = value.Raw
		} else {
			out = append(out, member{name.Str, value.Raw})
		}
		if len(out) > maxMembers {
			err = errors.New("too many members")
		}
		return err == nil
	})
	return out, err
}

// difference is a member whose value differs between two objects. was or now is "" if the member is absent.
type difference struct{ name, was, now string }

// differing returns the members whose values differ between two objects. Their order is the order of the first object.
// Members that only the second object has come last.
func differing(before, after []member) (out []difference) {
	find := func(in []member, name string) string {
		for i := range in {
			if in[i].name == name {
				return in[i].raw
			}
		}
		return ""
	}
	for _, m := range before {
		if now := find(after, m.name); m.raw != now {
			out = append(out, difference{m.name, m.raw, now})
		}
	}
	for _, m := range after {
		if find(before, m.name) == "" {
			out = append(out, difference{m.name, "", m.raw})
		}
	}
	return out
}

// changedPaths collects the paths that have changed.
type changedPaths struct{ all []string }

// differ adds the paths that have changed at path or below. It descends into parts of the body and into objects with a
// shape. For other values it adds path itself.
func (c *changedPaths) differ(path string, s *Shape, was, now string) {
	part := !strings.Contains(path, ".")
	if (s != nil || part) && len(was) > 0 && len(now) > 0 && was[0] == '{' && now[0] == '{' {
		before, err := membersIn(was)
		after, failed := membersIn(now)
		if err == nil && failed == nil {
			for _, d := range differing(before, after) {
				var below *Shape
				if s != nil && s.fields[d.name] != nil && !s.fields[d.name].List {
					below = s.fields[d.name].shape
				}
				c.differ(failure.Join(path, d.name), below, d.was, d.now)
			}
			return
		}
	}
	c.all = append(c.all, path)
}

// shortened returns the sorted paths. While there are too many paths, it replaces the deepest ones by their parents.
func (c *changedPaths) shortened() []string {
	for len(c.all) > maxChangedPaths {
		deepest := 0
		for _, path := range c.all {
			deepest = max(deepest, strings.Count(path, "."))
		}
		for i, path := range c.all {
			if deepest > 0 && strings.Count(path, ".") == deepest {
				c.all[i] = path[:strings.LastIndexByte(path, '.')]
			}
		}
		slices.Sort(c.all)
		c.all = slices.Compact(c.all)
		if deepest == 0 {
			c.all = c.all[:min(len(c.all), maxChangedPaths)]
		}
	}
	slices.Sort(c.all)
	return c.all
}
