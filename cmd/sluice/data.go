package main

import (
	"encoding/json"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"
)

// dataForm is the flag -o of commands that print data of ours: a table, json or yaml.
type dataForm string

func (f *dataForm) register(cmd *cobra.Command) {
	*f = "table"
	addChoice(cmd, (*string)(f), pflag.Flag{Name: "output", Shorthand: "o", Usage: "table, json or yaml"}, "table", "json", "yaml")
}

// print writes data in the form; table writes the table.
func (f dataForm) print(std streams, data any, table func() error) error {
	switch f {
	case "json":
		enc := json.NewEncoder(std.out)
		enc.SetIndent("", "  ")
		return enc.Encode(data)
	case "yaml":
		return yaml.NewEncoder(std.out).Encode(data)
	}
	return table()
}
