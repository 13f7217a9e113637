package e2e_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/internal/redistest"
)

// awaitStreams waits until the gateway has a number of change streams.
func (g *guarded) awaitStreams(n int) {
	g.t.Helper()
	redistest.Await(g.t, "streams", func() error {
		req, err := http.NewRequestWithContext(g.t.Context(), http.MethodGet, g.address+"/metrics", nil)
		if err != nil {
			return err
		}
		req.Header.Set("Authorization", "Bearer "+g.admin.bearer)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		defer func() { _ = res.Body.Close() }()
		body, err := io.ReadAll(res.Body)
		if want := fmt.Sprintf("\nsluice_change_streams %d\n", n); err == nil && !strings.Contains(string(body), want) {
			err = fmt.Errorf("not %q", want)
		}
		return err
	})
}

// A resource that the user may see no longer is not there for the user; that is no deletion.
func TestALostRightIsNoDeletion(t *testing.T) {
	t.Parallel()
	g := startGuarded(t)
	g.applyMatrix()
	dir := t.TempDir()
	as := func(c *caller) func(args ...string) *running {
		path := dir + "/" + c.bearer[len(c.bearer)-8:]
		if err := os.WriteFile(path, []byte(c.bearer), 0o600); err != nil {
			t.Fatal(err)
		}
		return func(args ...string) *running { return g.run(append(args, "-n", "one", "--token-file", path)...) }
	}
	run, admin := as(g.user), as(g.admin)
	sees := func(names ...string) {
		g.may(besides(), rule{Kinds: []string{"Network"}, Verbs: []string{"GET", "LIST", "WATCH"}, Namespaces: []string{"one"}, Names: names})
	}
	sees("net-a", "net-b")
	table := run("get", "networks", "-w")
	table.until("SNAPSHOT", "net-b")
	names := run("get", "networks", "-w", "-o", "name")
	names.until("SNAPSHOT", "network/net-b")
	events := run("get", "networks", "-w", "-o", "json")
	events.until("IN_SYNC")
	log := run("watch", "networks")
	log.until("SNAPSHOT", "net-b")
	description := run("describe", "network", "net-b", "-w")
	description.until("Referred to by:")
	gone := run("wait", "network", "net-b", "--for=delete", "--timeout", "30s")
	value := run("wait", "network", "net-b", "--for=jsonpath={.spec.resource.mtu}=1", "--timeout", "30s")
	g.awaitStreams(7)

	sees("net-a")
	table.until("DELETED", "net-b", "-")
	names.until("DELETED", "network/net-b")
	events.until(`"resourceId"`, `"DELETED"`)
	log.until("DELETED", "one", "net-b")
	description.until("DELETED")
	for _, waits := range []*running{gone, value} {
		waits.until(`Network "net-b" cannot be seen with your rights in namespace "one", so whether it exists is not known`)
		waits.ends(1)
	}
	// Who asks when it is hidden already is not told that it is deleted either.
	hidden := run("wait", "network", "net-b", "--for=delete")
	hidden.until("cannot be seen with your rights")
	hidden.ends(1)
	run("wait", "network", "net-b", "--for=jsonpath={.status.id}").ends(3)

	sees("net-a", "net-b")
	deleted := run("wait", "network", "net-b", "--for=delete", "--timeout", "30s")
	g.awaitStreams(6)
	admin("delete", "subnet/sub-b", "network/net-b", "--wait").ends(0)
	deleted.ends(0)
}
