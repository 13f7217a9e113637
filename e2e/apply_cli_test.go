package e2e_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// network is the manifest of a network with a label.
func network(name, label string, mtu int) string {
	return fmt.Sprintf(`apiVersion: openstack.k-orc.cloud/v1alpha1
kind: Network
metadata:
  name: %s
  labels: {team: %s}
spec:
  cloudCredentialsRef: {secretName: s, cloudName: c}
  resource:
    mtu: %d
`, name, label, mtu)
}

// credentials are the manifest of a Secret of that name, which others name.
func credentials(name string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {name: %s}\nstringData: {clouds.yaml: 'clouds: {}'}\n---\n", name)
}

// startWith is start with a Secret that resources of the default namespace name.
func startWith(t *testing.T, secret string) *gateway {
	t.Helper()
	g := start(t, "")
	g.gives(secret, "default")
	return g
}

// gives puts a Secret of that name into namespaces.
func (g *gateway) gives(secret string, namespaces ...string) {
	g.t.Helper()
	for _, namespace := range namespaces {
		if _, errOut, code := g.cli(credentials(secret), "apply", "-n", namespace, "-f", "-"); code != 0 {
			g.t.Fatal(errOut)
		}
	}
}

// folder is a new one with files of these names and texts.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// expect runs a command line and holds its exit code and its two outputs against it.
func (g *gateway) expect(code int, out, errOut string, args ...string) {
	g.t.Helper()
	gotOut, gotErr, gotCode := g.cli("", args...)
	if gotCode != code || gotOut != out || gotErr != errOut {
		g.t.Errorf("sluice %v: exit %d\n%s%s\nwant exit %d\n%s%s", args, gotCode, gotOut, gotErr, code, out, errOut)
	}
}

func (g *gateway) revision(name string) string {
	g.t.Helper()
	return g.must(fmt.Sprintf(`{ network(name: %q) { metadata { revision } } }`, name)).get("network", "metadata", "revision").(string)
}

// whole is a network in the form of a whole resource: with all that the gateway knows of it.
func whole(manifest, revision string) string {
	return strings.Replace(manifest, "metadata:\n", "metadata:\n  uid: 0f8b7a2c\n  revision: "+revision+"\n  generation: 3\n  createdAt: \"2026-01-02T03:04:05Z\"\n  updatedAt: \"2026-01-02T03:04:05Z\"\n", 1) +
		"status:\n  id: 7\n  conditions: []\n"
}

func TestAFolderIsAppliedInAnyOrderAndSummedUp(t *testing.T) {
	t.Parallel()
	g := startWith(t, "s")
	subnet := `{"apiVersion": "openstack.k-orc.cloud/v1alpha1", "kind": "Subnet", "metadata": {"name": "sub-a", "namespace": "new"},
 "spec": {"cloudCredentialsRef": {"secretName": "s", "cloudName": "c"}, "resource": {"networkRef": "net-a", "ipVersion": 4, "cidr": "10.0.0.0/24"}}}`
	dir := folder(t, map[string]string{"0-subnet.json": subnet, "1-network.yaml": network("net-a", "web", 1500), "deep/net-b.yml": network("net-b", "web", 1500), "notes.md": "no manifest"})
	out, errOut, code := g.cli("", "apply", "-f", dir)
	if code != 0 || out != "Subnet new/sub-a CREATED\nNetwork default/net-a CREATED\n" || !strings.Contains(errOut, "2 documents: 2 created\n") {
		t.Errorf("exit %d\n%s%s", code, out, errOut)
	}
	for _, says := range []string{"Waiting for Network/net-a to be created", "Waiting for Secret/s to be created"} {
		if !strings.Contains(errOut, says) {
			t.Errorf("of a namespace where nothing is, it is not said: %s\n%s", says, errOut)
		}
	}
	g.expect(0, "Subnet new/sub-a UNCHANGED\nNetwork default/net-a UNCHANGED\nNetwork default/net-b CREATED\n", "3 documents: 1 created, 2 unchanged\n", "apply", "-R", "-f", dir)
	g.expect(0, "Network default/net-b UNCHANGED\n", "", "apply", "-f", filepath.Join(dir, "deep", "net-b.yml"))
	nested := folder(t, map[string]string{"a/b.yaml": ""})
	g.expect(2, "", "sluice: "+nested+" holds no .yaml, .yml or .json file; -R reads the folders in it too\n", "apply", "-f", nested)
}

