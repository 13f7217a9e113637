package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// stored is the manifest of a network as the command line prints it.
func (g *gateway) stored(name string) string {
	g.t.Helper()
	out, errOut, code := g.cli("", "get", "network", name, "-o", "yaml")
	if code != 0 {
		g.t.Fatal(errOut)
	}
	return out
}

func TestLabelsAreSetRemovedAndNotOverwrittenUnasked(t *testing.T) {
	g := start(t, "")
	for _, name := range []string{"net-a", "net-b"} {
		g.cli(network(name, "web", 1500), "apply", "-f", "-")
	}
	g.expect(0, "Network default/net-a UPDATED\nNetwork default/net-b UPDATED\n", "", "label", "network", "net-a", "net-b", "stage=prod", "example.org/tier=")
	if got := g.stored("net-a"); !strings.Contains(got, "  labels:\n    example.org/tier: \"\"\n    stage: prod\n    team: web\n") {
		t.Error(got)
	}
	before := g.revision("net-a")
	g.expect(0, "Network default/net-a UNCHANGED\n", "", "label", "network/net-a", "stage=prod", "absent-")
	g.expect(1, "", "Network net-a: stage has the value \"prod\" already; --overwrite lets it have another\n", "label", "network/net-a", "stage=test")
	g.expect(0, "Network default/net-a UPDATED (dry run)\n", "", "label", "network/net-a", "stage=test", "--overwrite", "--dry-run")
	g.expect(1, "", `Network net-a: Network "net-a" in namespace "default" was changed since you read it: revision "1-1" is expected, "`+before+"\" is current; read it again and repeat the change\n",
		"label", "network/net-a", "new=1", "--revision", "1-1")
	if g.revision("net-a") != before {
		t.Error("it was written")
	}
	g.expect(0, "Network default/net-a UPDATED\n", "", "label", "network/net-a", "stage=test", "team-", "example.org/tier-", "--overwrite", "--revision", before)
	if got := g.stored("net-a"); !strings.Contains(got, "  labels:\n    stage: test\n  name") {
		t.Error(got)
	}
	g.expect(0, "Network default/net-b UPDATED\n", "", "label", "networks", "-l", "stage in (prod, stage)", "found=yes")
	g.expect(0, "Network default/net-a UPDATED\n", "", "label", "network", "net-a", "stage-")
	if got := g.stored("net-a"); strings.Contains(got, "labels") {
		t.Errorf("the last one is gone:\n%s", got)
	}
	g.expect(0, "Network default/net-a UPDATED\n", "", "annotate", "network", "net-a", "owner=Ada Lovelace = x")
	if got := g.stored("net-a"); !strings.Contains(got, "owner: \"Ada Lovelace = x\"") {
		t.Error(got)
	}
	for _, c := range []struct {
		code int
		says string
		args []string
	}{
		{3, `Network "nobody" does not exist`, []string{"label", "network", "nobody", "a=b"}},
		{2, "name what to change", []string{"label", "network", "net-a"}},
		{2, "nothing else", []string{"label", "network", "net-a", "a=b", "net-b"}},
		{2, "named twice", []string{"label", "network", "net-a", "a=b", "a-"}},
		{2, "KEY=VALUE or KEY-", []string{"label", "network", "net-a", "=b"}},
		{2, "KIND NAME...", []string{"label", "network", "a=b"}},
		{2, "selector", []string{"label", "networks", "-l", "", "a=b"}},
		{2, "one KIND", []string{"label", "network/net-a", "-l", "a", "a=b"}},
		{1, "metadata.labels[0].key", []string{"label", "network", "net-a", "-a=b"}},
		{1, "known kinds", []string{"label", "teapot", "net-a", "a=b"}},
	} {
		args := c.args
		if strings.HasPrefix(args[len(args)-1], "-") { // it is no flag
			args = append(append(args[:len(args)-1:len(args)-1], "--"), args[len(args)-1])
		}
		if _, errOut, code := g.cliBefore(args); code != c.code || !strings.Contains(errOut, c.says) {
			t.Errorf("%v: exit %d, want %d and %q\n%s", c.args, code, c.code, c.says, errOut)
		}
	}
}

