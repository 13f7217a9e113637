package generator

import (
	_ "embed" // the template beside this file
	"path/filepath"
	"text/template"

	"github.com/sluicegw/sluice/backend"
	sdl "github.com/sluicegw/sluice/graph/kinds"
)

//go:embed connection.go.tmpl
var connectionTemplate string

// writeConnections writes what the bodies of the resolvers share: for each kind
// its connection and orders, and for the model where values come from.
func writeConnections(schema *sdl.Schema, out layout) error {
	tmpl, err := template.New("connections").Parse(connectionTemplate)
	if err != nil {
		return err
	}
	all := catalogueView{Package: filepath.Base(out.model), Model: out.modelImport, Kinds: bodyViews(schema)}
	if err := writeGo(tmpl, "model", filepath.Join(out.model, "zz_origin.go"), all); err != nil {
		return err
	}
	for _, k := range all.Kinds {
		if !k.Has(backend.VerbList) {
			continue
		}
		one := catalogueView{Package: out.resolverPackage, Model: out.modelImport, Kinds: []*bodyView{k}}
		if err := writeGo(tmpl, "connection", filepath.Join(out.resolvers, kindFile(k.Name, "connection.go")), one); err != nil {
			return err
		}
	}
	return nil
}
