package e2e_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// wiredNetwork is a gateway with the network net-a and subnets of it.
func wiredNetwork(t *testing.T, subnets ...string) *gateway {
	t.Helper()
	g := start(t, "")
	if out, errOut, code := g.cli(credentials("s")+wired(subnets...), "apply", "-f", "-"); code != 0 {
		t.Fatal(out, errOut)
	}
	for _, name := range subnets {
		if out, errOut, code := g.cli("", "wait", "subnet", name, "--for=condition=Available"); code != 0 {
			t.Fatal(out, errOut)
		}
	}
	return g
}

func TestATreeShowsReferencesBothWaysWithTheirStates(t *testing.T) {
	g := wiredNetwork(t, "sub-a")
	g.cli(strings.Replace(subnet("sub-b"), "resource: {", "resource: {projectRef: gone, ", 1), "apply", "-f", "-")
	g.expect(0, `RESOURCE           STATE   GUARDED   BY
network/net-a
refers to
└── secret/s       BOUND   yes       spec.cloudCredentialsRef.secretName
referred to by
├── subnet/sub-a   BOUND   yes       spec.resource.networkRef
└── subnet/sub-b   BOUND   yes       spec.resource.networkRef
`, "", "tree", "network", "net-a")
	g.expect(0, `RESOURCE            STATE     GUARDED   BY
subnet/sub-b
refers to
├── secret/s        BOUND     yes       spec.cloudCredentialsRef.secretName
├── network/net-a   BOUND     yes       spec.resource.networkRef
│   └── secret/s    BOUND     yes       spec.cloudCredentialsRef.secretName
└── project/gone    MISSING   yes       spec.resource.projectRef
`, "", "tree", "sn/sub-b", "--direction", "dependencies")
	g.expect(0, `RESOURCE            STATE     GUARDED   BY
subnet/sub-b
refers to
├── secret/s        BOUND     yes       spec.cloudCredentialsRef.secretName
├── network/net-a   BOUND     yes       spec.resource.networkRef
└── project/gone    MISSING   yes       spec.resource.projectRef
referred to by: nothing
`, "", "tree", "sn/sub-b", "--depth", "1")
	var got struct {
		Root         struct{ Kind, Name string }
		Dependencies []struct{ Kind, Name, State, Path string }
		Dependents   []struct {
			Name  string
			Level int
		}
		Truncated bool
	}
	out, errOut, code := g.cli("", "tree", "net", "net-a", "-o", "json")
	if err := json.Unmarshal([]byte(out), &got); code != 0 || err != nil || got.Root.Kind != "Network" || len(got.Dependencies) != 1 || got.Dependencies[0].State != "BOUND" || len(got.Dependents) != 2 || got.Dependents[1].Level != 1 {
		t.Errorf("exit %d %v %+v\n%s%s", code, err, got, out, errOut)
	}
	if strings.Contains(out, `"resource":`) {
		t.Errorf("nothing is being deleted:\n%s", out)
	}
	if out, _, code := g.cli("", "tree", "net", "net-a", "-o", "yaml"); code != 0 || !strings.Contains(out, "  path: spec.resource.networkRef\n") || strings.Contains(out, "nil") {
		t.Errorf("exit %d\n%s", code, out)
	}
	for line, want := range map[string]struct {
		code int
		says string
	}{
		"tree net nobody":               {3, `Network "nobody" does not exist in namespace "default" (NOT_FOUND)`},
		"tree net net-a -n other":       {3, "NOT_FOUND"},
		"tree net nobody --watch":       {3, "NOT_FOUND"},
		"tree net":                      {2, "name the resources as KIND NAME"},
		"tree net net-a --depth 11":     {2, "1 to 10 is accepted"},
		"tree net net-a --direction in": {2, "accepted are dependencies, dependents, both"},
		"tree net net-a -o wide":        {2, "accepted are table, json, yaml"},
		"tree teapot a":                 {1, "known kinds"},
	} {
		if out, errOut, code := g.cli("", strings.Fields(line)...); code != want.code || out != "" || !strings.Contains(errOut, want.says) {
			t.Errorf("%s: exit %d, want %d\n%s%s", line, code, want.code, out, errOut)
		}
	}
}