// cliBefore is cli with the server in front of the arguments, which may end with --.
func (g *gateway) cliBefore(args []string) (stdout, stderr string, code int) {
	g.t.Helper()
	return sluice(g.t, "", append([]string{args[0], "--server", g.address}, args[1:]...)...)
}

func TestNoChangeOfSomebodyElseIsLost(t *testing.T) {
	g := start(t, "")
	g.cli(network("net-a", "web", 1500), "apply", "-f", "-")
	const writers = 4
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			if _, errOut, code := g.cli("", "label", "network", "net-a", fmt.Sprintf("l%d=x", i)); code != 0 {
				t.Errorf("exit %d %s", code, errOut)
			}
		})
		wg.Go(func() {
			if _, errOut, code := g.cli("", "patch", "network", "net-a", "-p", fmt.Sprintf("metadata: {annotations: {a%d: x}}", i)); code != 0 {
				t.Errorf("exit %d %s", code, errOut)
			}
		})
	}
	wg.Wait()
	got := g.stored("net-a")
	for i := range writers {
		if !strings.Contains(got, fmt.Sprintf("    l%d: x\n", i)) || !strings.Contains(got, fmt.Sprintf("    a%d: x\n", i)) {
			t.Errorf("%d is missing:\n%s", i, got)
		}
	}
}

func TestAPatchMergesIntoTheManifest(t *testing.T) {
	g := start(t, "")
	g.cli(strings.Replace(network("net-a", "web", 1500), "metadata:", "metadata:\n  description: old", 1), "apply", "-f", "-")
	g.expect(0, "Network default/net-a UPDATED\n", "", "patch", "network", "net-a", "-p", `{"metadata": {"description": null, "labels": {"team": null, "stage": "prod"}}, "spec": {"resource": {"mtu": null, "tags": ["x"]}}}`)
	got := g.stored("net-a")
	if strings.Contains(got, "mtu") || strings.Contains(got, "old") || strings.Contains(got, "team") || !strings.Contains(got, "stage: prod") || !strings.Contains(got, "- x\n") {
		t.Error(got)
	}
	file := filepath.Join(folder(t, map[string]string{"patch.yaml": "spec:\n  resource: {mtu: 9000}\n"}), "patch.yaml")
	g.expect(0, "Network default/net-a UPDATED (dry run)\n", "", "patch", "network/net-a", "--patch-file", file, "--dry-run")
	g.expect(0, "Network default/net-a UPDATED\n", "", "patch", "network/net-a", "--patch-file", file, "--type=merge")
	g.expect(0, "Network default/net-a UNCHANGED\n", "", "patch", "network/net-a", "--patch-file", file)
	for _, c := range []struct {
		code int
		says string
		args []string
	}{
		{3, "does not exist", []string{"network", "nobody", "-p", "{}"}},
		{1, "cannot be changed", []string{"network", "net-a", "-p", "metadata: {name: b}"}},
		{1, "spec.resource.mtu: must be at most 9216", []string{"network", "net-a", "-p", "spec: {resource: {mtu: 10000}}"}},
		{1, "an object is wanted", []string{"network", "net-a", "-p", "[]"}},
		{1, "patch: not acceptable as YAML", []string{"network", "net-a", "-p", "a: [", "--revision", "1-1"}},
		{1, `revision "1-1" is expected`, []string{"network", "net-a", "-p", "spec: {resource: {mtu: 1400}}", "--revision", "1-1"}},
		{2, "-p PATCH or with --patch-file", []string{"network", "net-a"}},
		{2, "-p PATCH or with --patch-file", []string{"network", "net-a", "-p", "{}", "--patch-file", file}},
		{2, "merge is accepted", []string{"network", "net-a", "-p", "{}", "--type", "json"}},
		{2, "one resource", []string{"network", "net-a", "net-b", "-p", "{}"}},
	} {
		if _, errOut, code := g.cli("", append([]string{"patch"}, c.args...)...); code != c.code || !strings.Contains(errOut, c.says) {
			t.Errorf("%v: exit %d, want %d and %q\n%s", c.args, code, c.code, c.says, errOut)
		}
	}
}

