package generator

import (
	"strings"
	"text/template"

	"github.com/99designs/gqlgen/codegen/templates"

	"github.com/sluicegw/sluice/backend"
	sdl "github.com/sluicegw/sluice/graph/kinds"
)

// bodyView is what the bodies ask of a kind.
type bodyView struct{ *kindView }

func bodyViews(schema *sdl.Schema) []*bodyView {
	var out []*bodyView
	for _, k := range views(schema) {
		out = append(out, &bodyView{k})
	}
	return out
}

// Go is the Go name of the kind.
func (v *bodyView) Go() string { return templates.ToGo(v.Name) }

// Field is the Go name of the field that holds one resource.
func (v *bodyView) Field() string { return templates.ToGo(v.Singular) }

// DeletedID is the Go name of that field of the payload.
func (v *bodyView) DeletedID() string { return templates.ToGo("deleted" + v.Name + "Id") }

// Type is the Go name of a type that is derived from the kind.
func (v *bodyView) Type(prefix, suffix string) string {
	return templates.ToGo(prefix + v.Name + suffix)
}

// Func is the Go name of a function that is generated for the kind.
func (v *bodyView) Func(suffix string) string { return templates.ToGoPrivate(v.Name + suffix) }

// fieldBody is what the body of a reference's field asks.
type fieldBody struct {
	referenceView
	// To is the kind referred to.
	To *bodyView
	// Of is the expression of the resource that the reference is in, Value that
	// of the name or names.
	Of, Value string
	// Resource is the Go name of the object of the spec that may be absent and
	// holds the reference; empty if the spec does.
	Resource string
}

// references makes the bodies of the fields that references derive.
func (p *plugin) references(tmpl *template.Template, kinds []*bodyView) error {
	byName := map[string]*bodyView{}
	for _, k := range kinds {
		byName[k.Name] = k
	}
	for _, k := range kinds {
		for _, r := range k.Refs {
			if err := p.reference(tmpl, k, &fieldBody{referenceView: referenceView{r}, To: byName[r.Kind]}); err != nil {
				return err
			}
			if r.Inverse == "" {
				continue
			}
			view := struct {
				sdl.Reference
				From *bodyView
			}{r, k}
			if err := p.body(tmpl.Lookup("inverse"), r.Kind+"."+r.Inverse, view); err != nil {
				return err
			}
		}
		for _, s := range []*backend.Shape{k.Spec, k.Status} {
			if err := eachShape(s, func(s *backend.Shape) error { return p.maps(tmpl, s) }); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *plugin) reference(tmpl *template.Template, k *bodyView, b *fieldBody) error {
	b.Of, b.Value = "enclosing(ctx)", "obj."+templates.ToGo(b.name())
	shape := k.Spec
	if b.Owner == k.Name {
		b.Of, b.Value = "obj.Stored", "obj.Spec."+templates.ToGo(b.name())
	}
	steps := strings.Split(b.Path, ".")
	for _, step := range steps[1 : len(steps)-1] {
		shape = shape.Field(step).Shape
	}
	if b.Owner == k.Name && len(steps) == 3 {
		b.Resource = templates.ToGo(steps[1])
		b.Value = "obj.Spec." + b.Resource + "." + templates.ToGo(b.name())
	}
	if b.List {
		return p.body(tmpl.Lookup("many"), b.Owner+"."+b.Field, b)
	}
	if shape.Field(b.name()).Required {
		b.Value = "&" + b.Value
	}
	return p.body(tmpl.Lookup("one"), b.Owner+"."+b.Field, b)
}

// maps makes the bodies of maps, which the API shows as lists.
func (p *plugin) maps(tmpl *template.Template, s *backend.Shape) error {
	for _, f := range s.Fields {
		if f.Type != backend.TypeMap {
			continue
		}
		if err := p.body(tmpl.Lookup("entries"), s.Name+"."+f.Name, templates.ToGo(f.Name)); err != nil {
			return err
		}
	}
	return nil
}

// eachShape calls do for a shape and those in it.
func eachShape(s *backend.Shape, do func(*backend.Shape) error) error {
	if s == nil {
		return nil
	}
	if err := do(s); err != nil {
		return err
	}
	for _, f := range s.Fields {
		if err := eachShape(f.Shape, do); err != nil {
			return err
		}
	}
	return nil
}
