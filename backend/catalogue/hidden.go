package catalogue

import (
	"context"
	"fmt"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/sluicegw/sluice/backend"
)

// concern counts the stored resources that a change concerns, and the resources whose deletion they prevent.
type concern struct {
	resources int
	// has reports whether resources is the number of resources with the removed field. Otherwise it is the number of
	// all resources of the kind.
	has bool
	// held are resources of other kinds that cannot be deleted because resources of a removed kind refer to them. It
	// has at most maxHeld; more is the number of further ones.
	held []backend.Key
	more int
}

// maxHeld is the maximum length of concern.held.
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

// concern counts what a change concerns. If a kind or field is removed, it reads all resources of the kind.
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

// pageSize is the number of resources that are read at a time.
const pageSize = 500

// hasValue reports whether a stored resource has a value at a path of the outline. It returns false if the resource
// cannot be decoded.
func hasValue(r *backend.Resource, path string) bool {
	raw, err := backend.DecodeBody(r.Body)
	return err == nil && found(gjson.ParseBytes(raw), strings.Split(path, "."))
}

// found reports whether a JSON value has a value at a path, which may lead through lists.
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

// Hidden returns lines about stored data that would no longer be readable or visible if the catalogue to followed the
// catalogue from. Each line names what is removed or breaks, the number of resources concerned, and the resources
// whose deletion they prevent.
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
