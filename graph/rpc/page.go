package rpc

import (
	"context"
	"strconv"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/backend/service/query"
)

// pageBytes is the size from which a page gets no more resources. By default, clients of gRPC accept at most 4 MiB.
const pageBytes = 3 << 20

// chargedBytes is the number of bytes of a page that are encoded before they are charged.
const chargedBytes = 16 << 10

// pageWriter writes the answer of a list, one resource after the other.
type pageWriter struct {
	kind *kind
	json bool
	// resources and token are the fields of the answer.
	resources, token protoreflect.FieldDescriptor
	out              encoder
	// sent is the number of resources in out. one encodes a resource before it is converted to JSON.
	sent int
	one  encoder
}

// page returns the answer with a page. The last resources are left out if the answer would be too large.
func (h *Handler) page(ctx context.Context, r *request, page *query.Page) (*answer, error) {
	fields := r.method.Output().Fields()
	p := pageWriter{
		kind: r.kind, json: r.json,
		resources: fields.ByName(r.kind.ResourcesField), token: fields.ByName("next_page_token"),
	}
	charged := 0
	for i := range page.Edges {
		added, err := p.add(ctx, &page.Edges[i].Resource)
		if err != nil {
			return nil, err
		}
		if !added {
			break
		}
		if len(p.out.data)-charged < chargedBytes {
			continue
		}
		if err := h.cfg.Edge.Answer(ctx, len(p.out.data)-charged); err != nil {
			return nil, err
		}
		charged = len(p.out.data)
	}
	more := p.sent < len(page.Edges)
	if !more {
		var err error
		if more, err = page.PageInfo().HasNextPage(ctx); err != nil {
			return nil, err
		}
	}
	token := ""
	if more && p.sent > 0 {
		token = page.Cursor(p.sent - 1)
	}
	p.end(token)
	return &answer{p.out.data}, h.cfg.Edge.Answer(ctx, len(p.out.data)-charged)
}

// add adds a resource, and reports whether the page had room for it.
func (p *pageWriter) add(ctx context.Context, of *query.Resource) (bool, error) {
	if err := budget.From(ctx).Spend(budget.Objects, 1); err != nil {
		return false, err
	}
	before := len(p.out.data)
	if p.json {
		if err := p.addJSON(ctx, of); err != nil {
			return false, err
		}
	} else {
		at := p.out.begin(p.resources)
		p.kind.resource(&p.out, of.Stored, of.Body, "")
		p.out.end(at)
	}
	if len(p.out.data) > pageBytes && p.sent > 0 {
		p.out.data = p.out.data[:before]
		return false, nil
	}
	p.sent++
	return true, nil
}

func (p *pageWriter) addJSON(ctx context.Context, of *query.Resource) error {
	p.one.data = p.one.data[:0]
	p.kind.resource(&p.one, of.Stored, of.Body, "")
	text, err := toJSON(ctx, p.kind.Resource, p.one.data)
	if err != nil {
		return err
	}
	if p.sent == 0 {
		p.out.data = append(p.out.data, `{"`+p.resources.JSONName()+`":[`...)
	} else {
		p.out.data = append(p.out.data, ',')
	}
	p.out.data = append(p.out.data, text...)
	return nil
}

// end ends the page. token is empty if it is the last one.
func (p *pageWriter) end(token string) {
	switch {
	case !p.json:
		p.out.text(p.token, token)
		return
	case p.sent == 0:
		p.out.data = append(p.out.data, '{')
	default:
		p.out.data = append(p.out.data, ']')
	}
	if token != "" {
		p.out.data = append(p.out.data, `,"`+p.token.JSONName()+`":`...)
		p.out.data = strconv.AppendQuote(p.out.data, token) // it has letters and digits
	}
	p.out.data = append(p.out.data, '}')
}
