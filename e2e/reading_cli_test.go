package e2e_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// someNetworks are three networks, a subnet of one, and a network in another namespace
// that names a project which is not there. A controller says when networks are ready.
func someNetworks(t *testing.T) *gateway {
	t.Helper()
	g := start(t, "")
	g.expect(0, "Network is controlled\n", "", "control", "network")
	network := func(name, namespace, labels string, mtu int) string {
		return fmt.Sprintf(`apiVersion: openstack.k-orc.cloud/v1alpha1
kind: Network
metadata: {name: %s, namespace: %s, labels: {%s}}
spec:
  cloudCredentialsRef: {cloudName: openstack, secretName: cloud-config}
  resource: {mtu: %d, tags: [%s]}
---
`, name, namespace, labels, mtu, name)
	}
	text := credentials("cloud-config") + network("net-a", "default", "team: web", 1500) + network("net-b", "default", "team: db", 9000) + network("net-c", "default", "team: web", 1400) +
		strings.Replace(network("far", "other", "team: web", 1500), "resource: {", "resource: {projectRef: gone, ", 1) + `apiVersion: openstack.k-orc.cloud/v1alpha1
kind: Subnet
metadata: {name: sub-a}
spec:
  cloudCredentialsRef: {cloudName: openstack, secretName: cloud-config}
  resource: {networkRef: net-a, cidr: 10.0.0.0/24, ipVersion: 4}
`
	if out, errOut, code := g.cli(text, "apply", "-f", "-"); code != 0 {
		t.Fatal(out, errOut)
	}
	return g
}

// report writes a status of a network.
func (g *gateway) report(name string, status map[string]any) {
	g.t.Helper()
	revision := g.must(fmt.Sprintf(`{ network(name: %q) { metadata { revision } } }`, name)).get("network", "metadata", "revision")
	a := g.post(`mutation($input: UpdateNetworkStatusInput!) { updateNetworkStatus(input: $input) { network { id } } }`, map[string]any{
		"input": map[string]any{"name": name, "expectedRevision": revision, "status": status},
	})
	if a.codes() != "" {
		g.t.Fatalf("%+v", a)
	}
}

// available is a status with one condition.
func available(status, message string) map[string]any {
	return map[string]any{"cloudId": "c0ffee", "conditions": []any{
		map[string]any{"type": "Available", "status": status, "reason": "Report", "message": message, "lastTransitionTime": "2026-02-03T04:05:06Z"},
	}}
}

