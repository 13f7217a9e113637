package main

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"
)

// dataForm is the flag -o of commands that print data of ours: a table, json or yaml.
type dataForm string

func (f *dataForm) register(cmd *cobra.Command) {
	cmd.Flags().StringVarP((*string)(f), "output", "o", "table", "table, json or yaml")
	completeFlag(cmd, "output", cobra.FixedCompletions([]string{"table", "json", "yaml"}, cobra.ShellCompDirectiveNoFileComp))
}

// check reports whether the form is accepted.
func (f dataForm) check() error {
	if f != "table" && f != "json" && f != "yaml" {
		return usageError{fmt.Errorf("output: %q; accepted are table, json, yaml", string(f))}
	}
	return nil
}

// print writes data in the form; table writes the table.
func (f dataForm) print(std streams, data any, table func() error) error {
	if err := f.check(); err != nil {
		return err
	}
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
