package enginetest

import (
	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/query"
)

// place points to those fields of a request that receive the paging arguments; see paging.
type place struct {
	first, last   **int
	after, before **string
}

// paging copies the paging arguments of a connection into the request to which the place points.
func paging(args map[string]any, to place) error {
	for name, to := range map[string]**string{"after": to.after, "before": to.before} {
		if s, ok := args[name].(string); ok {
			*to = &s
		}
	}
	for name, to := range map[string]**int{"first": to.first, "last": to.last} {
		if args[name] == nil {
			continue
		}
		n, err := graphql.UnmarshalInt32(args[name])
		if err != nil {
			return err
		}
		*to = new(int(n))
	}
	return nil
}

// related reads a page of the dependencies, dependents or blockers of a resource.
func (x *execution) related(req query.DependencyRequest, args map[string]any) (any, error) {
	if err := paging(args, place{&req.First, &req.Last, &req.After, &req.Before}); err != nil {
		return nil, err
	}
	req.Targets = true
	pages, errs := x.Service.Reader.Dependencies(x.ctx, []query.DependencyRequest{req})
	return pages[0], errs[0]
}

// ofOther resolves a field of a dependency.
func (x *execution) ofOther(o other, f *ast.Field) any {
	d := &o.page.Dependencies[o.n]
	switch f.Name {
	case "resourceId":
		return kind.GlobalID(d.Key)
	case "kind":
		return d.Key.Kind
	case "namespace":
		if d.Key.Namespace == "" {
			return nil
		}
		return d.Key.Namespace
	case "name":
		return d.Key.Name
	case "path":
		return d.Path
	case "state":
		return string(d.State)
	case "guarded":
		return d.Guarded
	}
	return x.resource(&o.page.Edges[o.n].Resource)
}