func TestGetTakesWhatKubectlTakes(t *testing.T) {
	g := someNetworks(t)
	g.report("net-a", available("True", "ready"))
	for _, c := range []struct {
		line string
		code int
		out  string
	}{
		{"get net -o name", 0, "network/net-a\nnetwork/net-b\nnetwork/net-c\n"},
		{"get networks,subnets -o name", 0, "network/net-a\nnetwork/net-b\nnetwork/net-c\nsubnet/sub-a\n"},
		{"get all -o name", 0, "network/net-a\nnetwork/net-b\nnetwork/net-c\nsecret/cloud-config\nsubnet/sub-a\n"},
		{"get net,network,NETWORKS -o name", 0, "network/net-a\nnetwork/net-b\nnetwork/net-c\n"},
		{"get net/net-a sn/sub-a -o name", 0, "network/net-a\nsubnet/sub-a\n"},
		{"get net net-b net-a -o name", 0, "network/net-b\nnetwork/net-a\n"},
		{"get net -A -o name", 0, "network/net-a\nnetwork/net-b\nnetwork/net-c\nnetwork/far\n"},
		{"get net -l team=web -o name", 0, "network/net-a\nnetwork/net-c\n"},
		{"get net --filter spec.resource.mtu>1450 -o name", 0, "network/net-a\nnetwork/net-b\n"},
		{"get net --filter spec.resource.mtu>1450 -l team=web -o name", 0, "network/net-a\n"},
		{"get net --filter spec.resource.mtu>=1400,spec.resource.mtu<1500 -o name", 0, "network/net-c\n"},
		{"get net --filter spec.resource.mtu!=1500 -o name", 0, "network/net-b\nnetwork/net-c\n"},
		{"get net --filter spec.resource.tags=net-b -o name", 0, "network/net-b\n"},
		{"get net --filter metadata.name^=net- --filter !spec.resource.name -o name", 0, "network/net-a\nnetwork/net-b\nnetwork/net-c\n"},
		{"get net --filter status.conditions.Available=True -o name", 0, "network/net-a\n"},
		{"get net --filter spec.managementPolicy=managed,metadata.name=net-a -o name", 0, "network/net-a\n"},
		{"get net --filter metadata.namespace=other -A -o name", 0, "network/far\n"},
		{"get net --sort-by .spec.resource.mtu -o name", 0, "network/net-c\nnetwork/net-a\nnetwork/net-b\n"},
		{"get net -o jsonpath={.items[*].spec.resource.mtu}", 0, "1500 9000 1400"},
		{"get net net-a -o jsonpath={.status.conditions[?(@.type==\"Available\")].message}", 0, "ready"},
		{"get net -o custom-columns=N:.metadata.name,M:.spec.resource.mtu --no-headers", 0, "net-a   1500\nnet-b   9000\nnet-c   1400\n"},
		{"get net net-a nobody -o name", 3, "network/net-a\n"},
		{"get net/nobody", 3, ""},
		{"get net/nobody -o json", 3, ""},
		{"get net/nobody -o jsonpath={.a}", 3, ""},
		{"get net -n nowhere", 0, ""},
		{"get teapots", 1, ""},
		{"get networks,teapots", 1, ""},
		{"get networks,ports net-a", 2, ""},
		{"get net/net-a ports", 2, ""},
		{"get net/ -o name", 2, ""},
		{"get net net-a -A", 2, ""},
		{"get net net-a -l team=web", 2, ""},
		{"get net net-a --filter spec.resource.mtu>1", 2, ""},
		{"get net --filter spec.resource.mtu>x", 2, ""},
		{"get networks,ports --watch", 2, ""},
		{"get net --watch --sort-by .metadata.name", 2, ""},
		{"get net --sort-by .metadata.name -o manifest", 2, ""},
		{"get net --sort-by .nothing -o name", 1, ""},
		{"get networks,subnets --sort-by .spec.resource.mtu -o name", 0, "network/net-c\nnetwork/net-a\nnetwork/net-b\nsubnet/sub-a\n"},
		{"get networks,subnets --filter spec.resource.mtu>1 -o name", 2, ""},
		{"get net --watch -o yaml", 2, ""},
		{"get net --watch -o manifest", 2, ""},
		{"get net --watch -o jsonpath={.a}", 2, ""},
		{"get net --sort-by {.a", 2, ""},
		{"get net -o jsonpath={.a", 2, ""},
	} {
		t.Run(c.line, func(t *testing.T) {
			out, errOut, code := g.cli("", strings.Fields(c.line)...)
			if code != c.code || out != c.out || code != 0 && strings.Count(errOut, "\n") != 1 {
				t.Errorf("exit %d, want %d\n%q, want\n%q\n%s", code, c.code, out, c.out, errOut)
			}
		})
	}
}

func TestATableHasTheColumnsOfTheKind(t *testing.T) {
	t.Parallel()
	g := someNetworks(t)
	g.report("net-a", available("False", "no cloud"))
	head := func(line string) (titles, first string) {
		out, errOut, code := g.cli("", strings.Fields(line)...)
		lines := strings.Split(out, "\n")
		if code != 0 || len(lines) < 3 {
			t.Fatalf("%s: exit %d\n%s%s", line, code, out, errOut)
		}
		return strings.Join(strings.Fields(lines[0]), " "), strings.Join(strings.Fields(lines[1]), " ")
	}
	for line, want := range map[string]string{
		"get networks":         "NAME AVAILABLE PROGRESSING ID AGE | net-a False - c0ffee",
		"get networks -A":      "NAMESPACE NAME AVAILABLE PROGRESSING ID AGE | default net-a False - c0ffee",
		"get networks -o wide": "NAME AVAILABLE PROGRESSING ID MTU EXTERNAL PROJECT AGE REVISION MESSAGE | net-a False - c0ffee - - -",
		"get subnets":          "NAME AVAILABLE PROGRESSING ID CIDR NETWORK AGE | sub-a False True - - net-a",
		"get all":              "NAME AVAILABLE PROGRESSING ID AGE | network/net-a False - c0ffee",
	} {
		if titles, first := head(line); !strings.HasPrefix(titles+" | "+first, want) {
			t.Errorf("%s: %s | %s", line, titles, first)
		}
	}
	if _, first := head("get networks -o wide"); !strings.HasSuffix(first, "no cloud") {
		t.Errorf("%s", first)
	}
	if out, _, _ := g.cli("", "get", "networks"); strings.Contains(out, "\x1b") {
		t.Error("colours where there is no terminal")
	}
}

