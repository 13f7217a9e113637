package exit_test

import (
	"strings"
	"testing"

	"github.com/sluicegw/sluice/cmd/sluice/exit"
	"github.com/sluicegw/sluice/cmd/sluice/terminal"
)

func TestEach_ShowsProgressThatGoesAwayBeforeAnythingIsWritten(t *testing.T) {
	var screen strings.Builder
	std := terminal.Streams{Out: &screen, Err: &screen}.CheckedWithProgress(&screen)
	var status exit.Status
	list := make([]int, 101) // with 100 there is no progress
	for i := range list {
		list[i] = i
	}
	exit.Each(t.Context(), std, &status, list[:100], func(int) error { return nil })
	exit.Each(t.Context(), std, &status, list, func(i int) error {
		if i < 2 {
			_, _ = std.Out.Write([]byte("done\n"))
		}
		return nil
	})
	const clear = "\r\x1b[K"
	want := clear + "1 of 101 ..." + clear + "done\n" + clear + "2 of 101 ..." + clear + "done\n" + clear + "3 of 101 ..."
	if !strings.HasPrefix(screen.String(), want) {
		t.Errorf("%.120q", screen.String())
	}
}
