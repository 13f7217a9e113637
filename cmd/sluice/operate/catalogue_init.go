package operate

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/sluicegw/sluice/cmd/sluice/command"
	"github.com/sluicegw/sluice/cmd/sluice/exit"
	"github.com/sluicegw/sluice/cmd/sluice/output"
	"github.com/sluicegw/sluice/cmd/sluice/terminal"
	"github.com/sluicegw/sluice/graph/kinds"
)

// The files of a new catalogue, in addition to directives.graphql. .graphqlrc is for editors. The gateway serves the
// folder kinds.
const (
	editorConfig = `# For editors: what the files of the catalogue mean.
schema:
  - directives.graphql
  - kinds/*.graphqls
`
	firstKind = `"A team."
type Team @resource(plural: "teams", group: "example.org", version: "v1", scope: NAMESPACED) {
  spec: TeamSpec!
}

type TeamSpec {
  "What the team is for."
  purpose: String @constraint(maxLength: 200) @filterable
  size: Int @constraint(min: 1, max: 100) @default(value: 1)
}
`
)

func catalogueInitCommand(std terminal.Streams) *cobra.Command {
	return &cobra.Command{
		Use:   "init DIR",
		Short: "Write a folder for a new catalogue, with a first kind and what editors need",
		Long: "Write a folder for a new catalogue: kinds/team.graphqls is a first kind, directives.graphql has the directives and\n" +
			"types that kinds may use, and .graphqlrc tells editors of both. A gateway serves the folder kinds in it.\n\n" +
			"Files that are there stay as they are, but directives.graphql is renewed: run it again after an update of sluice.",
		Example: "  sluice catalogue init ./shop\n  sluice serve --catalogue ./shop/kinds",
		Args:    command.Args(1, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			vocabulary, err := kinds.Vocabulary()
			if err != nil {
				return err
			}
			dir := args[0]
			folder := filepath.Join(dir, "kinds")
			if err := os.MkdirAll(folder, 0o777); err != nil {
				return exit.Usage(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "directives.graphql"), []byte(vocabulary), 0o666); err != nil {
				return exit.Usage(err)
			}
			files := map[string]string{filepath.Join(dir, ".graphqlrc"): editorConfig}
			there, err := filepath.Glob(filepath.Join(folder, "*.graphqls"))
			if err == nil && len(there) == 0 {
				files[filepath.Join(folder, "team.graphqls")] = firstKind
			}
			for path, text := range files {
				if err := writeNew(path, text); err != nil {
					return exit.Usage(err)
				}
			}
			_, err = fmt.Fprintf(std.Out, "sluice serve --catalogue %s serves the kinds in it\n",
				output.Printable(folder))
			return err
		},
	}
}

// writeNew writes a file unless it exists.
func writeNew(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}
