package command_test

import (
	"testing"

	"github.com/spf13/cobra"

	"github.com/sluicegw/sluice/cmd/sluice/command"
)

func TestDryRun_ReadsTheWordsOfKubectlAndBools(t *testing.T) {
	for text, want := range map[string]bool{"server": true, "true": true, "none": false, "false": false, "0": false} {
		dry := command.DryRun(!want)
		if err := dry.Set(text); err != nil || bool(dry) != want {
			t.Errorf("%s: %v %v", text, dry, err)
		}
		if again := command.DryRun(!want); again.Set(dry.String()) != nil || again != dry {
			t.Errorf("%s is written as %s", text, &dry)
		}
		if dry.Mark() != map[bool]string{true: " (dry run)"}[want] {
			t.Errorf("%s: the mark is %q", text, dry.Mark())
		}
	}
	for _, text := range []string{"client", "", "maybe"} {
		if err := new(command.DryRun).Set(text); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}

func TestDryRun_WithoutAValueIsOfTheServer(t *testing.T) {
	var dry command.DryRun
	cmd := &cobra.Command{Use: "x"}
	dry.Register(cmd)
	if err := cmd.ParseFlags([]string{"--dry-run"}); err != nil || !bool(dry) {
		t.Errorf("%v %v", dry, err)
	}
}
