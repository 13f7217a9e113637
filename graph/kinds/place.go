package kinds

import (
	"strconv"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/sluicegw/sluice/backend/descriptor"
)

// Places are the places of declarations in the files of a catalogue, in the form "file:line".
type Places struct {
	// Folder is the folder of the files, as it was given.
	Folder string
	// Fields maps the path of a field with stored names, such as "Network.spec.cidr", to its place. Kinds have their
	// names as path.
	Fields map[string]string
	// Types maps the path of a field whose type is an object or enum to the place of that type.
	Types map[string]string
}

// Places returns the places of all kinds. folder is the folder from which the catalogue was read.
func (s *Schema) Places(folder string) Places {
	p := placing{
		types:  map[string]*ast.Definition{},
		Places: Places{Folder: folder, Fields: map[string]string{}, Types: map[string]string{}},
	}
	for _, d := range s.Documents {
		for _, def := range d.Definitions {
			p.types[def.Name] = def
		}
	}
	for i := range s.Kinds {
		k := &s.Kinds[i]
		p.Fields[k.Name] = lineOf(k.Definition.Position)
		for name, part := range map[string]*descriptor.Shape{"spec": k.Spec, "status": k.Status} {
			if f := k.Definition.Fields.ForName(name); f != nil {
				p.field(k.Name+"."+name, f, part)
			}
		}
	}
	return p.Places
}

// placing is the state of [Schema.Places].
type placing struct {
	Places
	types map[string]*ast.Definition
}

// field adds a field and the fields below it.
func (p *placing) field(path string, f *ast.FieldDefinition, s *descriptor.Shape) {
	p.Fields[path] = lineOf(f.Position)
	def := p.types[f.Type.Name()]
	if def == nil {
		return
	}
	p.Types[path] = lineOf(def.Position)
	if s == nil {
		return
	}
	for i := range s.Fields {
		below := &s.Fields[i]
		if f := def.Fields.ForName(below.InAPI()); f != nil {
			p.field(path+"."+below.Name, f, below.Shape)
		}
	}
}

func lineOf(at *ast.Position) string {
	if at == nil || at.Src == nil {
		return ""
	}
	return at.Src.Name + ":" + strconv.Itoa(at.Line)
}
