package e2e_test

import (
	"fmt"
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
	g.expect(1, "", "Network net-a: stage already has the value \"prod\"; use --overwrite to replace it\n", "label", "network/net-a", "stage=test")
	g.expect(0, "Network default/net-a UPDATED (dry run)\n", "", "label", "network/net-a", "stage=test", "--overwrite", "--dry-run")
	g.expect(1, "", `sluice: Network "net-a" in namespace "default" was changed since you read it: revision "1-1" is expected, "`+before+"\" is current; read it again and repeat the change (CONFLICT)\n",
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
		{2, "is not UTF-8", []string{"annotate", "network", "net-a", "a=\xff"}},
		{2, "KEY=VALUE or KEY-", []string{"label", "network", "net-a", "=b"}},
		{2, "as KIND NAME or as KIND/NAME", []string{"label", "network", "a=b"}},
		{2, "selector", []string{"label", "networks", "-l", "", "a=b"}},
		{2, "one KIND", []string{"label", "network/net-a", "-l", "a", "a=b"}},
		{1, "metadata.labels[0].key: ", []string{"label", "network", "net-a", "-a=b"}},
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
	t.Parallel()
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
		{2, "an object is wanted", []string{"network", "net-a", "-p", "[]"}},
		{2, "patch: not acceptable as YAML", []string{"network", "net-a", "-p", "a: [", "--revision", "1-1"}},
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

func TestAPatchSaysWhatTheResourceIsToBeBefore(t *testing.T) {
	t.Parallel()
	g := start(t, "")
	g.cli(network("net-a", "web", 1500), "apply", "-f", "-")
	before := g.revision("net-a")
	uid, _, _ := g.cli("", "get", "network", "net-a", "-o", "jsonpath={.metadata.uid}")
	patch := func(metadata string) string {
		return "{metadata: {" + metadata + "}, spec: {resource: {mtu: 9000}}}"
	}
	for _, c := range []struct {
		code int
		says string
		args []string
	}{
		{1, `revision "1-1" is expected`, []string{patch("revision: 1-1")}},
		{1, `it has the uid "` + uid + `", and "another" is expected`, []string{patch("uid: another")}},
		{2, `revision: "1-1", and the patch says "1-2"`, []string{patch("revision: 1-2"), "--revision", "1-1"}},
		{2, "metadata.revision: it says what the resource is to have before", []string{patch("revision: null")}},
		{2, "metadata.generation: only the gateway writes it", []string{patch("generation: 7")}},
		{2, "metadata.resourceVersion: only the gateway writes it", []string{patch("resourceVersion: '7'")}},
		{2, "metadata.finalizers: a patch does not write them; sluice finalize does", []string{patch("finalizers: [example.org/cloud]")}},
		{2, "edit --subresource=status does", []string{"{status: {}}"}},
	} {
		args := append([]string{"patch", "network", "net-a", "-p"}, c.args...)
		if _, errOut, code := g.cli("", args...); code != c.code || !strings.Contains(errOut, c.says) {
			t.Errorf("%v: exit %d, want %d and %q\n%s", c.args, code, c.code, c.says, errOut)
		}
	}
	if g.revision("net-a") != before {
		t.Error("it was written")
	}
	g.expect(0, "Network default/net-a UPDATED\n", "", "patch", "network", "net-a", "-p", patch("revision: "+before+", uid: "+strings.TrimSpace(uid)))
}

func TestDeletionByNamesLabelsAndFiles(t *testing.T) {
	t.Parallel()
	g := start(t, "")
	for _, name := range []string{"net-a", "net-b", "net-c"} {
		g.cli(network(name, "web", 1500), "apply", "-f", "-")
	}
	g.cli(network("net-d", "db", 1500), "apply", "-f", "-")
	g.cli(network("net-a", "web", 1500), "apply", "-n", "elsewhere", "-f", "-")
	dir := folder(t, map[string]string{"a.yaml": whole(network("net-d", "db", 1500), "1-1") + "---\n" + strings.Replace(network("net-a", "x", 1500), "name: net-a", "name: net-a\n  namespace: elsewhere", 1), "more/b.yaml": "kind: Network\n"})

	g.expect(0, "Network net-d DELETED (dry run)\nNetwork elsewhere/net-a DELETED (dry run)\n", "", "delete", "-f", dir, "--dry-run")
	g.expect(0, "Network net-d DELETED\nNetwork elsewhere/net-a DELETED\n", "", "delete", "-f", dir)
	g.expect(3, "", "sluice: Network \"net-d\" in namespace \"default\" does not exist (NOT_FOUND)\nsluice: Network \"net-a\" in namespace \"elsewhere\" does not exist (NOT_FOUND)\n", "delete", "-f", dir)
	g.expect(0, "", "", "delete", "-f", dir, "--ignore-not-found")
	g.expect(0, "Network default/net-a DELETED (dry run)\nNetwork default/net-b DELETED (dry run)\nNetwork default/net-c DELETED (dry run)\n", "", "delete", "networks", "-l", "team=web", "--dry-run")
	g.expect(0, "Network net-a DELETED\n", "", "delete", "network/net-a", "network/nobody", "--ignore-not-found")
	g.expect(0, "", "no resource has these labels\n", "delete", "networks,subnets", "-l", "team=nobody")
	g.expect(0, "Network net-b DELETED (dry run)\n", "", "delete", "network", "net-b", "--revision", g.revision("net-b"), "--dry-run")
	g.expect(0, "Network default/net-b DELETED\nNetwork default/net-c DELETED\n", "", "delete", "networks,subnets", "-l", "team=web")
	for _, ns := range []string{"m", "n"} {
		g.cli(network("net-a", "web", 1500), "apply", "-n", ns, "-f", "-")
	}
	g.expect(0, "Network m/net-a UPDATED\nNetwork n/net-a UPDATED\n", "", "label", "networks", "-A", "-l", "team=web", "stage=x")
	g.expect(0, "Network m/net-a DELETED\nNetwork n/net-a DELETED\n", "", "delete", "networks", "-A", "-l", "stage=x")
	g.expect(1, "", dir+"/more/b.yaml:1: document 1: metadata.name is missing, or not a string\n", "delete", "-f", filepath.Join(dir, "more", "b.yaml"))
	g.expect(0, "", "no networks\n", "get", "networks", "-A", "-o", "name")
	for _, c := range []struct {
		code int
		says string
		args []string
	}{
		{2, `selector: ""`, []string{"networks", "-l", ""}},
		{2, "one KIND", []string{"networks", "net-a", "-l", "a=b"}},
		{2, "neither names", []string{"networks", "net-a", "-f", dir}},
		{2, "neither names, -l, -A", []string{"-f", dir, "-A"}},
		{2, "as KIND NAME or as KIND/NAME", []string{"networks"}},
		{2, "as KIND NAME or as KIND/NAME", nil},
		{2, "KIND/NAME is accepted", []string{"network/net-a", "net-b"}},
		{2, "one resource", []string{"network", "a", "b", "--revision", "1-1"}},
		{2, "it goes with -l", []string{"network", "a", "-A"}},
		{1, "known kinds", []string{"teapots", "a"}},
	} {
		if _, errOut, code := g.cli("", append([]string{"delete"}, c.args...)...); code != c.code || !strings.Contains(errOut, c.says) {
			t.Errorf("%v: exit %d, want %d and %q\n%s", c.args, code, c.code, c.says, errOut)
		}
	}
}

func TestWhatIsNotShownIsKeptPatchedAndSaidToDiffer(t *testing.T) {
	t.Parallel()
	g := start(t, "", "--catalogue", folder(t, map[string]string{"vault.graphqls": safes}))
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
	t.Parallel()
	g := start(t, "")
	g.stop()
	dir := folder(t, map[string]string{"a.yaml": network("net-a", "web", 1500), "b.yaml": network("net-b", "web", 1500), "c.yaml": network("net-c", "web", 1500)})
	_, errOut, code := g.cli("", "apply", "-f", dir)
	if code != 1 || strings.Count(errOut, "no answer from") != 1 || !strings.HasSuffix(errOut, "3 documents: 1 failed, 2 not sent\n") {
		t.Errorf("exit %d\n%s", code, errOut)
	}
}

func TestAPatchOfASecretLosesNoOtherKey(t *testing.T) {
	t.Parallel()
	g := start(t, "")
	g.cli("apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {a: one, b: two}\n", "apply", "-f", "-")
	for _, patch := range []string{"data: {b: dGhyZWU=}", "data: {b: null}", `{"data": {}}`} {
		_, errOut, code := g.cli("", "patch", "secret", "s", "-p", patch)
		if code != 2 || !strings.Contains(errOut, "data is write-only") || !strings.Contains(errOut, "use stringData") {
			t.Errorf("%s: exit %d\n%s", patch, code, errOut)
		}
	}
	g.expect(0, "Secret default/s UPDATED\n", "", "patch", "secret", "s", "-p", "stringData: {b: three}")
	for key, want := range map[string]string{"a": "one", "b": "three"} {
		if out, errOut, code := g.cli("", "reveal", "secret", "s", "--key", key); code != 0 || out != want {
			t.Errorf("%s: exit %d, %q\n%s", key, code, out, errOut)
		}
	}
}

func TestALabelOutlivesTheFileThatDoesNotHaveIt(t *testing.T) {
	t.Parallel()
	g := start(t, "")
	file := network("net-a", "web", 1500)
	apply := func(outcome, manifest string, args ...string) {
		t.Helper()
		if out, errOut, code := g.cli(manifest, append([]string{"apply", "-f", "-"}, args...)...); code != 0 || out != "Network default/net-a "+outcome+"\n" {
			t.Errorf("exit %d\n%s%s", code, out, errOut)
		}
	}
	has := func(labels string) {
		t.Helper()
		if out, _, _ := g.cli("", "get", "network", "net-a", "-o", "jsonpath={.metadata.labels}"); out != labels {
			t.Errorf("got %swant %s", out, labels)
		}
	}
	apply("CREATED", file)
	g.expect(0, "Network default/net-a UPDATED\n", "", "label", "network", "net-a", "stage=prod")
	if out, errOut, code := g.cli(file, "diff", "-f", "-"); code != 0 || out != "" {
		t.Errorf("exit %d\n%s%s", code, out, errOut)
	}
	apply("UNCHANGED", file)
	has(`{"stage":"prod","team":"web"}`)
	other := strings.Replace(file, "team: web", "tier: front", 1)
	if out, _, code := g.cli(other, "diff", "-f", "-"); code != 1 || !strings.Contains(out, "\n     stage: prod\n-    team: web\n+    tier: front\n") {
		t.Errorf("exit %d\n%s", code, out)
	}
	if out, _, code := g.cli(other, "diff", "-f", "-", "--field-manager", "ci"); code != 1 || !strings.Contains(out, "\n     stage: prod\n     team: web\n+    tier: front\n") {
		t.Errorf("exit %d\n%s", code, out)
	}
	apply("UPDATED", other, "--field-manager", "ci")
	has(`{"stage":"prod","team":"web","tier":"front"}`)
	apply("UPDATED", other)
	has(`{"stage":"prod","tier":"front"}`)
	g.expect(0, "Network default/net-a UPDATED\n", "", "patch", "network", "net-a", "-p", "metadata: {labels: {stage: null, by: hand}}")
	apply("UNCHANGED", other)
	has(`{"by":"hand","tier":"front"}`)
}