func TestWhatGetPrintsIsAWholeResourceThatApplyTakesBack(t *testing.T) {
	t.Parallel()
	g := someNetworks(t)
	g.report("net-a", available("True", "ready"))
	out, errOut, code := g.cli("", "get", "net", "net-a", "-o", "json")
	var got struct {
		APIVersion, Kind string
		Metadata         struct {
			Name, Namespace, UID, Revision, CreatedAt, UpdatedAt string
			Generation                                           int
			Labels                                               map[string]string
		}
		Spec, Status map[string]any
	}
	if err := json.Unmarshal([]byte(out), &got); code != 0 || err != nil {
		t.Fatal(code, err, out, errOut)
	}
	m := got.Metadata
	if got.APIVersion != "openstack.k-orc.cloud/v1alpha1" || got.Kind != "Network" || m.Name != "net-a" || m.Namespace != "default" || m.UID == "" || m.Revision == "" ||
		m.CreatedAt == "" || m.UpdatedAt == "" || m.Generation != 1 || m.Labels["team"] != "web" || got.Status["id"] != "c0ffee" || got.Spec["resource"] == nil {
		t.Errorf("%s", out)
	}
	for _, format := range []string{"json", "yaml", "manifest"} {
		text, _, _ := g.cli("", "get", "net", "-o", format)
		if out, errOut, code := g.cli(text, "apply", "-f", "-"); code != 0 || strings.Count(out, "UNCHANGED") != 3 {
			t.Errorf("%s: exit %d\n%s%s", format, code, out, errOut)
		}
	}
	manifest, _, _ := g.cli("", "get", "net", "net-a", "-o", "manifest")
	if strings.Contains(manifest, "revision") || strings.Contains(manifest, "status") || strings.Contains(manifest, "uid") {
		t.Errorf("%s", manifest)
	}
	// The revision is honoured: a lost update is refused.
	text, _, _ := g.cli("", "get", "net", "net-a", "-o", "yaml")
	g.cli(strings.Replace(manifest, "mtu: 1500", "mtu: 1550", 1), "apply", "-f", "-")
	if out, errOut, code := g.cli(strings.Replace(text, "mtu: 1500", "mtu: 1600", 1), "apply", "-f", "-"); code != 1 || !strings.Contains(errOut, "net-a") {
		t.Errorf("exit %d\n%s%s", code, out, errOut)
	}
}

func TestDescribeExplainAndAPIResources(t *testing.T) {
	g := someNetworks(t)
	g.report("net-a", available("False", "no cloud"))
	for _, c := range []struct {
		line string
		code int
		says []string
	}{
		{"describe net net-a", 0, []string{"Name:         net-a\n", "team=web", "mtu: 1500", "id: c0ffee", "Available   False", "Report   no cloud", "secret/cloud-config", "BOUND", "subnet/sub-a", "spec.resource.networkRef"}},
		{"describe net far -n other", 0, []string{"project/gone", "MISSING", "Waiting for Project/gone to be created"}},
		{"describe sn/sub-a", 0, []string{"network/net-a", "NOT_READY"}},
		{"describe net nobody", 3, []string{"does not exist"}},
		{"describe net", 2, []string{"name the resources as KIND NAME"}},
		{"explain net", 0, []string{"KIND:     Network", "network, networks, net", "An isolated layer 2 network.", "spec <Object> required"}},
		{"explain networks.spec.resource.mtu", 0, []string{"spec.resource.mtu <Int>", "at least 68", "at most 9216", "Largest packet in bytes"}},
		{"explain net.spec.managementPolicy", 0, []string{"immutable", `"managed"`, "unmanaged (in the API UNMANAGED)"}},
		{"explain port.spec.resource.networkRef", 0, []string{"resource of kind Network"}},
		{"explain net.spec --recursive", 0, []string{"\n    mtu <Int>"}},
		{"explain net.spec.resource.mut", 1, []string{"mtu"}},
		{"explain teapot", 1, []string{"known kinds"}},
		{"api-resources", 0, []string{"NAME ", "SHORTNAMES", "APIVERSION", "NAMESPACED", "KIND", "CONTROLLED", "VERBS", "networks", "net ", "openstack.k-orc.cloud/v1alpha1", "get,list,watch"}},
		{"api-resources -o name", 0, []string{"networks\nports\n"}},
		{"api-resources -o wide", 0, []string{"VERBS ", "BYTES"}},
		{"api-resources -o xml", 2, []string{"accepted are table, wide, name"}},
	} {
		out, errOut, code := g.cli("", strings.Fields(c.line)...)
		if code != c.code {
			t.Errorf("%s: exit %d\n%s%s", c.line, code, out, errOut)
		}
		for _, text := range c.says {
			if !strings.Contains(out+errOut, text) {
				t.Errorf("%s does not say %q:\n%s%s", c.line, text, out, errOut)
			}
		}
	}
}