func TestARefusalNamesFileDocumentAndLine(t *testing.T) {
	t.Parallel()
	g := start(t, "")
	good := network("net-a", "web", 1500)
	dir := folder(t, map[string]string{
		"a.yaml": good + "---\n" + strings.Replace(network("net-b", "web", 10), "mtu: 10", "mtu: 10\n    tagz: []", 1) + "---\n" + network("net-c", "web", 1500),
		"b.yaml": "# a comment\n" + strings.Replace(network("net-d", "web", 1500), "team: web", "team: 'not a label'", 1),
		"c.yaml": "---\n" + good + "---\nkind: [\n",
		"d.json": "[\n " + `{"apiVersion": "openstack.k-orc.cloud/v1alpha1", "kind": "Network",` + "\n" + `"metadata": {"name": "net-e"},` + "\n" + `"spec": {"managementPolicy": "other"}}]`,
		"e.yaml": "apiVersion: v1\nkind: List\nitems:\n- apiVersion: openstack.k-orc.cloud/v1alpha1\n  kind: Network\n  metadata:\n    name: net-f\n  spec:\n    colour: red\n",
	})
	out, errOut, code := g.cli("", "apply", "-f", dir)
	if code != 1 || strings.Count(out, "\n") != 3 || !strings.Contains(out, "net-c CREATED") {
		t.Errorf("exit %d\n%s", code, out)
	}
	for _, says := range []string{
		"a.yaml:19: Network net-b: spec.resource.mtu: ", "a.yaml:20: Network net-b: spec.resource.tagz: is not a field", `did you mean "tags"?`,
		"b.yaml:6: Network net-d: metadata.labels.team: ", "c.yaml:12: document 2: ", "d.json:4: Network net-e: spec.managementPolicy: ", "e.yaml:9: Network net-f: spec.colour: ", "e.yaml:8: Network net-f: spec.cloudCredentialsRef: is required",
		"\n8 documents: 2 created, 1 unchanged, 5 failed\n",
	} {
		if !strings.Contains(errOut, says) {
			t.Errorf("it is not said: %s\n%s", says, errOut)
		}
	}
}

func TestALostUpdateIsAConflictThatShowsBothSides(t *testing.T) {
	g := startWith(t, "s")
	g.cli(network("net-a", "web", 1500), "apply", "-f", "-")
	read := g.revision("net-a")
	mine := whole(network("net-a", "web", 1400), read)
	if out, errOut, code := g.cli(mine, "apply", "-f", "-", "--dry-run"); code != 0 || out != "Network default/net-a UPDATED (dry run)\n" || errOut != "" {
		t.Errorf("nobody else has written: exit %d\n%s%s", code, out, errOut)
	}
	g.cli(network("net-a", "web", 9000), "apply", "-f", "-")
	now := g.revision("net-a")
	out, errOut, code := g.cli(mine, "apply", "-f", "-")
	if code != 1 || out != "" {
		t.Fatalf("exit %d\n%s%s", code, out, errOut)
	}
	for _, says := range []string{"standard input:5: ", read, now, "-    mtu: 9000", "+    mtu: 1400", "--ignore-revision", "sluice get"} {
		if !strings.Contains(errOut, says) {
			t.Errorf("it is not said: %s\n%s", says, errOut)
		}
	}
	if g.revision("net-a") != now {
		t.Error("it was written")
	}
	if out, errOut, code := g.cli(mine, "apply", "-f", "-", "--ignore-revision"); code != 0 || out != "Network default/net-a UPDATED\n" || errOut != "" {
		t.Errorf("exit %d\n%s%s", code, out, errOut)
	}
	g.cli("", "delete", "network", "net-a")
	if _, errOut, code := g.cli(mine, "apply", "-f", "-"); code != 1 || !strings.Contains(errOut, "does not exist") || !strings.Contains(errOut, "--ignore-revision") {
		t.Errorf("it is gone: exit %d\n%s", code, errOut)
	}
	if out, _, _ := g.cli(mine, "apply", "-f", "-", "--ignore-revision"); out != "Network default/net-a CREATED\n" {
		t.Error(out)
	}
}

