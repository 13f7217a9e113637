package command

import (
	"encoding/json"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v4"

	"github.com/sluicegw/sluice/cmd/sluice/output"
	"github.com/sluicegw/sluice/cmd/sluice/terminal"
)

// OutputFlag is the flag -o of commands that do not print resources. Its values are table, json and yaml.
type OutputFlag string

func (f *OutputFlag) Register(cmd *cobra.Command) {
	*f = "table"
	AddEnumFlag(
		cmd,
		(*string)(f),
		pflag.Flag{Name: "output", Shorthand: "o", Usage: "table, json or yaml"},
		"table",
		"json",
		"yaml",
	)
}

// Table is data in the form for people. Its texts must be safe for a terminal, see [output.Printable].
type Table struct {
	Titles []string
	Rows   [][]string
}

// To returns a function that prints the table.
func (t Table) To(std terminal.Streams) func() error { return func() error { return t.Print(std) } }

func (t Table) Print(std terminal.Streams) error {
	out := output.NewTable(std.Out, t.Titles)
	for _, row := range t.Rows {
		out.Texts(row...)
	}
	return out.Flush()
}

// Print prints data as JSON or YAML. If the value of the flag is table, it calls the function people instead, which
// must print the table.
func (f OutputFlag) Print(std terminal.Streams, data any, people func() error) error {
	switch f {
	case "json":
		enc := json.NewEncoder(std.Out)
		enc.SetIndent("", "  ")
		return enc.Encode(data)
	case "yaml":
		text, err := yaml.Marshal(data)
		if err != nil {
			return err
		}
		_, err = std.Out.Write(text)
		return err
	}
	return people()
}
