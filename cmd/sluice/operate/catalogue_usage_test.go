package operate

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicegw/sluice/cmd/sluice/command"
	"github.com/sluicegw/sluice/cmd/sluice/commandtest"
	"github.com/sluicegw/sluice/cmd/sluice/terminal"
)

// accessLine returns a line of the access log; deprecated is JSON, such as ["A.b"].
func accessLine(day int, version, client, deprecated string) string {
	return fmt.Sprintf(`{"level":"info","time":"2026-01-%02dT10:00:00.5Z","msg":"access","requestId":"r","version":%q,`+
		`"operationName":"","operationType":"query","kind":"Thing","documentHash":"d","client":%q,"deprecated":%s,"code":"OK"}`+"\n",
		day, version, client, deprecated)
}

// otherLines are lines that are not about operations.
const otherLines = `{"level":"info","time":"2026-01-01T10:00:00Z","msg":"sluice serves","version":"v9"}
{"level":"info","time":"2026-01-01T10:00:00Z","msg":"access","client":"web","code":"FORBIDDEN"}
{"level":"warn","time":"2026-01-01T10:00:00Z","msg":"slow operation","documentHash":"d","version":"v1.0"}

`

func TestCatalogueUsage_SumsUpLogs(t *testing.T) {
	dir := t.TempDir()
	first := commandtest.WriteFile(t, dir, "first.log", accessLine(3, "v1.0", "web", `["A.b"]`)+otherLines+
		accessLine(5, "v1.0", "web", `["A.b","E.OLD"]`)+accessLine(1, "v1.10", "web", `null`)+accessLine(2, "v1.9", "", `[]`))
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = w.Write([]byte(accessLine(1, "v1.0", "web", `["A.b"]`) + accessLine(6, "v1.0", "app", `null`)))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	second := commandtest.WriteFile(t, dir, "second", packed.String())
	const want = `VERSION      CLIENT   DEPRECATED   OPERATIONS   FIRST                  LAST
v1.0         web      -            3            2026-01-01T10:00:00Z   2026-01-05T10:00:00Z
v1.0         web      A.b          3            2026-01-01T10:00:00Z   2026-01-05T10:00:00Z
v1.0         web      E.OLD        1            2026-01-05T10:00:00Z   2026-01-05T10:00:00Z
v1.0         app      -            1            2026-01-06T10:00:00Z   2026-01-06T10:00:00Z
v1.9         -        -            1            2026-01-02T10:00:00Z   2026-01-02T10:00:00Z
v1.10        web      -            1            2026-01-01T10:00:00Z   2026-01-01T10:00:00Z
unreleased   curl     -            1            2026-01-07T10:00:00Z   2026-01-07T10:00:00Z
`
	var out, errOut strings.Builder
	std := terminal.Streams{In: strings.NewReader(accessLine(7, "unreleased", "curl", `null`)), Out: &out, Err: &errOut}
	code := command.Run(t.Context(), newRoot, []string{"catalogue", "usage", "--log", first, "--log", second, "-"}, std)
	if diff := cmp.Diff(want, out.String()); code != 0 || diff != "" || errOut.String() != "" {
		t.Errorf("exit %d %s\n%s", code, errOut.String(), diff)
	}
	const list = `[
  {
    "version": "v1.0",
    "client": "web",
    "operations": 1,
    "first": "2026-01-01T10:00:00.5Z",
    "last": "2026-01-01T10:00:00.5Z",
    "deprecated": [
      {
        "name": "A.b",
        "operations": 1,
        "first": "2026-01-01T10:00:00.5Z",
        "last": "2026-01-01T10:00:00.5Z"
      }
    ]
  }
]
`
	one := commandtest.WriteFile(t, dir, "one.log", accessLine(1, "v1.0", "web", `["A.b"]`))
	if got := commandtest.Must(t, newRoot, "catalogue", "usage", "--log", one, "-o", "json"); got != list {
		t.Errorf("%s", cmp.Diff(list, got))
	}
	got := commandtest.Must(t, newRoot, "catalogue", "usage", "--log", one, "-o", "yaml")
	if !strings.Contains(got, "  operations: 1\n") || !strings.Contains(got, "name: A.b\n") {
		t.Errorf("%s", got)
	}
}

func TestCatalogueUsage_LeavesOutWhatIsNoLog(t *testing.T) {
	dir := t.TempDir()
	long := `{"msg":"access","documentHash":"` + strings.Repeat("d", 2*maxLogLine) + `"}` + "\n"
	undated := strings.Replace(accessLine(1, "v1.0", "web", "null"), `"time":"2026-01-01T10:00:00.5Z",`, "", 1)
	broken := commandtest.WriteFile(t, dir, "broken.log", "starting up\n"+long+accessLine(1, "v1.0", "web", `null`)+undated+
		accessLine(1, "v1.0", "web", `7`)+"null\n[]\n\x00\xff\n"+`{"msg":"acc`)
	out, errOut, code := commandtest.Run(t, newRoot, "catalogue", "usage", "--log", broken)
	if code != 0 || strings.Count(out, "v1.0") != 1 || !strings.Contains(errOut, "broken.log: 7 lines left out that are no JSON of a log") {
		t.Errorf("exit %d %s%s", code, out, errOut)
	}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = w.Write([]byte(accessLine(1, "v1.0", "web", `null`)))
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	cut := commandtest.WriteFile(t, dir, "cut.gz", packed.String())
	out, errOut, code = commandtest.Run(t, newRoot, "catalogue", "usage", "--log", cut)
	if code != 1 || strings.Count(out, "v1.0") != 1 || !strings.Contains(errOut, "cut.gz: it cannot be read to its end: unexpected EOF") {
		t.Errorf("exit %d %s%s", code, out, errOut)
	}
	for args, want := range map[string]string{
		"":                            "log: name a file with the log of a gateway by --log FILE",
		broken:                        "log: name a file with the log of a gateway by --log FILE",
		"--log " + dir + "/none":      "none: no such file",
		"--log " + broken + " -o csv": "accepted are table, json, yaml",
	} {
		_, errOut, code := commandtest.Run(t, newRoot, append([]string{"catalogue", "usage"}, strings.Fields(args)...)...)
		if code != 2 || !strings.Contains(errOut, want) {
			t.Errorf("%s: exit %d %s", args, code, errOut)
		}
	}
	empty := commandtest.WriteFile(t, dir, "empty.log", "")
	out, errOut, code = commandtest.Run(t, newRoot, "catalogue", "usage", "--log", empty)
	if code != 0 || out != "" || !strings.Contains(errOut, "there are no operations in it") {
		t.Errorf("exit %d %s%s", code, out, errOut)
	}
}

func TestUsage_HasABoundedNumberOfClients(t *testing.T) {
	sum := newUsage()
	for i := range maxUsageClients + 100 {
		sum.line([]byte(accessLine(1, "v1.0", fmt.Sprintf("client%d", i), `null`)))
	}
	clients := sum.clients()
	if len(clients) != maxUsageClients+1 || clients[0].Client != otherUsage || clients[0].Operations != 100 {
		t.Errorf("%d clients, the first is %v", len(clients), clients[0])
	}
}
