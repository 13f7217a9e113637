package operate

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sluicegw/sluice/backend/catalogue"
	"github.com/sluicegw/sluice/cmd/sluice/command"
	"github.com/sluicegw/sluice/cmd/sluice/exit"
	"github.com/sluicegw/sluice/cmd/sluice/output"
	"github.com/sluicegw/sluice/cmd/sluice/reload"
	"github.com/sluicegw/sluice/cmd/sluice/sdl"
	"github.com/sluicegw/sluice/cmd/sluice/terminal"
	"github.com/sluicegw/sluice/graph/release"
)

func catalogueDiffCommand(std terminal.Streams) *cobra.Command {
	var compared folders
	format := "text"
	failOn := "breaks-clients"
	request := gatewayRequest{req: reload.Request{DryRun: true, AllowBreaking: true}}
	cmd := &cobra.Command{
		Use:   "diff [DIR]",
		Short: "Print what clients and stored resources would notice of a catalogue",
		Long: "Print what clients, manifests and stored resources would notice of a catalogue, compared with another one, the one of this\n" +
			"release or, with --server, --context, --data or --admin-socket, the one of a running gateway, the most severe changes\n" +
			"first: breaking (of what is stored, which a gateway refuses without --allow-breaking), breaks clients, dangerous\n" +
			"(something works, but differently), and safe ones without a mark. A running gateway also counts the stored resources\n" +
			"that would be hidden, or break a stricter rule.\n\n" +
			"--from-version compares the catalogue with one of its released versions, or with --to-version two of them.\n\n" +
			"The exit code is 1 if a change is as severe as --fail-on says, or more.",
		Example: "  sluice catalogue diff ./kinds --from ./kinds-of-yesterday\n  sluice catalogue diff ./kinds --from-version v1.0 --to-version v1.1\n  sluice catalogue diff ./kinds -o json\n  sluice catalogue diff ./kinds --server https://sluice.example.com\n  sluice catalogue diff ./kinds --data ./sluice-data --violations --fail-on breaks-data",
		Args:    command.Args(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			gateway, err := request.named(cmd)
			if err != nil {
				return err
			}
			var found reload.Answer
			switch {
			case gateway && len(args) == 0:
				return exit.Usage(errors.New("server, context, data, admin-socket: name the folder to compare with the gateway's catalogue"))
			case gateway:
				found, err = request.apply(cmd, args[0])
			case request.req.Violations:
				return exit.Usage(errors.New("violations: name a running gateway by --server, --context, --data or --admin-socket: it has the resources"))
			default:
				found.Changes, err = compared.differences(directory(args))
			}
			if err != nil {
				return err
			}
			if format == "json" {
				enc := json.NewEncoder(std.Out)
				enc.SetEscapeHTML(false)
				enc.SetIndent("", "  ")
				err = enc.Encode(findings(found))
			} else {
				printChanges(std, found)
			}
			if err != nil {
				return err
			}
			least := map[string]catalogue.Severity{
				"breaks-data":    catalogue.BreaksStored,
				"breaks-clients": catalogue.BreaksClients,
				"dangerous":      catalogue.Dangerous,
			}[failOn]
			if len(found.Changes) > 0 && found.Changes[0].Severity >= least {
				return exit.ErrReported
			}
			return nil
		},
	}
	command.AddEnumFlag(
		cmd,
		&format,
		pflag.Flag{
			Name:      "output",
			Shorthand: "o",
			Usage:     "text or json: an array of {severity, kind, path, message, place, hidden, violations}",
		},
		"text",
		"json",
	)
	command.AddEnumFlag(
		cmd,
		&failOn,
		pflag.Flag{
			Name:  "fail-on",
			Usage: "the least severe change with exit code 1: breaks-data, breaks-clients or dangerous",
		},
		"breaks-data",
		"breaks-clients",
		"dangerous",
	)
	cmd.Flags().BoolVar(
		&request.req.Violations,
		"violations",
		false,
		"list all stored resources that break a stricter rule, instead of the first of each kind",
	)
	compared.register(cmd)
	request.registerSocket(cmd)
	request.registerNetwork(cmd)
	return cmd
}

// folders has the flags for comparing two catalogues without a gateway.
type folders struct {
	from, fromVersion, toVersion string
}