func TestDeletionByNamesLabelsAndFiles(t *testing.T) {
	g := start(t, "")
	for _, name := range []string{"net-a", "net-b", "net-c"} {
		g.cli(network(name, "web", 1500), "apply", "-f", "-")
	}
	g.cli(network("net-d", "db", 1500), "apply", "-f", "-")
	g.cli(network("net-a", "web", 1500), "apply", "-n", "elsewhere", "-f", "-")
	dir := folder(t, map[string]string{"a.yaml": whole(network("net-d", "db", 1500), "1-1") + "---\n" + strings.Replace(network("net-a", "x", 1500), "name: net-a", "name: net-a\n  namespace: elsewhere", 1)})

	g.expect(0, "Network net-d DELETED (dry run)\nNetwork elsewhere/net-a DELETED (dry run)\n", "", "delete", "-f", dir, "--dry-run")
	g.expect(0, "Network net-d DELETED\nNetwork elsewhere/net-a DELETED\n", "", "delete", "-f", dir)
	g.expect(3, "", "Network net-d: Network \"net-d\" in namespace \"default\" does not exist\nNetwork elsewhere/net-a: Network \"net-a\" in namespace \"elsewhere\" does not exist\n", "delete", "-f", dir)
	g.expect(0, "", "", "delete", "-f", dir, "--ignore-not-found")
	g.expect(0, "Network default/net-a DELETED (dry run)\nNetwork default/net-b DELETED (dry run)\nNetwork default/net-c DELETED (dry run)\n", "", "delete", "networks", "-l", "team=web", "--dry-run")
	g.expect(0, "Network net-a DELETED\n", "", "delete", "network/net-a", "network/nobody", "--ignore-not-found")
	g.expect(0, "", "no resource has these labels\n", "delete", "networks,subnets", "-l", "team=nobody")
	g.expect(0, "Network net-b DELETED (dry run)\n", "", "delete", "network", "net-b", "--revision", g.revision("net-b"), "--dry-run")
	g.expect(0, "Network default/net-b DELETED\nNetwork default/net-c DELETED\n", "", "delete", "networks,subnets", "-l", "team=web")
	g.expect(0, "", "no networks\n", "get", "networks", "-A", "-o", "name")
	for _, c := range []struct {
		code int
		says string
		args []string
	}{
		{2, `selector: ""`, []string{"networks", "-l", ""}},
		{2, "one KIND", []string{"networks", "net-a", "-l", "a=b"}},
		{2, "neither names", []string{"networks", "net-a", "-f", dir}},
		{2, "KIND NAME...", []string{"networks"}},
		{2, "KIND NAME...", nil},
		{2, "KIND/NAME is accepted", []string{"network/net-a", "net-b"}},
		{2, "one resource", []string{"network", "a", "b", "--revision", "1-1"}},
		{1, "known kinds", []string{"teapots", "a"}},
	} {
		if _, errOut, code := g.cli("", append([]string{"delete"}, c.args...)...); code != c.code || !strings.Contains(errOut, c.says) {
			t.Errorf("%v: exit %d, want %d and %q\n%s", c.args, code, c.code, c.says, errOut)
		}
	}
}

