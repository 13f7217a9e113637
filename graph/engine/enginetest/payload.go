package enginetest

import (
	"strings"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/query"
)

// preview is the resource that a dry run would have stored.
type preview struct{ *resource }

// payload is the result of a mutation. id is the clientMutationId of the request.
type payload struct {
	*service.Written
	id any
}

func (x *execution) ofPayload(p *payload, f *ast.Field, args map[string]any) (any, error) {
	switch f.Name {
	case "clientMutationId":
		return p.id, nil
	case "warnings":
		out := []any{}
		for _, w := range p.Warnings {
			path := append([]any{"input"}, failure.Steps(x.kind(p.Resource.Stored.Kind).APIPath(w.Path))...)
			out = append(out, map[string]any{"code": string(w.Code), "message": w.Message, "path": path, "field": failure.Text(path)})
		}
		return out, nil
	case "outcome":
		return string(p.Outcome), nil
	case "created":
		return p.Outcome == service.Created, nil
	case "dryRun":
		return p.DryRun, nil
	case "state":
		return string(p.Deletion), nil
	case "blockedBy":
		req := query.DependencyRequest{Relation: query.BlockedBy, ChangeCursor: true}
		req.None = p.Resource == nil || p.Deletion == service.Deleted
		if p.Resource != nil {
			req.Key = p.Resource.Stored.Key
		}
		return x.related(req, args)
	}
	if strings.HasPrefix(f.Name, "deleted") && strings.HasSuffix(f.Name, "Id") {
		if p.DryRun || p.Resource == nil || p.Deletion != service.Deleted {
			return nil, nil
		}
		return kind.GlobalID(p.Resource.Stored.Key), nil
	}
	switch r := x.resource(p.Resource); {
	case f.Name == "preview" && (!p.DryRun || r == nil), f.Name != "preview" && p.DryRun:
		return nil, nil
	case f.Name == "preview":
		return preview{r.(*resource)}, nil
	case r != nil || p.Deletion != "":
		return r, nil
	}
	return nil, failure.Of(backend.ErrUnreadable, p.Resource.Stored.Key)
}

func (x *execution) ofPreview(of preview, f *ast.Field, args map[string]any) (any, error) {
	switch f.Name {
	case "uid":
		if of.stored.UID == "" {
			return nil, nil
		}
		return of.stored.UID, nil
	case "namespace", "name", "generation":
		return (&metadata{of.resource}).field(f.Name), nil
	}
	return x.ofResource(of.resource, f, args)
}
