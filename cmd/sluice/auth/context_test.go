package auth

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/cmd/sluice/commandtest"
)

func TestContextsAreKeptAndListed(t *testing.T) {
	folder := commandtest.FreshContexts(t)
	if out := commandtest.Must(t, newRoot, "context", "set", "prod", "--server", "https://ada:secret@prod.example.com", "-n", "web", "--ca", "ca.pem"); out != "context prod is set, and is the current one\n" {
		t.Errorf("%q", out)
	}
	commandtest.Must(t, newRoot, "context", "set", "test", "--server", "http://127.0.0.1:1", "--", "print-token", "-x")
	commandtest.Must(t, newRoot, "context", "set", "prod", "--token-file", "token")
	if out := commandtest.Must(t, newRoot, "context", "list"); out != "CURRENT   NAME   SERVER                               NAMESPACE   CREDENTIAL\n"+
		"*         prod   https://ada:xxxxx@prod.example.com   web         token file\n"+
		"          test   http://127.0.0.1:1                   -           command\n" || strings.Contains(out, "secret") {
		t.Errorf("%s", out)
	}
	commandtest.Must(t, newRoot, "context", "use", "test")
	if out := commandtest.Must(t, newRoot, "context", "list", "-o", "yaml"); !strings.Contains(out, "- name: test\n  current: true\n  server: http://127.0.0.1:1\n") {
		t.Errorf("%s", out)
	}
	working, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(folder, "contexts.yaml"))
	if err != nil || !strings.Contains(string(raw), "ca: "+working+"/ca.pem\n") || !strings.Contains(string(raw), "token-command: [print-token, -x]\n") {
		t.Errorf("%s %v", raw, err)
	}
	commandtest.Must(t, newRoot, "context", "set", "test", "--token-file", "")
	commandtest.Must(t, newRoot, "context", "delete", "test")
	if out := commandtest.Must(t, newRoot, "context", "list", "-o", "json"); strings.Contains(out, "test") || strings.Contains(out, `"current": true`) {
		t.Errorf("%s", out)
	}
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"use", "none"}, 3, `no such context as "none"; known: prod`},
		{[]string{"delete", "none"}, 3, "known: prod"},
		{[]string{"set", "a/b"}, 2, "is no name"},
		{[]string{"set", "x", "--server", "nowhere"}, 2, "is not a URL"},
		{[]string{"set", "x", "--client-cert", "c"}, 2, "each needs the other"},
		{[]string{"set", "x", "--token-file", "c", "--", "program"}, 2, "only one of them"},
		{[]string{"set", "x", "y"}, 2, "one name is wanted"},
		{[]string{"list", "-o", "xml"}, 2, "accepted are table, json, yaml"},
	} {
		if _, errOut, code := commandtest.Run(t, newRoot, append([]string{"context"}, c.args...)...); code != c.code || !strings.Contains(errOut, c.says) || strings.Count(errOut, "\n") != 1 {
			t.Errorf("%v: exit %d %s", c.args, code, errOut)
		}
	}
}

func TestContextsAreCompleted(t *testing.T) {
	commandtest.FreshContexts(t)
	commandtest.Must(t, newRoot, "context", "set", "prod", "--server", "http://127.0.0.1:1")
	for _, line := range [][]string{{"get", "--context", ""}, {"context", "use", ""}, {"context", "delete", ""}} {
		if out := commandtest.Must(t, newRoot, append([]string{"__complete"}, line...)...); out != "prod\n:4\n" {
			t.Errorf("%v completes to %q", line, out)
		}
	}
}
