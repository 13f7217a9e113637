package write

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sluicegw/sluice/backend/manifest"
	"github.com/sluicegw/sluice/cmd/sluice/document"
	"github.com/sluicegw/sluice/cmd/sluice/exit"
	"github.com/sluicegw/sluice/cmd/sluice/input"
	"github.com/sluicegw/sluice/cmd/sluice/remote"
	"github.com/sluicegw/sluice/cmd/sluice/resource"
	"github.com/sluicegw/sluice/cmd/sluice/terminal"
	"github.com/sluicegw/sluice/graph/client"
)

func PatchCommand(std terminal.Streams) *cobra.Command {
	var r remote.Flags
	var text, file, form string
	m := modification{writing: writing{std: std}, format: client.JSON}
	cmd := &cobra.Command{
		Use:   "patch KIND NAME | KIND/NAME  (-p PATCH | --patch-file FILE|-)",
		Short: "Change a resource by a merge patch",
		Long: `Change a resource by a merge patch (RFC 7386) of its manifest, in YAML or JSON: objects merge,
lists are replaced, null removes. metadata.revision and metadata.uid in a patch say what the
resource is to have before; otherwise it is left alone.`,
		Example: `  sluice patch network net-a -p '{"spec": {"resource": {"mtu": 9000}}}'
  sluice patch network/net-a -p 'metadata: {description: null}' --dry-run
  sluice patch network net-a --patch-file patch.yaml --revision 1-7`,
		RunE: remote.With(r.Writer, func(cmd *cobra.Command, c *client.Client, args []string) (err error) {
			m.client = c
			switch {
			case form != "merge":
				return exit.Usage(fmt.Errorf("type: %q; merge is accepted", form))
			case cmd.Flags().Changed("patch") == (file != ""):
				return exit.Usage(errors.New("patch: give the patch with -p PATCH or with --patch-file FILE"))
			case file != "":
				text, err = document.Interruptible(cmd.Context(), func() (string, error) {
					text, err := readText(file, std.In)
					if err != nil {
						err = fmt.Errorf("patch: %w", err)
					}
					return text, err
				})
				if err != nil {
					return err
				}
			}
			text, before, err := input.CutPrecondition(text)
			switch {
			case err != nil:
				return exit.Usage(err)
			case m.revision != "" && before.Revision != "" && m.revision != before.Revision:
				return exit.Usage(fmt.Errorf("revision: %q, and the patch says %q; leave one of them out",
					m.revision, before.Revision))
			case before.Revision != "":
				m.revision = before.Revision
			}
			s, err := resource.ReadRef(cmd.Context(), c, r.Namespace, args)
			if err != nil {
				return err
			}
			if err := mergesUnseen(s, text); err != nil {
				return err
			}
			m.uid = before.UID
			m.write = func(ctx context.Context, s resource.Ref, was *client.Resource, revision string) (writeResult, error) {
				next, err := input.MergePatch(was.Manifest, text)
				if err == nil {
					err = sameResource(was.Manifest, next)
				}
				if err != nil {
					return writeResult{}, err
				}
				return m.apply(ctx, s, next, revision)
			}
			return m.all(cmd.Context(), []resource.Ref{s}, false)
		}),
	}
	r.Register(cmd)
	m.register(cmd)
	m.registerRevision(cmd)
	cmd.Flags().StringVarP(&text, "patch", "p", "", "the patch")
	cmd.Flags().StringVar(&file, "patch-file", "", "file with the patch, - for standard input")
	cmd.Flags().StringVar(&form, "type", "merge", "kind of patch; merge is the only one")
	return cmd
}

// mergesUnseen returns an error for a patch that merges an object into a write-only field. The other entries of the
// field cannot be read, and would be lost.
func mergesUnseen(s resource.Ref, patch string) error {
	for _, f := range s.Kind.Fields {
		path := strings.Split(f.Path, ".")
		if f.ManifestAt != "" {
			path = []string{f.ManifestAt}
		}
		if !f.WriteOnly || f.MergeInto != "" || !input.Merges(patch, path...) {
			continue
		}
		at := strings.Join(path, ".")
		advice := "the mutation patch" + s.Kind.Name + " merges into it, and an apply of a manifest with all of it replaces it"
		for _, from := range s.Kind.Fields {
			if from.MergeInto != "" && parent(from.Path)+from.MergeInto == f.Path {
				advice = fmt.Sprintf("use %s, whose entries are merged into it, or apply a manifest with all of it",
					cmp.Or(from.ManifestAt, from.Path))
			}
		}
		return exit.Usage(fmt.Errorf(
			"patch: %s is write-only, so what it has besides is not known here and would be lost; %s",
			at,
			advice,
		))
	}
	return nil
}

// parent returns the path of the object that contains a field, followed by a dot.
func parent(path string) string { return path[:strings.LastIndex(path, ".")+1] }

// readText reads a file, or stdin for the name "-". The size is limited as for a manifest.
func readText(path string, stdin io.Reader) (string, error) {
	in := stdin
	if path != input.Standard {
		f, err := os.Open(path)
		if err != nil {
			return "", err
		}
		defer func() { _ = f.Close() }()
		in = f
	}
	raw, err := io.ReadAll(io.LimitReader(in, manifest.MaxBytes+1))
	if err == nil && len(raw) > manifest.MaxBytes {
		err = fmt.Errorf("%s has more than %d bytes", path, manifest.MaxBytes)
	}
	return string(raw), err
}
