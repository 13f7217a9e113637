package read

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/sluicegw/sluice/cmd/sluice/exit"
	"github.com/sluicegw/sluice/cmd/sluice/input"
	"github.com/sluicegw/sluice/cmd/sluice/output"
	"github.com/sluicegw/sluice/cmd/sluice/resource"
	"github.com/sluicegw/sluice/graph/client"
)

// listing is a sequence of resources. An error is about one resource, or is the last element.
type listing = iter.Seq2[*client.Resource, error]

// lists returns the listing of each target. If a request is invalid, it returns an error before anything is printed.
func (g *get) lists(ctx context.Context, found *exit.Status) ([]listing, error) {
	out := make([]listing, len(g.targets))
	for i, t := range g.targets {
		var err error
		if out[i], err = g.read(ctx, t); err != nil {
			return nil, err
		}
		if t.OfAll {
			out[i] = g.allowed(t.Kind, out[i])
		}
	}
	if g.sortBy == nil {
		return out, nil
	}
	return out, g.sort(ctx, out, found)
}

// allowed returns a listing with the same resources. If the caller may not list the kind, the new listing is empty and
// adds the kind to g.forbidden.
func (g *get) allowed(k client.Kind, all listing) listing {
	return func(yield func(*client.Resource, error) bool) {
		begun := false
		for r, err := range all {
			if exit.APICode(err) == "FORBIDDEN" && !begun {
				g.forbidden = append(g.forbidden, k.Name)
				return
			}
			begun = true
			if !yield(r, err) {
				return
			}
		}
	}
}

// read returns the listing of one target.
func (g *get) read(ctx context.Context, t resource.Target) (listing, error) {
	manifests, names := g.format.Needs()
	namespace := g.remote.Scope(t.Kind, g.everywhere)
	if len(t.Names) > 0 {
		return fetch(ctx, g.client, t, namespace, manifests), nil
	}
	filter, err := input.ParseFilter(t.Kind, g.filters)
	if err != nil {
		return nil, exit.Usage(err)
	}
	return g.client.List(ctx, client.ListRequest{
		Kind: t.Kind, Namespace: namespace, Selector: g.labels, Filter: filter, Format: manifests, NamesOnly: names &&
			g.sortBy == nil,
	}), nil
}

// sort reads each listing and sorts it. It returns an error if no resource has a value at the path.
func (g *get) sort(ctx context.Context, lists []listing, found *exit.Status) error {
	count, has := 0, false
	for i, all := range lists {
		var read []*client.Resource
		for r, err := range all {
			switch {
			case err != nil && ctx.Err() != nil:
				return errors.New("interrupted")
			case exit.ReportUnreadable(g.std, err):
				g.left = true
				continue
			case err != nil:
				found.Note(g.std, err)
				continue
			case count == output.MaxItems:
				return fmt.Errorf("sort-by: more than %d resources; narrow the list", output.MaxItems)
			}
			count, read = count+1, append(read, r)
		}
		one, err := output.Sort(g.targets[i].Kind, read, *g.sortBy)
		if err != nil {
			return err
		}
		has = has || one
		lists[i] = func(yield func(*client.Resource, error) bool) {
			for _, r := range read {
				if !yield(r, nil) {
					return
				}
			}
		}
	}
	if count > 0 && !has {
		return fmt.Errorf("sort-by: no resource has a value at %q", g.sortBy)
	}
	return nil
}

// fetch returns a listing of the resources with the given names. For a resource that does not exist it has an error,
// and continues.
func fetch(
	ctx context.Context,
	c *client.Client,
	t resource.Target,
	namespace string,
	f client.Format,
) iter.Seq2[*client.Resource, error] {
	return func(yield func(*client.Resource, error) bool) {
		for _, name := range t.Names {
			if !yield(resource.GetExisting(ctx, c, resource.NewRef(t.Kind, namespace, name), f)) {
				return
			}
		}
	}
}
