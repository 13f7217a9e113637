package e2e_test

import (
	"bytes"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
)

func TestALostAnswerToAChangeSaysThatItMayHaveBeenMade(t *testing.T) {
	g := start(t, "")
	const unsure = "the change may or may not have been made (look with sluice get before you repeat it)"
	for _, name := range []string{"net-a", "net-b"} {
		g.cli(network(name, "web", 1500), "apply", "-f", "-")
	}
	editor(t, `sed -i 's/mtu: 1500/mtu: 9000/' "$1"`)
	t.Setenv("TMPDIR", t.TempDir())
	both := folder(t, map[string]string{"a.yaml": network("net-a", "web", 1), "b.yaml": network("net-b", "web", 1)})
	for _, c := range []struct {
		before, line, not string
		unsure            bool
	}{
		{"mutation Apply", "apply -f " + both, "1 not sent", true},
		{"mutation Apply", "apply -f " + both + " --dry-run", "1 not sent", false},
		{"mutation PatchMetadata", "label network net-a net-b a=b", "1 not sent", true},
		{"mutation PatchMetadata", "annotate networks -l team a=b", "1 not sent", true},
		{"mutation Apply", "edit network/net-a", "kept in", true},
		{"mutation Delete", "delete network net-a net-b", "1 not sent", true},
		{"mutation Delete", "delete networks -l team=web", "1 not sent", true},
		{"mutation Delete", "delete -f " + both, "1 not sent", true},
		{"query Get", "label network net-a net-b a=b", "1 not sent", false},
		{"query Get", "get network net-a", "no answer from", false},
	} {
		server := g.meanwhile(c.before, func() { panic(http.ErrAbortHandler) })
		out, errOut, code := sluice(t, "", append(strings.Fields(c.line), "--server", server)...)
		if code != 1 || out != "" || strings.Contains(errOut, unsure) != c.unsure || !strings.Contains(errOut, c.not) || strings.Count(errOut, "no answer from") != 1 {
			t.Errorf("%s: exit %d\n%s%s", c.line, code, out, errOut)
		}
	}
}

func TestAnInterruptedCommandSendsNoMore(t *testing.T) {
	t.Parallel()
	g := start(t, "")
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"net-a", "net-b", "net-c"} {
		g.cli(network(name, "web", 1500), "apply", "-f", "-")
	}
	dir := folder(t, map[string]string{"a.yaml": network("net-a", "web", 1), "b.yaml": network("net-b", "web", 1), "c.yaml": network("net-c", "web", 1)})
	for before, lines := range map[string][]string{
		"mutation Delete":        {"delete network net-a net-b net-c", "delete networks -l team=web", "delete -f " + dir},
		"mutation PatchMetadata": {"label network net-a net-b net-c a=b", "annotate networks -l team=web a=b"},
		"query Get":              {"label network net-a net-b net-c a=b"},
	} {
		for _, line := range lines {
			var cmd *exec.Cmd
			ready, ended := make(chan struct{}), make(chan struct{})
			server := g.meanwhile(before, func() {
				<-ready
				if err := cmd.Process.Signal(os.Interrupt); err != nil {
					t.Error(err)
				}
				<-ended // while it waits for the answer
				panic(http.ErrAbortHandler)
			})
			var errOut bytes.Buffer
			cmd = exec.Command(path, append(strings.Fields(line), "--server", server)...)
			cmd.Stderr = &errOut
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			close(ready)
			_ = cmd.Wait()
			close(ended)
			if said := errOut.String(); cmd.ProcessState.ExitCode() != 1 || !strings.Contains(said, "interrupted; ") || !strings.Contains(said, "2 not sent") || strings.Contains(said, "no answer") {
				t.Errorf("%s: exit %d\n%s", line, cmd.ProcessState.ExitCode(), said)
			}
		}
	}
	g.expect(0, "network/net-a\nnetwork/net-b\nnetwork/net-c\n", "", "get", "networks", "-o", "name")
}