func TestTheEnvironmentDoesNotForce(t *testing.T) {
	g := start(t, "")
	g.cli(network("net-a", "web", 1500), "apply", "-f", "-")
	t.Setenv("SLUICE_IGNORE_REVISION", "true")
	if out, _, code := g.cli(whole(network("net-a", "web", 1400), "1-1"), "apply", "-f", "-"); code != 1 {
		t.Errorf("exit %d\n%s", code, out)
	}
	t.Setenv("SLUICE_DRY_RUN", "true")
	if out, _, _ := g.cli(network("net-a", "web", 1400), "apply", "-f", "-"); !strings.HasSuffix(out, "UPDATED (dry run)\n") {
		t.Error(out)
	}
}

func TestPruneDeletesWhatHasTheLabelsAndIsInNoDocument(t *testing.T) {
	g := startWith(t, "s")
	for _, name := range []string{"net-a", "net-b", "net-c"} {
		g.cli(network(name, "web", 1500), "apply", "-f", "-")
	}
	g.cli(network("other-label", "db", 1500), "apply", "-f", "-")
	g.cli(network("other-namespace", "web", 1500), "apply", "-n", "elsewhere", "-f", "-")
	subnet := strings.NewReplacer("Network", "Subnet", "mtu: 1500", "networkRef: net-a\n    ipVersion: 4\n    cidr: 10.0.0.0/24").Replace(network("other-kind", "web", 1500))
	if out, errOut, _ := g.cli(subnet, "apply", "-f", "-"); !strings.Contains(out, "CREATED") {
		t.Fatal(errOut)
	}
	dir := folder(t, map[string]string{"a.yaml": network("net-a", "web", 1500)})
	prune := []string{"apply", "-f", dir, "--prune", "-l", "team=web"}

	g.expect(2, "", "sluice: prune: there is no terminal to ask at; --yes prunes without asking, --dry-run shows what it would delete\n", prune...)
	g.expect(2, "", "sluice: prune: name the labels of what may be deleted with -l SELECTOR\n", "apply", "-f", dir, "--prune", "--yes")
	if _, errOut, code := g.cli("", "apply", "-f", dir, "--prune", "-l", "", "--yes"); code != 2 || !strings.Contains(errOut, "selector") {
		t.Errorf("an empty selector: exit %d\n%s", code, errOut)
	}
	g.expect(0, "Network default/net-a UNCHANGED (dry run)\nNetwork default/net-b DELETED (dry run)\nNetwork default/net-c DELETED (dry run)\n",
		"1 document: 1 unchanged, 2 pruned (dry run)\n", append(prune, "--dry-run")...)

	bad := folder(t, map[string]string{"a.yaml": network("net-a", "web", 1500), "b.yaml": network("net-x", "web", 1)})
	out, errOut, code := g.cli("", "apply", "-f", bad, "--prune", "-l", "team=web", "--yes")
	if code != 1 || strings.Contains(out, "DELETED") || !strings.Contains(errOut, "nothing was pruned, since not every document was applied") {
		t.Errorf("one document fails: exit %d\n%s%s", code, out, errOut)
	}

	g.expect(0, "Network default/net-a UNCHANGED\nNetwork default/net-b DELETED\nNetwork default/net-c DELETED\n", "1 document: 1 unchanged, 2 pruned\n", append(prune, "--yes")...)
	g.expect(0, "network/net-a\nnetwork/other-label\nnetwork/other-namespace\n", "", "get", "networks", "-A", "-o", "name")
	g.expect(0, "subnet/other-kind\n", "", "get", "subnets", "-o", "name")
	g.expect(0, "Network default/net-a UNCHANGED\n", "1 document: 1 unchanged\n", append(prune, "--yes")...)
}

