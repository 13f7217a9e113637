package generator

import (
	"bytes"
	_ "embed" // the template beside this file
	"go/format"
	"path/filepath"
	"slices"
	"text/template"

	"github.com/99designs/gqlgen/plugin/modelgen"

	"github.com/sluicegw/sluice/backend"
	sdl "github.com/sluicegw/sluice/graph/kinds"
)

//go:embed enum.go.tmpl
var enumTemplate string

// takeEnums has gqlgen leave out the enums: ours hold the stored form.
func (p *plugin) takeEnums(out layout) modelgen.BuildMutateHook {
	return func(b *modelgen.ModelBuild) *modelgen.ModelBuild {
		var enums []*enumView
		for _, e := range b.Enums {
			enums = append(enums, p.enum(e))
		}
		b.Enums = nil
		if err := writeEnums(filepath.Join(out.model, "zz_enums.go"), b.PackageName, enums); err != nil {
			p.err = err
		}
		return b
	}
}

// enumView is an enum as the template sees it.
type enumView struct {
	Name, Description string
	Values            []enumValueView
}

// Renamed says whether any value is stored under another name.
func (e *enumView) Renamed() bool {
	return slices.ContainsFunc(e.Values, func(v enumValueView) bool { return v.Name != v.Stored })
}

type enumValueView struct {
	backend.EnumValue
	Go string
}

func (p *plugin) enum(e *modelgen.Enum) *enumView {
	out := &enumView{Name: e.Name, Description: e.Description}
	stored := p.storedForms(e.Name)
	for _, v := range e.Values {
		form := v.Name
		if s, ok := stored[v.Name]; ok {
			form = s
		}
		out.Values = append(out.Values, enumValueView{
			EnumValue: backend.EnumValue{Name: v.Name, Stored: form, Description: v.Description},
			Go:        sdl.EnumConstant(e.Name, v.Name),
		})
	}
	return out
}

// storedForms finds an enum in the specs that use it.
func (p *plugin) storedForms(name string) map[string]string {
	var find func(s *backend.Shape) *backend.Enum
	find = func(s *backend.Shape) *backend.Enum {
		for _, f := range s.Fields {
			if f.Enum != nil && f.Enum.Name == name {
				return f.Enum
			}
			if f.Shape != nil {
				if e := find(f.Shape); e != nil {
					return e
				}
			}
		}
		return nil
	}
	out := map[string]string{}
	for _, k := range views(p.schema) {
		if name == k.Name+"OrderField" {
			for _, o := range k.Orders() {
				out[o.Name] = o.Field
			}
			return out
		}
		if e := find(k.Spec); e != nil {
			for _, v := range e.Values {
				out[v.Name] = v.Stored
			}
		}
	}
	return out
}

func writeEnums(file, pkg string, enums []*enumView) error {
	tmpl, err := template.New("enums").Funcs(template.FuncMap{"comment": comment}).Parse(enumTemplate)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := tmpl.Execute(&b, map[string]any{"Package": pkg, "Enums": enums}); err != nil {
		return err
	}
	code, err := format.Source(b.Bytes())
	if err != nil {
		return err
	}
	return writeFile(file, goHeader+"\n"+string(code))
}
