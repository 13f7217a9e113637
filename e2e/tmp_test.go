//go:build hostile

package e2e_test

import (
	"fmt"
	"testing"
	"net/http"
	"io"
	"os"
	"time"
)

func TestTmpSetup(t *testing.T) {
	data, args := besieged(t)
	for _, kind := range []string{"blob { id }", "blob { spec { text } }"} {
		g := start(t, data, args...)
		var said tally
		spent := process{t, g.cmd.Process.Pid}.measure(func() {
			listenTo(1000, 1, `subscription { blobChanges { `+kind+` } }`, false)(t, g, &said)
		})
		fmt.Println(kind, spent.cpu, spent.grown>>20, &said)
		g.stop()
	}
	_ = http.Get; _ = io.Copy; _ = os.Args; _ = time.Now
}
