package catalogue

import (
	"context"
	"fmt"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/sluicegw/sluice/backend"
)

// concern is the number of stored resources that a change concerns, and the resources whose
// deletion they prevent.
type concern struct {
	resources int
	// has reports that resources counts those with the removed field; otherwise it counts all of
	// the kind.
	has bool
	// held are resources of other kinds that cannot be deleted because resources of a removed kind
	// refer to them; at most maxHeld. more is the number of further ones.
	held []backend.Key
	more int
}

// maxHeld is the most held resources that are named.
const maxHeld = 3

func (c concern) String() string {
	out := fmt.Sprintf("resources of the kind: %d", c.resources)
	if c.has {
		out = fmt.Sprintf("resources that have it: %d", c.resources)
	}
	if len(c.held) == 0 {
		return out
	}
	var names []string
	for _, key := range c.held {
		names = append(names, key.String())
	}
	out += "; they keep " + strings.Join(names, ", ")
	if c.more > 0 {
		out += fmt.Sprintf(" and %d more", c.more)
	}
	return out + " from being deleted"
}

// concern counts what a change concerns. If a field or the kind itself is removed, it reads all
// resources of the kind.
func (g Gate) concern(ctx context.Context, c Difference) (out concern, err error) {
	if !c.Gone {
		out.resources, err = g.count(ctx, c.Kind)
		return out, err
	}
	out.has = c.Path != ""
	held := map[backend.Key]bool{}
	for page, err := range backend.Pages(ctx, g.Store, backend.Range{Kind: c.Kind, Limit: pageSize, Bare: out.has}) {
		if err != nil {
			return out, err
		}
		for _, r := range page.Resources {
			if out.has && !hasValue(r, c.Path) {
				continue
			}
			out.resources++
			if out.has {
				continue
			}
			for _, key := range r.Bound() {
				if key.Kind == c.Kind || held[key] {
					continue
				}
				held[key] = true
				if len(out.held) < maxHeld {
					out.held = append(out.held, key)
				} else {
					out.more++
				}
			}
		}
		if !out.has {
			out.resources += len(page.Unreadable)
		}
	}
	return out, nil
}

// pageSize is how many resources are read at once.
const pageSize = 500

// hasValue reports whether a stored resource has a value at a path of the outline. One that does not decode has none.
func hasValue(r *backend.Resource, path string) bool {
	raw, err := backend.DecodeBody(r.Body)
	return err == nil && found(gjson.ParseBytes(raw), strings.Split(path, "."))
}

// found reports whether a JSON value has a member at a path, which may lead through
// lists.
func found(value gjson.Result, path []string) (yes bool) {
	if value.IsArray() {
		value.ForEach(func(_, element gjson.Result) bool {
			yes = found(element, path)
			return !yes
		})
		return yes
	}
	value.ForEach(func(key, member gjson.Result) bool {
		if value.IsObject() && key.Str == path[0] {
			yes = len(path) == 1 || found(member, path[1:])
		}
		return !yes
	})
	return yes
}

// Hidden returns lines about stored data that could not be read or shown any more if the second
// catalogue followed the first: what is gone or breaks, how many resources that concerns, and whose
// deletion they prevent.
func (g Gate) Hidden(ctx context.Context, from, to Outline) (lines []string, err error) {
	for _, c := range Breaking(Diff(from, to)) {
		concerned, err := g.concern(ctx, c)
		if err != nil {
			return nil, err
		}
		if concerned.resources > 0 {
			lines = append(lines, fmt.Sprintf("%s; %s", c, concerned))
		}
	}
	return lines, nil
}
