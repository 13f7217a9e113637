package config_test

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/sluicegw/sluice/cmd/sluice/config"
)

// TestRegister_SaysAComputedDefaultOnce: the help of a flag describes a computed default, and pflag prints none.
func TestRegister_SaysAComputedDefaultOnce(t *testing.T) {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	config.Register(flags, config.NewGateway().Settings())
	usage := flags.FlagUsages()
	if !strings.Contains(usage, "; by default ") {
		t.Error("no default is computed")
	}
	for line := range strings.Lines(usage) {
		if strings.Contains(line, "(default )") || strings.Contains(line, "; by default ") && strings.Contains(line, "(default ") {
			t.Error(line)
		}
	}
}