func TestDryRunsOfTheClientAreRefusedWithAReason(t *testing.T) {
	t.Parallel()
	g := startWith(t, "s")
	dir := folder(t, map[string]string{"a.yaml": network("net-a", "web", 1500)})
	for _, verb := range []string{"create", "apply"} {
		g.expect(0, "Network default/net-a CREATED (dry run)\n", "", verb, "-f", dir, "--dry-run=server")
		g.expect(0, "Network default/net-a CREATED (dry run)\n", "", verb, "-f", dir, "--dry-run")
		if _, errOut, code := g.cli("", verb, "-f", dir, "--dry-run=client"); code != 2 || !strings.Contains(errOut, "only the gateway knows the kinds") {
			t.Errorf("%s: exit %d %s", verb, code, errOut)
		}
	}
	g.expect(0, "", "no networks in namespace \"default\"\n", "get", "networks", "-o", "name")
	g.expect(0, "Network default/net-a CREATED\n", "", "create", "-f", dir, "--dry-run=none")
	g.expect(1, "", filepath.Join(dir, "a.yaml")+":1: Network \"net-a\" in namespace \"default\" already exists (ALREADY_EXISTS; sluice apply replaces it, sluice edit changes it)\n", "create", "-f", dir, "--dry-run=server")
}

func TestDiffShowsWhatApplyWouldChange(t *testing.T) {
	g := startWith(t, "s")
	dir := folder(t, map[string]string{"a.yaml": network("net-a", "web", 1500), "b.yaml": network("net-b", "web", 1500)})
	out, errOut, code := g.cli("", "diff", "-f", dir)
	if code != 1 || strings.Count(out, "\n+kind: Network\n") != 2 || errOut != "" {
		t.Errorf("nothing is stored: exit %d\n%s%s", code, out, errOut)
	}
	g.cli("", "apply", "-f", dir)
	g.expect(0, "", "", "diff", "-f", dir)
	g.cli(network("net-a", "db", 1500), "apply", "-f", "-")
	out, errOut, code = g.cli("", "diff", "-f", dir)
	if code != 1 || !strings.Contains(out, "-    team: db\n+    team: web\n") || strings.Contains(out, "net-b (") || errOut != "" {
		t.Errorf("exit %d\n%s%s", code, out, errOut)
	}
	stale := whole(network("net-a", "web", 1500), "1-1")
	if out, errOut, code = g.cli(stale, "diff", "-f", "-"); code != 1 || !strings.Contains(out, "+    team: web") || !strings.Contains(errOut, `revision "1-1" is expected`) {
		t.Errorf("of an older revision: exit %d\n%s%s", code, out, errOut)
	}
	if _, errOut, code := g.cli(network("net-a", "web", 1), "diff", "-f", "-"); code != 2 || !strings.Contains(errOut, "standard input:9: ") {
		t.Errorf("refused: exit %d\n%s", code, errOut)
	}
	g.expect(2, "", "sluice: open nowhere.yaml: no such file or directory\n", "diff", "-f", "nowhere.yaml")
	if out, _, _ := g.cli("", "get", "network", "net-a", "-o", "yaml"); !strings.Contains(out, "team: db") {
		t.Errorf("diff has written:\n%s", out)
	}
}

func TestScriptsReadWhatBecameOfResources(t *testing.T) {
	t.Parallel()
	g := start(t, "")
	type line struct {
		Outcome, Kind, Namespace, Name, UID, Revision string
		DryRun                                        bool
	}
	read := func(stdin string, args ...string) (out line) {
		t.Helper()
		text, errOut, code := g.cli(stdin, append(args, "-o", "json")...)
		if err := json.Unmarshal([]byte(text), &out); err != nil || code != 0 || strings.Count(text, "\n") != 1 {
			t.Fatalf("%v: exit %d, %v\n%s%s", args, code, err, text, errOut)
		}
		return out
	}
	created := read(network("net-a", "web", 1500), "apply", "-f", "-")
	if created.Outcome != "CREATED" || created.Kind != "Network" || created.Namespace != "default" || created.Name != "net-a" || created.UID == "" || created.Revision == "" || created.DryRun {
		t.Errorf("%+v", created)
	}
	for _, c := range []struct {
		args []string
		want line
	}{
		{[]string{"label", "network", "net-a", "a=b", "--dry-run"}, line{Outcome: "UPDATED", DryRun: true}},
		{[]string{"label", "network", "net-a", "a=b"}, line{Outcome: "UPDATED"}},
		{[]string{"patch", "network", "net-a", "-p", "spec: {resource: {mtu: 1400}}"}, line{Outcome: "UPDATED"}},
		{[]string{"finalize", "network", "net-a", "--add", "example.org/x"}, line{Outcome: "UPDATED"}},
		{[]string{"delete", "network", "net-a"}, line{Outcome: "FINALIZING"}},
		{[]string{"finalize", "network", "net-a", "--remove", "example.org/x"}, line{Outcome: "UPDATED"}},
	} {
		got := read("", c.args...)
		if got.Outcome != c.want.Outcome || got.UID != created.UID || got.DryRun != c.want.DryRun || got.Name != "net-a" || got.Namespace != "default" || got.Revision == created.Revision {
			t.Errorf("%v: %+v", c.args, got)
		}
		if c.args[0] != "delete" && c.args[len(c.args)-1] != "example.org/x" && !c.want.DryRun && got.Revision == "" {
			t.Errorf("%v: no revision", c.args)
		}
	}
	for _, args := range [][]string{{"create", "-f", "-"}, {"delete", "-f", "-"}} {
		if out, errOut, code := g.cli(network("net-b", "web", 1500), append(args, "-o", "name")...); out != "network/net-b\n" || code != 0 {
			t.Errorf("%v: exit %d\n%s%s", args, code, out, errOut)
		}
	}
	if _, errOut, code := g.cli("", "delete", "network", "net-b", "-o", "yaml"); code != 2 || !strings.Contains(errOut, "accepted are text, name, json") {
		t.Errorf("exit %d\n%s", code, errOut)
	}
}