func TestATreeIsReadAgainAfterChangesAlone(t *testing.T) {
	t.Parallel()
	g := wiredNetwork(t)
	g.cli(subnet("sub-b"), "apply", "-f", "-")
	to, err := url.Parse(g.address)
	if err != nil {
		t.Fatal(err)
	}
	var reads atomic.Int64
	proxy := httputil.NewSingleHostReverseProxy(to)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		if bytes.Contains(body, []byte("query Tree")) {
			reads.Add(1)
		}
		r.Body, r.Host = io.NopCloser(bytes.NewReader(body)), to.Host
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	direct := g.address
	g.address = srv.URL
	tree := g.run("tree", "network/net-a", "--watch")
	lines := g.run("tree", "network/net-a", "--watch", "-o", "json")
	g.address = direct
	tree.until("subnet/sub-b", "BOUND")
	lines.until(`"name":"sub-b"`)
	first := reads.Load()
	if first < 2 || first > 4 {
		t.Errorf("%d reads before anything changes", first)
	}
	g.cli(subnet("sub-a"), "apply", "-f", "-")
	tree.until("subnet/sub-a", "BOUND")
	lines.until(`"name":"sub-a"`)
	g.cli("", "delete", "network", "net-a")
	tree.until("network/net-a (deletion requested)")
	for _, name := range []string{"sub-a", "sub-b"} {
		g.cli("", "delete", "subnet", name)
	}
	tree.until("network/net-a does not exist")
	lines.until("null")
	g.cli(network("net-a", "web", 1500), "apply", "-f", "-")
	tree.until("referred to by: nothing") // another one of its name
	for _, r := range []*running{tree, lines} {
		if err := r.cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		r.ends(0)
	}
	if n := reads.Load(); n > 40 {
		t.Errorf("%d reads for a dozen changes", n)
	}
}

