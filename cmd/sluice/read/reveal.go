package read

import (
	"encoding/base64"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v4"

	"github.com/sluicegw/sluice/cmd/sluice/command"
	"github.com/sluicegw/sluice/cmd/sluice/exit"
	"github.com/sluicegw/sluice/cmd/sluice/remote"
	"github.com/sluicegw/sluice/cmd/sluice/resource"
	"github.com/sluicegw/sluice/cmd/sluice/terminal"
	"github.com/sluicegw/sluice/graph/client"
)

func RevealCommand(std terminal.Streams) *cobra.Command {
	r := reveal{std: std}
	cmd := &cobra.Command{
		Use:   "reveal KIND NAME | KIND/NAME",
		Short: "Print the write-only values of a resource, like those of a Secret",
		Long: "Print the values that nothing else shows: those of the write-only fields of a sensitive kind, like the data of a\n" +
			"Secret. They are printed in plain text, as a YAML mapping of their keys; bytes that are no text are !!binary.\n" +
			"With --key one value is printed as it is, with nothing around it.",
		Example: "  sluice reveal secret db\n  sluice reveal secret/db --key password\n  sluice reveal secret db --base64",
		Args:    command.Args(1, 2),
		RunE: remote.With(r.remote.Client, func(cmd *cobra.Command, c *client.Client, args []string) error {
			s, err := resource.ReadRef(cmd.Context(), c, r.remote.Namespace, args)
			if err != nil {
				return err
			}
			data, err := c.Reveal(cmd.Context(), s.Kind, s.Namespace, s.Name)
			if err != nil {
				return err
			}
			if data == nil {
				return s.Absent()
			}
			return r.print(data)
		}),
	}
	r.remote.Register(cmd)
	cmd.Flags().StringVar(&r.key, "key", "", "key of the one value to print")
	cmd.Flags().BoolVar(&r.encoded, "base64", false, "print values in base64")
	return cmd
}

// reveal is the state of the command reveal.
type reveal struct {
	std     terminal.Streams
	remote  remote.Flags
	key     string
	encoded bool
}

func (r *reveal) print(data *client.RevealedValues) error {
	values := map[string]string{}
	for _, e := range data.Values {
		raw, err := e.Bytes()
		if err != nil {
			return err
		}
		text := string(raw)
		if r.encoded {
			text = base64.StdEncoding.EncodeToString(raw)
		}
		values[label(data, e)] = text
	}
	if r.key != "" {
		text, ok := values[r.key]
		if !ok {
			return exit.NotFound(fmt.Errorf("%s %q has no value with the key %q", data.Kind, data.Name, r.key))
		}
		if terminal.IsTerminal(r.std.Out) {
			text += "\n"
		}
		_, err := fmt.Fprint(r.std.Out, text)
		return err
	}
	if len(values) == 0 {
		_, _ = fmt.Fprintf(r.std.Err, "%s %q has no values\n", data.Kind, data.Name)
		return nil
	}
	text, err := yaml.Marshal(values)
	if err != nil {
		return fmt.Errorf("%s %q: its values cannot be written", data.Kind, data.Name)
	}
	_, err = r.std.Out.Write(text)
	return err
}

// label returns a name for a value. It is the key of the value if all values are in one map, otherwise the path.
func label(data *client.RevealedValues, e client.RevealedValue) string {
	switch {
	case e.Key == nil:
		return e.Path
	case slices.ContainsFunc(data.Values, func(o client.RevealedValue) bool {
		return o.Key == nil || o.Path != e.Path
	}):
		return e.Path + "." + *e.Key
	}
	return *e.Key
}