// What get prints of nothing is a list, so there is nothing to do; a file without a document is a mistake.
func TestAnEmptyListIsNothingToDo(t *testing.T) {
	t.Parallel()
	g := start(t, "")
	list, _, _ := g.cli("", "get", "volumes", "-o", "json")
	for _, args := range [][]string{{"apply"}, {"apply", "--prune", "-l", "a=b", "--yes"}, {"create"}, {"delete"}, {"delete", "--wait"}, {"diff"}} {
		out, errOut, code := g.cli(list, append(args, "-f", "-")...)
		if code != 0 || out != "" || errOut != "nothing to do: the list in standard input is empty\n" {
			t.Errorf("%v: exit %d\n%s%s", args, code, out, errOut)
		}
		if out, errOut, code := g.cli("", append(args, "-f", "-")...); code != 2 || out != "" || errOut != "sluice: no document in standard input\n" {
			t.Errorf("%v without a document: exit %d\n%s%s", args, code, out, errOut)
		}
	}
}

// TestApplyAndCreateOfWhatTheCallerMayNotRead say that it was created, and end well.
func TestApplyAndCreateOfWhatTheCallerMayNotRead(t *testing.T) {
	t.Parallel()
	g := startGuarded(t)
	g.may(rule{Kinds: []string{"Secret"}, Verbs: []string{"CREATE"}})
	token := filepath.Join(t.TempDir(), "token")
	put(t, token, g.user.bearer)
	for command, name := range map[string]string{"create": "a", "apply": "b"} {
		manifest := "apiVersion: v1\nkind: Secret\nmetadata: {name: " + name + "}\nstringData: {x: y}\n"
		run := func(args ...string) (out, errOut string, code int) {
			return g.cli(manifest, append([]string{command, "-f", "-", "-n", "web", "--token-file", token}, args...)...)
		}
		out, errOut, code := run("--dry-run=server")
		if want := "Secret web/" + name + " CREATED (dry run), not readable for you\n"; code != 0 || out != want || errOut != "" {
			t.Errorf("%s, dry run: %d %q%s", command, code, out, errOut)
		}
		out, errOut, code = run()
		if want := "Secret web/" + name + " CREATED, not readable for you\n"; code != 0 || out != want || errOut != "" {
			t.Errorf("%s: %d %q%s", command, code, out, errOut)
		}
		if got := g.admin.ask(`{ secret(namespace: "web", name: "` + name + `") { metadata { name } } }`); got.get("secret", "metadata", "name") != name {
			t.Errorf("%s: stored is %v", command, got)
		}
		if out, errOut, code = run(); code != 1 || !strings.HasSuffix(errOut, "already exists, and you may not read it (ALREADY_EXISTS)\n") {
			t.Errorf("%s, again: %d %q%s", command, code, out, errOut)
		}
	}
}