// running is a command that goes on.
type running struct {
	t     *testing.T
	cmd   *exec.Cmd
	lines chan string
}

// run starts a command that goes on; the test ends it.
func (g *gateway) run(args ...string) *running {
	g.t.Helper()
	path, err := binary()
	if err != nil {
		g.t.Fatal(err)
	}
	r := &running{t: g.t, cmd: exec.Command(path, append(args, "--server", g.address)...), lines: make(chan string, 1000)}
	out, err := r.cmd.StdoutPipe()
	if err != nil {
		g.t.Fatal(err)
	}
	r.cmd.Stderr = r.cmd.Stdout
	if err := r.cmd.Start(); err != nil {
		g.t.Fatal(err)
	}
	go func() {
		defer close(r.lines)
		for scan := bufio.NewScanner(out); scan.Scan(); {
			r.lines <- scan.Text()
		}
	}()
	g.t.Cleanup(func() { _ = r.cmd.Process.Kill() })
	return r
}

// until reads lines until one has all the texts.
func (r *running) until(texts ...string) {
	r.t.Helper()
	late := time.After(patience)
	seen := ""
next:
	for {
		select {
		case line, ok := <-r.lines:
			if !ok {
				r.t.Fatalf("%v ended before a line with %q:\n%s", r.cmd.Args, texts, seen)
			}
			seen += line + "\n"
			for _, text := range texts {
				if !strings.Contains(line, text) {
					continue next
				}
			}
			return
		case <-late:
			r.t.Fatalf("%v: no line with %q:\n%s", r.cmd.Args, texts, seen)
		}
	}
}

// ends waits for the end, and returns the lines that were not read before.
func (r *running) ends(code int) (rest string) {
	r.t.Helper()
	for line := range r.lines {
		rest += line + "\n"
	}
	_ = r.cmd.Wait()
	if got := r.cmd.ProcessState.ExitCode(); got != code {
		r.t.Errorf("%v: exit %d, want %d\n%s", r.cmd.Args, got, code, rest)
	}
	return rest
}

// TestClientName_IsSentByEveryCommand, over HTTP and over a WebSocket.
func TestClientName_IsSentByEveryCommand(t *testing.T) {
	t.Parallel()
	g := start(t, "", "--access-log", "--log-format", "json")
	if out, errOut, code := g.cli(networkManifest, "apply", "-f", "-"); code != 0 {
		t.Fatal(out, errOut)
	}
	for _, line := range []string{"get networks", "describe net net-a", "wait net/net-a --for=jsonpath={.metadata.name}", "delete net net-a --wait"} {
		if out, errOut, code := g.cli("", strings.Fields(line)...); code != 0 {
			t.Errorf("%s: exit %d\n%s%s", line, code, out, errOut)
		}
	}
	watch := g.run("watch", "networks")
	g.create("net-b", nil)
	watch.until("net-b")
	named, subscribed := 0, false
	for line := range strings.Lines(g.log.String()) {
		var one struct{ Msg, Client, OperationType, OperationName string }
		if json.Unmarshal([]byte(line), &one) != nil || one.Msg != "access" {
			continue
		}
		if one.Client == "sluice" {
			named++
			subscribed = subscribed || one.OperationType == "subscription"
		} else if one.OperationName != "" && one.OperationType != "mutation" {
			t.Errorf("a request without the name: %s", line)
		}
	}
	if named < 6 || !subscribed {
		t.Errorf("%d requests have the name, a subscription: %v\n%s", named, subscribed, g.log)
	}
}