func TestATreeThatCannotBeReadForAWhileIsReadAgainWithoutAChange(t *testing.T) {
	t.Parallel()
	g := wiredNetwork(t, "sub-a")
	to, err := url.Parse(g.address)
	if err != nil {
		t.Fatal(err)
	}
	var down atomic.Bool
	failed := make(chan struct{}, 1)
	proxy := httputil.NewSingleHostReverseProxy(to)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		if down.Load() && bytes.Contains(body, []byte("query Tree")) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"errors": [{"message": "the store is away", "extensions": {"code": "UNAVAILABLE", "retryable": true}}]}`)
			select {
			case failed <- struct{}{}:
			default:
			}
			return
		}
		r.Body, r.Host = io.NopCloser(bytes.NewReader(body)), to.Host
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	direct := g.address
	g.address = srv.URL
	tree := g.run("tree", "network/net-a", "--watch")
	g.address = direct
	tree.until("subnet/sub-a", "BOUND")
	down.Store(true)
	g.cli("", "delete", "subnet", "sub-a") // one change, and no other comes
	for range 2 {
		select {
		case <-failed:
		case <-time.After(patience):
			t.Fatal("the tree is not read again")
		}
	}
	down.Store(false)
	tree.until("referred to by: nothing")
	if err := tree.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	tree.ends(0)
}

func TestADeletionThatWaitsSaysWhatHoldsTheResource(t *testing.T) {
	t.Parallel()
	g := wiredNetwork(t, "a", "b", "c", "d", "e")
	g.expect(0, "Network net-a PENDING (dry run): subnet/a, subnet/b, subnet/c and 2 more hold it; once requested, the deletion cannot be cancelled\n  subnet/a\n  subnet/b\n  subnet/c\n  subnet/d\n  subnet/e\n", "", "delete", "network", "net-a", "--dry-run")
	if out, _, _ := g.cli("", "get", "networks"); strings.Contains(out, "deleting") {
		t.Errorf("a dry run:\n%s", out)
	}
	g.expect(0, "Subnet default/e UPDATED: finalizers example.org/x, example.org/y\n", "", "finalize", "subnet/e", "--add", "example.org/x", "--add", "example.org/y")
	g.expect(0, "Network net-a PENDING: subnet/a, subnet/b, subnet/c and 2 more hold it; the deletion cannot be cancelled\n", "", "delete", "network", "net-a")
	if out, _, _ := g.cli("", "get", "networks"); !strings.Contains(out, ", deleting\n") {
		t.Errorf("get:\n%s", out)
	}
	if out, _, _ := g.cli("", "describe", "network", "net-a"); !strings.Contains(out, "\nDeletion:     20") || !strings.Contains(out, "\nBlocked by:   subnet/a, subnet/b, subnet/c and 2 more\n") {
		t.Errorf("describe:\n%s", out)
	}
	if out, _, _ := g.cli("", "describe", "subnet", "e"); !strings.Contains(out, "\nFinalizers:   example.org/x, example.org/y\n") {
		t.Errorf("describe:\n%s", out)
	}
	for _, name := range []string{"a", "b", "c", "d"} {
		g.expect(0, "Subnet "+name+" DELETED\n", "", "delete", "subnet", name)
	}
	g.expect(0, "Subnet e FINALIZING: finalizers example.org/x and example.org/y hold it; the deletion cannot be cancelled\n", "", "delete", "subnet/e")
	g.expect(1, "Network net-a PENDING: subnet/e holds it; the deletion cannot be cancelled\n", "sluice: Network net-a: not gone after 3s: PENDING: subnet/e holds it\n", "delete", "network", "net-a", "--wait", "--timeout", "3s")
	if _, errOut, code := g.cli("", "delete", "network", "net-a", "--wait", "--dry-run"); code != 2 || !strings.Contains(errOut, "dry run") {
		t.Errorf("exit %d %s", code, errOut)
	}
	waits := g.run("delete", "network/net-a", "subnet/e", "--wait")
	waits.until("Network net-a PENDING")
	waits.until("Subnet e FINALIZING")
	g.expect(0, "Subnet default/e UPDATED: finalizers example.org/y\n", "", "finalize", "subnet/e", "--remove", "example.org/x")
	if _, errOut, code := g.cli("", "finalize", "subnet/e", "--add", "example.org/z"); code != 1 || !strings.Contains(errOut, "BEING_DELETED") {
		t.Errorf("one more: exit %d %s", code, errOut)
	}
	g.expect(0, "Subnet default/e UPDATED: finalizers none\n", "", "finalize", "subnet/e", "--remove", "example.org/y", "--remove", "absent.example.org/z")
	waits.until("Network net-a DELETED")
	waits.until("Subnet e DELETED")
	waits.ends(0)
	g.expect(3, "", "sluice: Network \"net-a\" does not exist in namespace \"default\" (NOT_FOUND)\n", "finalize", "network", "net-a", "--add", "example.org/x")
	if _, errOut, code := g.cli("", "finalize", "network", "net-a"); code != 2 || !strings.Contains(errOut, "--add FINALIZER") {
		t.Errorf("exit %d %s", code, errOut)
	}
}

func TestADeletionThatIsRequestedIsToldSoThoughWhatBlocksItCannotBeListed(t *testing.T) {
	t.Parallel()
	g := start(t, "", "--limit-held", "65536")
	text := credentials("s") + wired()
	for _, name := range []string{"a", "b", "c"} {
		text += "---\n" + strings.Replace(subnet(name), "metadata:\n", "metadata:\n  annotations: {a: "+strings.Repeat("x", 30_000)+"}\n", 1)
	}
	if out, errOut, code := g.cli(text, "apply", "-f", "-"); code != 0 {
		t.Fatal(out, errOut)
	}
	if out, errOut, code := g.cli("", "delete", "network", "net-a", "--dry-run"); code != 1 || out != "" || !strings.Contains(errOut, "(LIMIT_EXCEEDED)") {
		t.Errorf("a dry run: exit %d\n%s%s", code, out, errOut)
	}
	const notice = "Network net-a: the deletion was requested and cannot be cancelled; what blocks it could not be listed: "
	for _, args := range [][]string{{"delete", "network", "net-a"}, {"delete", "networks", "-l", "team=web"}} {
		if out, errOut, code := g.cli("", args...); code != 0 || errOut != "" || !strings.Contains(out, notice[strings.Index(notice, ":"):]) || !strings.HasSuffix(out, "(LIMIT_EXCEEDED)\n") {
			t.Errorf("%v: exit %d\n%s%s", args, code, out, errOut)
		}
	}
	waits := g.run("delete", "network", "net-a", "--wait")
	waits.until(notice)
	g.expect(0, "Subnet a DELETED\nSubnet b DELETED\nSubnet c DELETED\n", "", "delete", "subnet", "a", "b", "c")
	waits.until("Network net-a DELETED")
	waits.ends(0)
}

func TestAKindIsGivenToAControllerAndTakenBack(t *testing.T) {
	t.Parallel()
	g := start(t, "")
	controlled := func(kind string) string {
		out, _, _ := g.cli("", "api-resources")
		for line := range strings.Lines(out) {
			if words := strings.Fields(line); words[0] == kind {
				return words[5]
			}
		}
		return "absent"
	}
	g.expect(0, "Network is controlled\nSubnet is controlled\n", "", "control", "net,subnets")
	if got := controlled("networks") + controlled("subnets") + controlled("ports"); got != "truetruefalse" {
		t.Error(got)
	}
	g.cli(credentials("s")+wired(), "apply", "-f", "-")
	if out, _, _ := g.cli("", "get", "networks", "-o", "wide"); !strings.Contains(out, "the controller has not acted yet") {
		t.Error(out)
	}
	g.expect(0, "Network is not controlled\n", "", "control", "network", "--off")
	g.expect(0, "network/net-a condition met\n", "", "wait", "network/net-a", "--for=condition=Available")
	if got := controlled("networks"); got != "false" {
		t.Error(got)
	}
	if out, errOut, code := g.cli("", "control", "all", "--off"); code != 0 || errOut != "" || !strings.Contains(out, "Subnet is not controlled\n") || strings.Contains(out, "Secret") {
		t.Errorf("exit %d\n%s%s", code, out, errOut)
	}
	for line, code := range map[string]int{"control": 2, "control net/net-a": 2, "control teapot": 1, "control secret": 1} {
		if out, errOut, got := g.cli("", strings.Fields(line)...); got != code || out != "" {
			t.Errorf("%s: exit %d, want %d\n%s%s", line, got, code, out, errOut)
		}
	}
}

func TestNoCommandThatWritesPassesOverADryRun(t *testing.T) {
	s := openShop(t, racks)
	s.cli("apiVersion: example.org/v1\nkind: Note\nmetadata: {name: a}\nspec: {text: x}\n", "apply", "-f", "-")
	state := func() string {
		resources, _, _ := s.cli("", "get", "note", "a", "-o", "json")
		return resources + s.details() + s.sdl()
	}
	before := state()
	t.Setenv("SLUICE_DRY_RUN", "server")
	for line, want := range map[string]struct {
		code         int
		says, failed string
	}{
		"label note a b=c":               {0, "Note default/a UPDATED (dry run)\n", ""},
		"finalize note a --add x.y/z":    {0, "Note default/a UPDATED (dry run): finalizers x.y/z\n", ""},
		"finalize note a --remove x.y/z": {0, "Note default/a UNCHANGED (dry run)\n", ""},
		"control note":                   {2, "", "sluice: dry-run: "},
		"control note --off":             {2, "", "sluice: dry-run: "},
		"delete note a":                  {0, "Note a DELETED (dry run)\n", ""},
	} {
		if out, errOut, code := s.cli("", strings.Fields(line)...); code != want.code || out != want.says || !strings.Contains(errOut, want.failed) {
			t.Errorf("%s: exit %d\n%s%s", line, code, out, errOut)
		}
	}
	next := s.write("next", strings.Replace(racks, "  text: String", "  more: Int\n  text: String", 1))
	if out, errOut, code := s.catalogue("apply", next); code != 0 || !strings.Contains(out, "nothing was changed") {
		t.Errorf("catalogue apply: exit %d\n%s%s", code, out, errOut)
	}
	if after := state(); after != before {
		t.Errorf("it was\n%s\nand is\n%s", before, after)
	}
	if _, errOut, code := s.cli("", "finalize", "note", "a", "--add", "x.y/z", "--dry-run=none"); code != 0 {
		t.Error(errOut)
	}
	if out, errOut, code := s.cli("", "delete", "note", "a"); code != 0 || out != "Note a FINALIZING (dry run): finalizer x.y/z holds it; once requested, the deletion cannot be cancelled\n" {
		t.Errorf("exit %d\n%s%s", code, out, errOut)
	}
}

func TestWhatDocumentsWaitForIsToldOnceAtTheEnd(t *testing.T) {
	t.Parallel()
	g := start(t, "")
	dir := t.TempDir()
	text := ""
	for i := range 40 {
		text += subnet(fmt.Sprintf("sub-%02d", i)) + "---\n"
	}
	writeFile(t, filepath.Join(dir, "all.yaml"), text+network("net-a", "web", 1500))
	out, errOut, code := g.cli("", "apply", "-f", dir)
	const want = "41 documents: 41 created\nWaiting for Secret/s to be created: Subnet default/sub-00, Subnet default/sub-01, Subnet default/sub-02 and 38 more\n"
	if code != 0 || strings.Count(out, "\n") != 41 || errOut != want {
		t.Errorf("exit %d\n%s", code, errOut)
	}
	// One document names the line of what it waits for.
	writeFile(t, filepath.Join(dir, "all.yaml"), network("net-b", "web", 1500))
	if _, errOut, _ := g.cli("", "apply", "-f", dir); !strings.HasSuffix(errOut, "all.yaml:7: warning: Waiting for Secret/s to be created\n") {
		t.Errorf("%s", errOut)
	}
}
