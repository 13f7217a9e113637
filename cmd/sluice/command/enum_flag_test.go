package command_test

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sluicegw/sluice/cmd/sluice/command"
)

func TestAddEnumFlag_KeepsItsDefaultAndNamesWhatIsAccepted(t *testing.T) {
	value := "b"
	cmd := &cobra.Command{Use: "x"}
	command.AddEnumFlag(cmd, &value, pflag.Flag{Name: "which", Usage: "a or b"}, "a", "b")
	if flag := cmd.Flags().Lookup("which"); flag.DefValue != "b" || flag.Value.String() != "b" {
		t.Errorf("the default is %q, the value %q", flag.DefValue, flag.Value)
	}
	if err := cmd.ParseFlags([]string{"--which", "a"}); err != nil || value != "a" {
		t.Errorf("%q %v", value, err)
	}
	if err := cmd.ParseFlags([]string{"--which", "c"}); err == nil || !strings.Contains(err.Error(), "accepted are a, b") || value != "a" {
		t.Errorf("%q %v", value, err)
	}
}