func TestAPIResources_WideHasTheSizeOfEachKind(t *testing.T) {
	t.Parallel()
	g := someNetworks(t)
	out, errOut, code := g.cli("", "api-resources", "-o", "wide", "--no-headers")
	if code != 0 {
		t.Fatal(errOut)
	}
	sizes := map[string]string{}
	for line := range strings.Lines(out) {
		words := strings.Fields(line)
		sizes[words[0]] = words[len(words)-1]
	}
	if sizes["ports"] != "0" {
		t.Errorf("ports, of which there are none, take %q bytes", sizes["ports"])
	}
	networks, err := strconv.Atoi(sizes["networks"])
	if err != nil || networks < 4*len(`{"spec":{"cloudCredentialsRef":{}}}`) {
		t.Errorf("four networks take %q bytes", sizes["networks"])
	}
}

func TestGetAndDescribeGoOnWithChanges(t *testing.T) {
	t.Parallel()
	g := someNetworks(t)
	table := g.run("get", "net", "--watch", "-l", "team=web", "--filter", "spec.resource.mtu<2000")
	table.until("EVENT", "NAME", "AVAILABLE")
	table.until("SNAPSHOT", "net-a")
	table.until("SNAPSHOT", "net-c")
	wide := g.run("get", "net/net-a", "-w", "-o", "custom-columns=N:.metadata.name,S:.status.id", "--no-headers")
	wide.until("net-a", "-")
	lines := g.run("get", "net", "net-a", "-w", "-o", "json")
	lines.until(`"type":"IN_SYNC"`)
	description := g.run("describe", "net/net-a", "--watch")
	description.until("Referred to by:")
	description.until("subnet/sub-a")
	g.report("net-a", available("True", "ready"))
	table.until("MODIFIED", "net-a", "True")
	wide.until("net-a", "c0ffee")
	lines.until(`"type":"MODIFIED"`, `"status":{`, `"uid":`)
	description.until("MODIFIED")
	description.until("+    status: \"True\"")
	g.cli(`{"apiVersion":"openstack.k-orc.cloud/v1alpha1","kind":"Network","metadata":{"name":"net-a","labels":{"team":"db"}},"spec":{"cloudCredentialsRef":{"cloudName":"c","secretName":"s"},"resource":{}}}`, "apply", "-f", "-")
	table.until("DELETED", "net-a") // it does not match any more
	description.until("-    team: web")
	g.cli("", "delete", "subnet", "sub-a")
	g.cli("", "delete", "net", "net-a")
	description.until("DELETED")
}

