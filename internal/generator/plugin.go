package generator

import (
	"bytes"
	_ "embed" // the template beside this file
	"fmt"
	"strings"
	"text/template"

	"github.com/99designs/gqlgen/codegen"
	"github.com/99designs/gqlgen/codegen/config"
	"github.com/99designs/gqlgen/codegen/templates"
	gqlgen "github.com/99designs/gqlgen/plugin"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/internal/sdl"
)

//go:embed body.go.tmpl
var bodyTemplate string

const (
	backendImport = "github.com/sluicegw/sluice/backend"
	serviceImport = "github.com/sluicegw/sluice/backend/service"
)

// plugin writes the bodies of the resolvers.
type plugin struct {
	schema *sdl.Schema
	// model is the import path of the model.
	model string
	// bodies by "Type.field".
	bodies map[string]string
	// err of a hook that cannot return one.
	err error
}

var (
	_ gqlgen.Plugin              = (*plugin)(nil)
	_ gqlgen.ResolverImplementer = (*plugin)(nil)
)

// Name is part of gqlgen's plugin.
func (p *plugin) Name() string { return "sluicegen" }

// Implement is part of gqlgen's plugin: the body of a resolver. Fields that
// the generator did not derive keep the body that their author wrote.
func (p *plugin) Implement(previous string, f *codegen.Field) string {
	body, ok := p.bodies[f.Object.Name+"."+f.Name]
	if !ok {
		if previous != "" {
			return previous
		}
		return fmt.Sprintf("panic(%q)", f.Object.Name+"."+f.Name+" has no resolver yet")
	}
	for _, path := range []string{backendImport, serviceImport, p.model} {
		if _, err := templates.CurrentImports.Reserve(path); err != nil {
			p.err = err
		}
	}
	return body
}

// render makes the bodies from their template: each block that is named
// "Type.field" is one, with K for the kind's name.
func (p *plugin) render() error {
	tmpl, err := template.New("bodies").Parse(bodyTemplate)
	if err != nil {
		return err
	}
	for _, t := range tmpl.Templates() {
		if !strings.Contains(t.Name(), ".") {
			continue
		}
		if !strings.Contains(t.Name(), "{") {
			if err := p.body(t, t.Name(), nil); err != nil {
				return err
			}
			continue
		}
		for _, k := range p.schema.Kinds {
			name := strings.NewReplacer("{Kind}", k.Name, "{singular}", k.Singular, "{plural}", k.Plural).Replace(t.Name())
			if err := p.body(t, name, &bodyView{kindView{k}}); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *plugin) body(t *template.Template, name string, data any) error {
	var b bytes.Buffer
	if err := t.Execute(&b, data); err != nil {
		return err
	}
	p.bodies[name] = strings.TrimSpace(b.String())
	return nil
}

// bodyView is what the bodies ask of a kind.
type bodyView struct{ kindView }

// Go is the Go name of the kind, Field that of its field in payloads.
func (v *bodyView) Go() string { return templates.ToGo(v.Name) }

// Field is the Go name of the field that holds one resource.
func (v *bodyView) Field() string { return templates.ToGo(v.Singular) }

// DeletedID is the Go name of that field of the payload.
func (v *bodyView) DeletedID() string { return templates.ToGo("deleted" + v.Name + "Id") }

// Type is the Go name of a type that is derived from the kind.
func (v *bodyView) Type(prefix, suffix string) string {
	return templates.ToGo(prefix + v.Name + suffix)
}

// configure tells gqlgen what follows from each kind: which fields have
// resolvers, which inputs tell null from absent, what the model carries besides.
func configure(cfg *config.Config, schema *sdl.Schema) {
	field := func(typ, field string, set func(*config.TypeMapField)) {
		entry := cfg.Models[typ]
		if entry.Fields == nil {
			entry.Fields = map[string]config.TypeMapField{}
		}
		f := entry.Fields[field]
		set(&f)
		entry.Fields[field] = f
		cfg.Models[typ] = entry
	}
	extra := func(typ, name, goType, description string) {
		entry := cfg.Models[typ]
		if entry.ExtraFields == nil {
			entry.ExtraFields = map[string]config.ModelExtraField{}
		}
		entry.ExtraFields[name] = config.ModelExtraField{Type: goType, Description: description}
		cfg.Models[typ] = entry
	}
	resolver := func(f *config.TypeMapField) { f.Resolver = true }
	yes := true
	omittable := func(f *config.TypeMapField) { f.Omittable = &yes }
	for _, k := range schema.Kinds {
		field(k.Name, "manifest", resolver)
		extra(k.Name, "Stored", "*"+backendImport+".Resource", "Stored is what the value was decoded from.")
		if k.Has(backend.VerbList) {
			field(k.Name+"Connection", "totalCount", resolver)
			extra(k.Name+"Connection", "Page", "*"+serviceImport+".Page", "Page is the page itself; it counts when it is asked.")
		}
		if k.Has(backend.VerbWatch) {
			field(k.Name+"Change", k.Singular, resolver)
			extra(k.Name+"Change", "Change", "*"+serviceImport+".Change", "Change is the event itself; its resource is decoded when it is asked for.")
		}
		for verb, prefix := range map[backend.Verb]string{backend.VerbCreate: "Create", backend.VerbUpdate: "Update"} {
			if k.Has(verb) {
				for _, name := range []string{"labels", "annotations", "description"} {
					field(prefix+k.Name+"Input", name, omittable)
				}
			}
		}
	}
}
