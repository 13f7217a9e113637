package kinds_test

import (
	"strings"
	"testing"

	"github.com/sluicegw/sluice/graph/kinds"
)

// Everything that a person meets in GraphiQL says what it is.
func TestEverythingInTheProductsSchemaIsDescribed(t *testing.T) {
	catalogue, err := kinds.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	api, err := catalogue.API()
	if err != nil {
		t.Fatal(err)
	}
	described := func(where, text string) {
		if strings.TrimSpace(text) == "" {
			t.Errorf("%s has no description", where)
		}
	}
	for name, def := range api.Types {
		if def.BuiltIn {
			continue
		}
		described(name, def.Description)
		for _, f := range def.Fields {
			if strings.HasPrefix(f.Name, "__") {
				continue
			}
			described(name+"."+f.Name, f.Description)
			for _, a := range f.Arguments {
				described(name+"."+f.Name+"("+a.Name+")", a.Description)
			}
		}
		for _, v := range def.EnumValues {
			described(name+"."+v.Name, v.Description)
		}
	}
}