func TestWaitEndsWhenWhatItWaitsForHappens(t *testing.T) {
	t.Parallel()
	g := someNetworks(t)
	waits := map[*running]int{
		g.run("wait", "net/net-a", "--for=condition=Available"):                            0,
		g.run("wait", "net/net-a", "--for=jsonpath={.status.conditions[0].message}=ready"): 0,
		g.run("wait", "net/net-a", "--for=jsonpath={.status.id}"):                          0,
		g.run("wait", "net/net-b", "--for=delete"):                                         0,
		g.run("wait", "net/net-c", "--for=condition=Available=Unknown"):                    3, // it is deleted meanwhile
		g.run("wait", "net/far", "-n", "other", "--for=condition=A", "--timeout", "1ms"):   1,
		g.run("wait", "net/nobody", "--for=delete"):                                        0,
		g.run("wait", "net/nobody", "--for=condition=Available"):                           3,
		g.run("wait", "net/net-a", "--for=condition=Available", "-n", "other"):             3,
		g.run("wait", "net/net-a"):                                                         2,
		g.run("wait", "net", "--for=delete"):                                               2,
		g.run("wait", "net/net-a", "--for=condition="):                                     2,
		g.run("wait", "net/net-a", "--for=condition=A", "--timeout", "0s"):                 2,
		g.run("wait", "net/net-a", "--for=creation"):                                       2,
		g.run("wait", "net/net-a", "--for=jsonpath={.a"):                                   2,
	}
	g.report("net-a", available("False", "not yet"))
	g.report("net-b", available("Unknown", ""))
	g.report("net-a", available("True", "ready"))
	g.cli("", "delete", "net", "net-b")
	g.cli("", "delete", "net", "net-c")
	for r, code := range waits {
		r.ends(code)
	}
	if _, errOut, code := g.cli(strings.ReplaceAll(networkManifest, "net-a", "net-d"), "apply", "-f", "-"); code != 0 {
		t.Fatal(errOut)
	}
	// All of these wait at the same time, for three seconds.
	late := map[*running]string{}
	for line, says := range map[string]string{
		"wait net/net-a --for=condition=Available=False --timeout 3s": "timed out after 3s waiting for condition=Available=False: " +
			"Available is True: ready",
		"wait net -l team=web --for=delete --timeout 3s":                                     "it is there",
		"wait net/far net/net-a -n other --for=jsonpath={.spec.resource.mtu}=1 --timeout 3s": `"net-a" does not exist`,
		"wait net/net-d net/net-a --for=jsonpath={.status.id} --timeout 3s":                  "network/net-a condition met\n",
	} {
		late[g.run(strings.Fields(line)...)] = says
	}
	for r, says := range late {
		said := r.ends(1)
		if !strings.Contains(said, says) {
			t.Errorf("%v: it does not say %q, but\n%s", r.cmd.Args, says, said)
		}
		if !strings.HasPrefix(says, "network/") && strings.Contains(said, "condition met") {
			t.Errorf("%v: %s", r.cmd.Args, said)
		}
	}
	for _, c := range []struct {
		line string
		code int
		says string
	}{
		{"wait net -l team=web --for=condition=Available", 0, "network/net-a condition met\n"},
		{"wait net -l team=nobody --for=condition=Available", 3, "no networks have the labels"},
		{"wait net -l team=nobody --for=delete", 0, ""},
		{"wait net net-a -l team=web --for=delete", 2, "does not go with names"},
		{"wait net -l a>b --for=delete", 2, "selector"},
	} {
		if out, errOut, code := g.cli("", strings.Fields(c.line)...); code != c.code || !strings.Contains(out+errOut, c.says) {
			t.Errorf("%s: exit %d\n%s%s", c.line, code, out, errOut)
		}
	}
	if out, _, code := g.cli("", "wait", "net/net-a", "--for=condition=Available"); code != 0 || out != "network/net-a condition met\n" {
		t.Errorf("exit %d %q", code, out)
	}
}

func TestAWaitSaysThatTheConnectionWasLost(t *testing.T) {
	t.Parallel()
	g := someNetworks(t)
	to, err := url.Parse(g.address)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(to)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet { // a WebSocket begins
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		r.Host = to.Host
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	_, errOut, code := sluice(t, "", "wait", "net/net-a", "--for=condition=Available", "--timeout", "300ms", "--server", srv.URL)
	if code != 1 || !strings.Contains(errOut, "the connection was lost") || !strings.Contains(errOut, "Available is False") {
		t.Errorf("exit %d\n%s", code, errOut)
	}
}

func TestAGatewayOfTrustedDocumentsKnowsThoseOfTheCommandLine(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "trusted.json"), `{"a": "{ kinds { name } }"}`)
	g := start(t, "", "--trusted-only", "--trusted-documents", filepath.Join(dir, "trusted.json"))
	if a := g.post(`{ networks { nodes { id } } }`, nil); a.codes() != "FORBIDDEN" {
		t.Fatalf("%+v", a)
	}
	editor(t, `sed -i 's/^status:$/status:\n  id: c0ffee/' "$1"`)
	for _, line := range []string{
		"apply -f -", "get networks", "get all -A", "get net net-a -o manifest", "get net -l a=b --filter spec.resource.mtu>1", "describe net net-a", "tree net net-a",
		"explain net.spec", "api-resources", "wait net/net-a --for=jsonpath={.metadata.name}", "diff -f -", "label net net-a a=b", "annotate net net-a a=b",
		"patch net net-a -p {\"metadata\":{\"description\":\"x\"}}", "edit net net-a --subresource=status", "finalize net net-a --add example.org/x", "finalize net net-a --remove example.org/x", "control net", "control net --off",
		"delete net -l a=b --wait",
	} {
		if out, errOut, code := g.cli(networkManifest, strings.Fields(line)...); code != 0 {
			t.Errorf("%s: exit %d\n%s%s", line, code, out, errOut)
		}
	}
	g.cli(networkManifest, "apply", "-f", "-")
	tree := g.run("tree", "net", "net-a", "--watch")
	tree.until("referred to by: nothing")
	g.cli("", "finalize", "net", "net-a", "--add", "example.org/x")
	g.cli("", "delete", "net", "net-a")
	tree.until("network/net-a (deletion requested)")
	if out, _, _ := sluice(t, "", "__complete", "get", "--server", g.address, ""); !strings.Contains(out, "\nnetworks\n") {
		t.Errorf("completion: %q", out)
	}
}

