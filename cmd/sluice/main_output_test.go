package main

import (
	"strings"
	"testing"

	"github.com/sluicegw/sluice/cmd/sluice/command"
	"github.com/sluicegw/sluice/cmd/sluice/commandtest"
	"github.com/sluicegw/sluice/cmd/sluice/exit"
	"github.com/sluicegw/sluice/cmd/sluice/terminal"
)

func TestRun_FailsIfTheOutputCannotBeWritten(t *testing.T) {
	commandtest.FreshContexts(t)
	for _, args := range [][]string{{"version"}, {"catalogue", "check"}, {"catalogue", "print"}} {
		var errs strings.Builder
		code := command.Run(t.Context(), newRoot, args, terminal.Streams{In: strings.NewReader(""), Out: commandtest.FullDisk{}, Err: &errs})
		if code != exit.CodeFail || strings.Count(errs.String(), "no space left") != 1 {
			t.Errorf("%v: exit %d %s", args, code, errs.String())
		}
	}
}
