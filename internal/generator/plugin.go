package generator

import (
	"bytes"
	_ "embed" // the template beside this file
	"fmt"
	"strings"
	"text/template"

	"github.com/99designs/gqlgen/codegen"
	"github.com/99designs/gqlgen/codegen/templates"
	gqlgen "github.com/99designs/gqlgen/plugin"

	sdl "github.com/sluicegw/sluice/graph/kinds"
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
	kinds := bodyViews(p.schema)
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
		for _, k := range kinds {
			name := strings.NewReplacer("{Kind}", k.Name, "{singular}", k.Singular, "{plural}", k.Plural).Replace(t.Name())
			if err := p.body(t, name, k); err != nil {
				return err
			}
		}
	}
	return p.references(tmpl, kinds)
}

func (p *plugin) body(t *template.Template, name string, data any) error {
	var b bytes.Buffer
	if err := t.Execute(&b, data); err != nil {
		return err
	}
	p.bodies[name] = strings.TrimSpace(b.String())
	return nil
}
