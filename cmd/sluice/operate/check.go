package operate

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/state"
	"github.com/sluicegw/sluice/cmd/sluice/command"
	"github.com/sluicegw/sluice/cmd/sluice/config"
	"github.com/sluicegw/sluice/cmd/sluice/exit"
	"github.com/sluicegw/sluice/cmd/sluice/gateway"
	"github.com/sluicegw/sluice/cmd/sluice/output"
	"github.com/sluicegw/sluice/cmd/sluice/terminal"
)

// CheckCommand returns the command that reads a whole store and reports what is damaged or missing in it.
func CheckCommand(std terminal.Streams) *cobra.Command {
	settings := config.NewGateway()
	format := "text"
	cmd := &cobra.Command{
		Use:   "check STORE|URL",
		Short: "Read all of a store and name what is damaged or missing",
		Long: "Read all of a store: each record, what leads to it, and the log of changes. It names what is damaged or missing, one\n" +
			"a line, and then exits with 1. Nothing is changed.\n\n" +
			"STORE is the folder of an embedded store that no gateway has open, its file, or a copy of it. URL is a Redis, as for\n" +
			"serve --redis; gateways may use it meanwhile.",
		Example: "  sluice check ./sluice-data\n  sluice check backup.db -o json\n  sluice check redis://127.0.0.1:6379",
		Args:    command.Args(1, 1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if err := command.LoadSettings(cmd); err != nil {
				return err
			}
			store, err := gateway.OpenReader(cmd.Context(), args[0], settings.Store, zap.NewNop())
			if err != nil {
				return err
			}
			defer func() { _ = store.Close() }()
			report := checkReport{std: std, json: format == "json"}
			read, err := store.Verify(cmd.Context(), backend.Verification{Found: report.found, Progress: report.progress})
			if err != nil {
				return err
			}
			if errors.Is(state.Whole(cmd.Context(), store), state.ErrBegun) {
				read.Damaged++
				report.found(backend.Damage{Part: backend.PartHead, Problem: "a bootstrap of the store has begun and not ended, so it does not have everything"})
			}
			return report.end(read)
		},
	}
	// The settings of Redis, except the URL, which is an argument, and those that only concern writes.
	config.Register(cmd.Flags(), slices.DeleteFunc(settings.Settings(), func(s config.Setting) bool {
		return !strings.HasPrefix(s.Name, "redis-") || s.Name == "redis-durability"
	}))
	command.AddEnumFlag(cmd, &format, pflag.Flag{
		Name: "output", Shorthand: "o", Usage: "text, or json: an object a line for each damage, and one for what was read",
	}, "text", "json")
	return cmd
}

// checkReport prints the results of a check.
type checkReport struct {
	std  terminal.Streams
	json bool
	err  error // of the first write that failed
}

// damageLine is the JSON of one damage.
type damageLine struct {
	Part      string `json:"part"`
	Kind      string `json:"kind,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	Revision  string `json:"revision,omitempty"`
	Problem   string `json:"problem"`
}

// readLine is the JSON of the last line, which counts what was read.
type readLine struct {
	Records int64 `json:"records"`
	Entries int64 `json:"entries"`
	Changes int64 `json:"changes"`
	Damaged int64 `json:"damaged"`
}

func (r *checkReport) found(d backend.Damage) {
	if r.json {
		r.line(damageLine{
			Part: d.Part, Kind: d.Key.Kind, Namespace: d.Key.Namespace, Name: d.Key.Name,
			Revision: d.Revision.String(), Problem: d.Problem,
		})
		return
	}
	r.text(output.Printable(d.String()))
}

func (r *checkReport) progress(read backend.Verified) {
	r.std.Show(fmt.Sprintf("%d records, %d index entries, %d changes ...", read.Records, read.Entries, read.Changes))
}

// end prints what was read. It returns an error if the store has any damage.
func (r *checkReport) end(read backend.Verified) error {
	switch {
	case r.json:
		r.line(readLine(read))
	case read.Damaged == 0:
		r.text(fmt.Sprintf("%d records, %d index entries and %d changes were read: nothing is damaged", read.Records, read.Entries, read.Changes))
	default:
		r.text(fmt.Sprintf("%d records, %d index entries and %d changes were read: %d are damaged or missing", read.Records, read.Entries, read.Changes, read.Damaged))
	}
	if r.err == nil && read.Damaged > 0 {
		return exit.ErrReported
	}
	return r.err
}

func (r *checkReport) line(data any) {
	raw, err := json.Marshal(data)
	if err != nil && r.err == nil {
		r.err = err
	}
	r.text(string(raw))
}

func (r *checkReport) text(line string) {
	if _, err := fmt.Fprintln(r.std.Out, line); err != nil && r.err == nil {
		r.err = err
	}
}
