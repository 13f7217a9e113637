package main

import (
	"encoding/json"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v4"

	"github.com/sluicegw/sluice/cmd/sluice/output"
)

// dataForm is the flag -o of commands that print data of ours: a table, json or yaml.
type dataForm string

func (f *dataForm) register(cmd *cobra.Command) {
	*f = "table"
	addChoice(cmd, (*string)(f), pflag.Flag{Name: "output", Shorthand: "o", Usage: "table, json or yaml"}, "table", "json", "yaml")
}

// table is what people are shown of data: texts that a terminal may show.
type table struct {
	titles []string
	rows   [][]string
}

// to returns a function that writes the table.
func (t table) to(std streams) func() error { return func() error { return t.print(std) } }

func (t table) print(std streams) error {
	out := output.NewTable(std.out, t.titles)
	for _, row := range t.rows {
		out.Texts(row...)
	}
	return out.Flush()
}

// print writes data in the form. The form table is what people are shown.
func (f dataForm) print(std streams, data any, people func() error) error {
	switch f {
	case "json":
		enc := json.NewEncoder(std.out)
		enc.SetIndent("", "  ")
		return enc.Encode(data)
	case "yaml":
		text, err := yaml.Marshal(data)
		if err != nil {
			return err
		}
		_, err = std.out.Write(text)
		return err
	}
	return people()
}