func TestAWaitForADeletionIsOverWhenANamesakeIsThere(t *testing.T) {
	t.Parallel()
	g := someNetworks(t)
	// net-b is waited for after net-a; meanwhile it is replaced.
	r := g.run("wait", "net", "net-a", "net-b", "--for=delete")
	for begin := time.Now(); ; {
		if _, body := g.do("GET", "/metrics", ""); strings.Contains(body, "\nsluice_change_streams 1\n") {
			break
		}
		if time.Since(begin) > patience {
			t.Fatal("it does not wait")
		}
	}
	g.cli("", "delete", "net", "net-b")
	g.create("net-b", nil)
	g.cli("", "delete", "net", "net-a")
	r.ends(0)
}

// breaking is the address of a way to the gateway on which nobody answers requests that
// have the text.
func (g *gateway) breaking(text string) string {
	g.t.Helper()
	to, err := url.Parse(g.address)
	if err != nil {
		g.t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(to)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || bytes.Contains(body, []byte(text)) {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		r.Body, r.Host = io.NopCloser(bytes.NewReader(body)), to.Host
		proxy.ServeHTTP(w, r)
	}))
	g.t.Cleanup(srv.Close)
	return srv.URL
}

func TestAListThatBreaksOffDoesNotLookComplete(t *testing.T) {
	t.Parallel()
	g := someNetworks(t)
	broken := g.breaking("subnets(")
	for format, begins := range map[string]string{"json": "{\n  \"apiVersion\": \"v1\",\n  \"kind\": \"List\",", "yaml": "apiVersion", "name": "network/net-a\n", "jsonpath={.items[*].metadata.name}": ""} {
		out, errOut, code := sluice(t, "", "get", "networks,subnets", "-o", format, "--server", broken)
		if code != 1 || !strings.HasPrefix(out, begins) || !strings.Contains(errOut, "the list is not complete") {
			t.Errorf("%s: exit %d\n%s%s", format, code, out, errOut)
		}
		if json.Valid([]byte(out)) || strings.HasPrefix(format, "jsonpath") && out != "" {
			t.Errorf("%s looks complete:\n%s", format, out)
		}
	}
}

func TestTheEnvironmentFillsTheFlagsOfReadingCommands(t *testing.T) {
	g := someNetworks(t)
	t.Setenv("SLUICE_OUTPUT", "name")
	if out, _, _ := g.cli("", "api-resources"); !strings.HasPrefix(out, "accessBindings\naccessRoles\naddressScopes\n") || !strings.Contains(out, "\nnetworks\n") {
		t.Errorf("api-resources: %q", out)
	}
	t.Setenv("SLUICE_SELECTOR", "team=web")
	t.Setenv("SLUICE_SORT_BY", ".spec.resource.mtu")
	g.expect(0, "network/net-c\nnetwork/net-a\n", "", "get", "networks")
	t.Setenv("SLUICE_FOR", "jsonpath={.spec.resource.mtu}")
	g.expect(0, "network/net-a condition met\nnetwork/net-c condition met\n", "", "wait", "networks")
}