func TestTheEditorOpensAgainWithTheRefusalAtTheTop(t *testing.T) {
	g := start(t, "")
	g.cli(network("net-a", "web", 1500), "apply", "-f", "-")
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	// First a number that is too large, then, where the comment says so, one that is not.
	editor(t, fmt.Sprintf(`cp "$1" %[1]s/seen.$(ls %[1]s | grep -c seen); if grep -q '^# - spec.resource.mtu: must be at most 9216' "$1"; then sed -i 's/mtu: 90000/mtu: 9000/' "$1"; else sed -i 's/mtu: 1500/mtu: 90000/' "$1"; fi`, dir))
	g.expect(0, "Network default/net-a UPDATED\n", "Network net-a: spec.resource.mtu: must be at most 9216\n", "edit", "network/net-a")
	if !strings.Contains(g.stored("net-a"), "mtu: 9000\n") {
		t.Error(g.stored("net-a"))
	}
	seen, err := os.ReadFile(filepath.Join(dir, "seen.1"))
	if err != nil || !strings.HasPrefix(string(seen), "# This was not stored. Mend it and save, or save it as it is to give up.\n# - spec.resource.mtu: must be at most 9216\n#\napiVersion: ") {
		t.Errorf("%v\n%s", err, seen)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "sluice-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	before := g.revision("net-a")
	editor(t, `sed -i 's/mtu: 9000$/mtu: 1/' "$1"`)
	_, errOut, code := g.cli("", "edit", "network", "net-a")
	if code != 1 || strings.Count(errOut, "must be at least 68") != 1 || !strings.Contains(errOut, "your text is kept in "+dir) {
		t.Errorf("given up: exit %d\n%s", code, errOut)
	}
	editor(t, `: > "$1"`)
	g.expect(0, "no changes made\n", "", "edit", "network", "net-a")
	if g.revision("net-a") != before {
		t.Error("it was written")
	}
	editor(t, `echo x >> "$1"`)
	if _, errOut, code := g.cli("", "edit", "network", "net-a"); code != 1 || strings.Count(errOut, "not acceptable") != 20 {
		t.Errorf("it does not end: exit %d\n%s", code, errOut)
	}
	for _, c := range [][]string{{"edit", "network", "nobody"}, {"edit", "network/nobody", "--subresource=status"}} {
		if _, errOut, code := g.cli("", c...); code != 3 || !strings.Contains(errOut, "does not exist") {
			t.Errorf("%v: exit %d %s", c, code, errOut)
		}
	}
}

func TestAStatusIsEditedInItsStoredForm(t *testing.T) {
	g := start(t, "")
	g.cli(network("net-a", "web", 1500), "apply", "-f", "-")
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	status := func() any {
		return g.must(`{ network(name: "net-a") { statusJSON } }`).get("network", "statusJSON")
	}
	editor(t, `sed -i 's/^status: {}$/status: {id: "7", conditions: [{type: Available, status: "False"}]}/' "$1"`)
	g.expect(0, "Network default/net-a UPDATED\n", "", "edit", "network", "net-a", "--subresource=status")
	if got := fmt.Sprint(status()); got != "map[conditions:[map[status:False type:Available]] id:7]" {
		t.Error(got)
	}
	editor(t, fmt.Sprintf(`cp "$1" %s/seen; sed -i 's/"False"/"True"/' "$1"`, dir))
	g.expect(0, "Network default/net-a UPDATED\n", "", "edit", "network/net-a", "--subresource=status")
	const text = "kind: Network\nmetadata:\n  name: net-a\n  namespace: default\nstatus:\n  conditions:\n  - status: \"False\"\n    type: Available\n  id: \"7\"\n"
	if seen, err := os.ReadFile(filepath.Join(dir, "seen")); string(seen) != text {
		t.Errorf("%v\n%s", err, seen)
	}
	before := g.revision("net-a")
	editor(t, `sed -i 's/^kind:/kind:  /' "$1"`)
	g.expect(0, "Network default/net-a UNCHANGED\n", "", "edit", "network/net-a", "--subresource=status")
	editor(t, `sed -i 's/net-a/net-b/' "$1"`)
	if _, errOut, code := g.cli("", "edit", "network/net-a", "--subresource=status"); code != 1 || !strings.Contains(errOut, "only the status is written here") {
		t.Errorf("exit %d\n%s", code, errOut)
	}
	if g.revision("net-a") != before {
		t.Error("it was written")
	}
	path, _ := binary()
	editor(t, fmt.Sprintf(`%s label network net-a theirs=1 --server %s >/dev/null; sed -i 's/"True"/"Unknown"/' "$1"`, path, g.address))
	if _, errOut, code := g.cli("", "edit", "network/net-a", "--subresource=status"); code != 1 || !strings.Contains(errOut, "+  - status: Unknown") && !strings.Contains(errOut, `+  - status: "Unknown"`) || !strings.Contains(errOut, "kept in") {
		t.Errorf("exit %d\n%s", code, errOut)
	}
	if _, errOut, code := g.cli("", "edit", "network/net-a", "--subresource=scale"); code != 2 || !strings.Contains(errOut, "status is accepted") {
		t.Errorf("exit %d\n%s", code, errOut)
	}
}

// safes is a catalogue whose kind has a status with a map, and a field that is taken and not shown.
const safes = `
type Vault @resource(plural: "vaults", group: "example.org", version: "v1", scope: GLOBAL) { spec: VaultSpec!  status: VaultStatus }
type VaultSpec { size: Int  password: String @writeOnly @constraint(maxLength: 100) }
type VaultStatus { counts: [MapEntry!] @map(maxProperties: 9, maxLength: 9, keyMaxLength: 9)  parts: [VaultPart!] }
type VaultPart { name: String  sizes: [MapEntry!] @map(maxProperties: 9, maxLength: 9, keyMaxLength: 9) }
`

func TestMapsOfAStatusAreEditedAsObjects(t *testing.T) {
	g := start(t, "", "--schema", folder(t, map[string]string{"vault.graphqls": safes}))
	g.cli("apiVersion: example.org/v1\nkind: Vault\nmetadata: {name: v}\nspec: {}\n", "apply", "-f", "-")
	editor(t, `sed -i 's/^status: {}/status: {counts: {a: "1", b: "2"}, parts: [{name: p, sizes: {x: "3"}}]}/' "$1"`)
	g.expect(0, "Vault v UPDATED\n", "", "edit", "vault", "v", "--subresource=status")
	if got := fmt.Sprint(g.must(`{ vault(name: "v") { statusJSON } }`).get("vault", "statusJSON")); got != "map[counts:map[a:1 b:2] parts:[map[name:p sizes:map[x:3]]]]" {
		t.Error(got)
	}
	editor(t, `sed -i 's/b: "2"/c: "4"/' "$1"`)
	g.expect(0, "Vault v UPDATED\n", "", "edit", "vault", "v", "--subresource=status")
	if got := fmt.Sprint(g.must(`{ vault(name: "v") { status { counts { key value } } } }`).get("vault", "status", "counts")); got != "[map[key:a value:1] map[key:c value:4]]" {
		t.Error(got)
	}
	t.Setenv("TMPDIR", t.TempDir())
	editor(t, `grep -q sum "$1" || sed -i 's/^  parts:/  parts:\n  - sum: 1/' "$1"`)
	if _, errOut, code := g.cli("", "edit", "vault", "v", "--subresource=status"); code != 1 || !strings.Contains(errOut, "Vault v: status.parts.sum: is not a field of kind Vault; its fields here are name, sizes\n") || !strings.Contains(errOut, "kept in") {
		t.Errorf("a field that the kind does not have: exit %d\n%s", code, errOut)
	}
}

func TestWhatIsNotShownIsKeptPatchedAndSaidToDiffer(t *testing.T) {
	g := start(t, "", "--schema", folder(t, map[string]string{"vault.graphqls": safes}))
	const vault = "apiVersion: example.org/v1\nkind: Vault\nmetadata: {name: v}\nspec: {password: hunter2}\n"
	g.cli(vault, "apply", "-f", "-")
	has := func() bool { // an apply of the same password changes nothing
		out, _, _ := g.cli(vault, "apply", "-f", "-", "--dry-run")
		return out == "Vault v UNCHANGED (dry run)\n"
	}
	g.expect(0, "Vault v UPDATED\n", "", "label", "vault", "v", "a=b")
	g.expect(0, "Vault v UPDATED\n", "", "patch", "vault", "v", "-p", "spec: {size: 1}")
	g.expect(0, "Vault v UPDATED\n", "", "patch", "vault", "v", "-p", "spec: {size: null}")
	if !has() {
		t.Error("the password is lost")
	}
	out, errOut, code := g.cli(strings.Replace(vault, "hunter2", "other", 1), "diff", "-f", "-")
	if code != 1 || out != "" || errOut != "standard input:1: Vault v differs in write-only fields, which are not shown\n" {
		t.Errorf("exit %d\n%s%s", code, out, errOut)
	}
	g.expect(0, "Vault v UPDATED\n", "", "patch", "vault", "v", "-p", "spec: {password: null}")
	if has() {
		t.Error("null does not clear the password")
	}
}

func TestWhatNobodyAnswersIsNotSentFurther(t *testing.T) {
	g := start(t, "")
	g.stop()
	dir := folder(t, map[string]string{"a.yaml": network("net-a", "web", 1500), "b.yaml": network("net-b", "web", 1500), "c.yaml": network("net-c", "web", 1500)})
	_, errOut, code := g.cli("", "apply", "-f", dir)
	if code != 1 || strings.Count(errOut, "no answer from") != 1 || !strings.HasSuffix(errOut, "3 documents: 1 failed, 2 not sent\n") {
		t.Errorf("exit %d\n%s", code, errOut)
	}
}