// folderFlags are the names of the flags of [folders].
var folderFlags = []string{"from", "from-version", "to-version"}

func (f *folders) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.from, "from", "", "folder of the catalogue to compare with; empty: the built-in kinds")
	cmd.Flags().StringVar(
		&f.fromVersion,
		"from-version",
		"",
		"released version to compare with, like v1.0, instead of a folder",
	)
	cmd.Flags().StringVar(
		&f.toVersion,
		"to-version",
		"",
		"released version to look at, like v1.1; empty: the catalogue as it is",
	)
}

// differences returns the changes from the catalogue that the flags name to the catalogue in dir, or to one of its
// released versions.
func (f *folders) differences(dir string) ([]catalogue.Difference, error) {
	switch {
	case f.from != "" && f.fromVersion != "":
		return nil, exit.Usage(errors.New("from, from-version: give one of them"))
	case f.toVersion != "" && f.fromVersion == "":
		return nil, exit.Usage(errors.New("to-version: name the version to compare with by --from-version"))
	}
	is, err := sdl.Read(dir)
	if err != nil {
		return nil, err
	}
	if f.fromVersion == "" {
		was, err := sdl.Read(f.from)
		if err != nil {
			return nil, err
		}
		return is.Changes(was), nil
	}
	was, err := releasedVersion(is, "from-version", f.fromVersion)
	if err != nil {
		return nil, err
	}
	if f.toVersion != "" {
		if is, err = releasedVersion(is, "to-version", f.toVersion); err != nil {
			return nil, err
		}
	}
	return is.Changes(was), nil
}

// releasedVersion returns the catalogue as it was when one of its versions was released. flag is the flag that names
// the version, for errors.
func releasedVersion(of sdl.Catalogue, flag, name string) (sdl.Catalogue, error) {
	number, err := release.ParseVersion(name)
	if err != nil {
		return sdl.Catalogue{}, exit.Usage(fmt.Errorf("%s: %w", flag, err))
	}
	out, err := of.Released(number)
	if wrong, ok := errors.AsType[exit.UsageError](err); ok {
		return sdl.Catalogue{}, exit.Usage(fmt.Errorf("%s: %w", flag, wrong))
	}
	return out, err
}

// finding is a change of a catalogue, with its effect on the resources that a running gateway has stored.
type finding struct {
	catalogue.Difference
	// Hidden is a line about stored resources that the change would hide or make unreadable, and about other resources
	// that could then no longer be deleted.
	Hidden string `json:"hidden,omitempty"`
	// Violations are lines about stored resources of the kind that violate stricter rules. If a kind has several
	// changes, only the first of them has Violations.
	Violations []string `json:"violations,omitempty"`
}

// findings returns the changes in an answer, with their effects.
func findings(found reload.Answer) []finding {
	out := make([]finding, len(found.Changes))
	of := map[string]*finding{} // the first of each kind
	for i, c := range found.Changes {
		out[i].Difference = c
		if of[c.Kind] == nil {
			of[c.Kind] = &out[i]
		}
		c.Place = ""
		for _, line := range found.Hidden {
			if rest, ok := strings.CutPrefix(line, c.String()+"; "); ok {
				out[i].Hidden = rest
			}
		}
	}
	for _, line := range found.Tightened {
		kind := line[:strings.IndexAny(line+":", ":/")]
		if first := of[kind]; first != nil {
			first.Violations = append(first.Violations, line)
		}
	}
	return out
}

// printChanges prints the changes, with their effects on the gateway, its clients and stored resources.
func printChanges(std terminal.Streams, found reload.Answer) {
	for _, c := range found.Changes {
		_, _ = fmt.Fprintln(std.Out, output.Printable(c.String()))
	}
	for _, line := range found.Hidden {
		_, _ = fmt.Fprintln(std.Out, output.Printable("hidden: "+line))
	}
	if len(found.Rebinding) > 0 {
		_, _ = fmt.Fprintf(std.Out, "rebinding: the gateway is taking over the references of %s; until that is done, deletions that new guards may concern wait\n",
			output.Printable(strings.Join(found.Rebinding, ", ")))
	}
	for _, line := range found.Tightened {
		_, _ = fmt.Fprintln(std.Out, output.Printable(line))
	}
}
