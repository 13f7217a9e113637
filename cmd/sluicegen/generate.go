package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/99designs/gqlgen/api"
	"github.com/99designs/gqlgen/codegen/config"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"

	"github.com/sluicegw/sluice/graph/kinds"
)

const engineImport = "github.com/sluicegw/sluice/graph/engine"

// generate generates the core of the API. file is a configuration file of gqlgen. The paths in it are relative to the
// working directory, which must be the root of the module, because gqlgen resolves packages from there.
func generate(file string) error {
	cfg, err := config.LoadConfig(file)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	catalogue, err := kinds.Embedded()
	if err != nil {
		return err
	}
	schema, err := catalogue.API()
	if err != nil {
		return err
	}
	names, err := foreign(cfg.Sources)
	if err != nil {
		return err
	}
	var stubs strings.Builder
	for _, name := range names {
		model, err := standIn(schema, name)
		if err != nil {
			return err
		}
		fmt.Fprintf(&stubs, "scalar %s\n", name)
		cfg.Models.Add(name, model)
	}
	if len(names) > 0 {
		cfg.Sources = append(cfg.Sources, &ast.Source{Name: "kinds.graphqls", Input: stubs.String()})
	}
	return api.Generate(cfg)
}

// foreign returns the types that sources use but do not declare.
func foreign(sources []*ast.Source) ([]string, error) {
	doc, err := parser.ParseSchemas(sources...)
	if err != nil {
		return nil, err
	}
	var names []string
	add := func(t *ast.Type) {
		name := t.Name()
		builtIn := slices.Contains([]string{"String", "Int", "Float", "Boolean", "ID"}, name)
		if !builtIn && doc.Definitions.ForName(name) == nil && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, def := range slices.Concat(doc.Definitions, doc.Extensions) {
		for _, f := range def.Fields {
			add(f.Type)
			for _, a := range f.Arguments {
				add(a.Type)
			}
		}
	}
	slices.Sort(names)
	return names, nil
}

// standIn returns the Go type that the core uses for a type of the API that is not part of the core.
func standIn(schema *ast.Schema, name string) (string, error) {
	def := schema.Types[name]
	switch {
	case def == nil:
		return "", fmt.Errorf("schema/core: type %s is not known", name)
	case name == "SafeInt":
		return engineImport + ".SafeInt", nil
	case name == "JSON":
		return "github.com/99designs/gqlgen/graphql.Any", nil
	case name == "Time":
		return engineImport + ".Time", nil
	case def.Kind == ast.InputObject, def.Kind == ast.Enum:
		return engineImport + ".Input", nil
	case strings.HasSuffix(name, "Connection"):
		return engineImport + ".PageRef", nil
	case def.Kind == ast.Interface, slices.Contains(def.Interfaces, "Resource"):
		return engineImport + ".Ref", nil
	}
	return "", fmt.Errorf("schema/core: no field can return a %s; a kind, Resource, Node and their connections are accepted", name)
}
