package main

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sluicegw/sluice/cmd/sluice/command"
	"github.com/sluicegw/sluice/cmd/sluice/gateway"
	"github.com/sluicegw/sluice/cmd/sluice/sdl"
	"github.com/sluicegw/sluice/cmd/sluice/terminal"
	"github.com/sluicegw/sluice/cmd/sluice/version"
)

func versionCommand(std terminal.Streams) *cobra.Command {
	format := "text"
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Long: "Print the version. With -o json: the release, the commit, Go, the platform, the formats in which this release\n" +
			"stores and exports, and the released versions of the API of the embedded catalogue.",
		Example: "  sluice version\n  sluice version -o json",
		Args:    command.Args(0, 0),
		RunE: func(*cobra.Command, []string) error {
			if format == "json" {
				return printBuild(std)
			}
			_, err := fmt.Fprint(std.Out, version.Line())
			return err
		},
	}
	command.AddEnumFlag(cmd, &format, pflag.Flag{
		Name: "output", Shorthand: "o", Usage: "text, or json with all that this build is made of",
	}, "text", "json")
	return cmd
}

// build is what the command version prints as JSON.
type build struct {
	version.Build
	Formats     gateway.Formats `json:"formats"`
	APIVersions []apiVersion    `json:"apiVersions"`
}

// apiVersion is a released version of the API of the embedded catalogue.
type apiVersion struct {
	Version string `json:"version"`
	// State is released, candidate, deprecated or withdrawn.
	State string `json:"state"`
}

func printBuild(std terminal.Streams) error {
	embedded, err := sdl.Read("")
	if err != nil {
		return err
	}
	out := build{Build: version.Current(), Formats: gateway.StoredFormats(), APIVersions: []apiVersion{}}
	for _, v := range embedded.Versions {
		out.APIVersions = append(out.APIVersions, apiVersion{Version: v.String(), State: stateName(v)})
	}
	enc := json.NewEncoder(std.Out)
	enc.SetIndent("", "  ")
	return enc.Encode(out)
}

func stateName(v sdl.Version) string {
	switch {
	case !v.Served():
		return "withdrawn"
	case v.Candidate:
		return "candidate"
	case !v.Deprecated.IsZero():
		return "deprecated"
	}
	return "released"
}
