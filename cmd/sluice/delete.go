package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
)

func deleteCommand(std streams) *cobra.Command {
	var r remote
	var revision string
	cmd := &cobra.Command{
		Use:     "delete KIND NAME...",
		Short:   "Delete resources",
		Example: "  sluice delete network net-a net-b",
		Args:    usage(cobra.MinimumNArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := r.client(cmd)
			if err != nil {
				return err
			}
			if revision != "" && len(args) > 2 {
				return usageError{errors.New("revision: one resource at a time has a revision")}
			}
			kind, err := c.Kind(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			failed := false
			for _, name := range args[1:] {
				if err := c.Delete(cmd.Context(), kind, r.namespace, name, revision); err != nil {
					explain(std, kind.Name+" "+name, err)
					failed = true
					continue
				}
				_, _ = fmt.Fprintf(std.out, "%s %s DELETED\n", kind.Name, name)
			}
			if failed {
				return errReported
			}
			return nil
		},
	}
	r.register(cmd)
	cmd.Flags().StringVar(&revision, "revision", "", "delete only at this revision")
	return cmd
}
