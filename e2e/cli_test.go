package e2e_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const networkManifest = `apiVersion: openstack.k-orc.cloud/v1alpha1
kind: Network
metadata:
  name: net-a
spec:
  cloudCredentialsRef:
    cloudName: openstack
    secretName: cloud-config
  managementPolicy: managed
  resource:
    description: |
      Two lines
      of text
    tags:
    - foo
    - bar
`

const unknownManifest = `apiVersion: openstack.k-orc.cloud/v1alpha1
kind: Teapot
metadata:
  name: t
spec: {}
`

func (g *gateway) position() string {
	g.t.Helper()
	c := g.dial()
	defer c.close()
	c.subscribe("1", `subscription { networkChanges { type cursor } }`, nil)
	return c.next("1").get("networkChanges", "cursor").(string)
}

func TestApplyAndGetRoundTrip(t *testing.T) {
	g := start(t, "")
	g.gives("cloud-config", "managed")
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("a.yaml", networkManifest)
	write("b.yml", "# comment\n---\n"+unknownManifest+"---\n"+strings.Replace(networkManifest, "net-a", "net-b", 1))
	write("notes.txt", "not a manifest")

	out, errOut, code := g.cli("", "apply", "-n", "managed", "-f", dir)
	if code != 1 || !strings.Contains(out, "Network managed/net-a CREATED") || !strings.Contains(out, "Network managed/net-b CREATED") {
		t.Errorf("exit %d\n%s%s", code, out, errOut)
	}
	if !strings.Contains(errOut, "b.yml:4: Teapot t: ") || !strings.Contains(errOut, `kind "Teapot" is not known; known kinds: AccessBinding, AccessRole, AddressScope, `) {
		t.Errorf("stderr %s", errOut)
	}

	before, stored := g.position(), contents(t, g)
	out, _, _ = g.cli("", "apply", "-n", "managed", "-f", filepath.Join(dir, "a.yaml"))
	if !strings.Contains(out, "Network managed/net-a UNCHANGED") {
		t.Errorf("again: %s", out)
	}
	if after := g.position(); after != before {
		t.Errorf("position %s, was %s: something was written", after, before)
	}
	if contents(t, g) != stored {
		t.Error("the store was written")
	}

	out, _, code = g.cli("", "get", "networks", "-n", "managed", "-o", "yaml")
	if code != 0 {
		t.Fatalf("get: exit %d", code)
	}
	docs := strings.Split(out, "---\n")
	if len(docs) != 2 {
		t.Fatalf("get: %s", out)
	}
	wantSameSpec(t, docs[0], networkManifest)
	again, errOut, code := g.cli(out, "apply", "-f", "-")
	if code != 0 || strings.Count(again, "UNCHANGED") != 2 {
		t.Errorf("what get printed: exit %d\n%s%s", code, again, errOut)
	}
	out, _, _ = g.cli("", "get", "NETWORK", "-n", "managed", "-o", "json")
	if again, errOut, code = g.cli(out, "apply", "-f", "-"); code != 0 || strings.Count(again, "UNCHANGED") != 2 {
		t.Errorf("what get printed as JSON: exit %d\n%s%s", code, again, errOut)
	}
	if out, _, _ = g.cli("", "get", "network", "net-b", "-n", "managed", "-o", "name"); out != "network/net-b\n" {
		t.Errorf("name: %q", out)
	}
	if out, _, _ = g.cli("", "get", "networks", "-A"); !strings.Contains(out, "NAMESPACE") || !strings.Contains(out, "net-b") {
		t.Errorf("table: %q", out)
	}
	_, errOut, code = g.cli("", "get", "network", "nobody")
	if code != 3 || !strings.Contains(errOut, `Network "nobody" does not exist in namespace "default" (NOT_FOUND)`) {
		t.Errorf("absent: exit %d %s", code, errOut)
	}
}

// contents is all that the store of a gateway holds.
func contents(t *testing.T, g *gateway) string {
	t.Helper()
	if os.Getenv(storeVariable) == "redis" {
		client, out := server.Server(t).Client(), ""
		keys, err := client.Keys(t.Context(), prefix(g.data)+"*").Result()
		slices.Sort(keys)
		for _, key := range keys {
			out += key + client.Dump(t.Context(), key).Val()
		}
		if err != nil || out == "" {
			t.Fatalf("%d keys: %v", len(keys), err)
		}
		return out
	}
	files, err := filepath.Glob(filepath.Join(g.data, "*.db"))
	if err != nil || len(files) != 1 {
		t.Fatalf("data files %v %v", files, err)
	}
	raw, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestAWarningOfAnUnknownVariableNamesEachOfItsCommandOnce(t *testing.T) {
	t.Setenv("SLUICE_SOMETHING_ELSE", "1")
	_, stderr, _ := sluice(t, "", "serve", "--data", "")
	warning, problem, _ := strings.Cut(stderr, "\n")
	_, list, found := strings.Cut(warning, "sluice: warning: unknown environment variable SLUICE_SOMETHING_ELSE; known are ")
	if !found || !strings.HasPrefix(problem, "sluice: data: it is empty") {
		t.Fatal(stderr)
	}
	known := strings.Split(strings.TrimSpace(list), ", ")
	if !slices.Contains(known, "SLUICE_LISTEN") || !slices.Contains(known, "SLUICE_ENCRYPTION_KEYS") || slices.Contains(known, "SLUICE_EDITOR") || slices.Contains(known, "SLUICE_FOR") || slices.Contains(known, "SLUICE_HELP") {
		t.Errorf("known are %v", known)
	}
	if once := slices.Compact(slices.Sorted(slices.Values(known))); !slices.Equal(known, once) {
		t.Errorf("known are %v", known)
	}
}

func TestMistakesOnTheCommandLineAreOneClearLine(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	g := start(t, data, "--data", data)
	foreign := t.TempDir()
	if err := os.WriteFile(filepath.Join(foreign, "sluice.db"), []byte(strings.Repeat("this is no store ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	blocked := filepath.Join(t.TempDir(), "file")
	config := filepath.Join(t.TempDir(), "sluice.yaml")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(config, []byte("lisen: 127.0.0.1:0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	port := strings.TrimPrefix(g.address, "http://")
	for _, c := range []struct {
		name string
		args []string
		code int
		says string
	}{
		{"port in use", []string{"serve", "--listen", port, "--data", t.TempDir()}, 1, port + " is in use"},
		{"second process", []string{"serve", "--listen", "127.0.0.1:0", "--data", g.data}, 1, "in use by another process"},
		{"foreign file", []string{"serve", "--listen", "127.0.0.1:0", "--data", foreign}, 1, "data: "},
		{"data is a file", []string{"serve", "--listen", "127.0.0.1:0", "--data", filepath.Join(blocked, "x")}, 1, "data: "},
		{"unknown flag", []string{"serve", "--lisen", "x"}, 2, "unknown flag: --lisen"},
		{"unknown key", []string{"serve", "--config", config}, 2, `unknown key "lisen"; did you mean "listen"?`},
		{"no config", []string{"serve", "--config", config + "x"}, 2, "configuration file"},
		{"unknown command", []string{"sevre"}, 2, "sevre"},
		{"open to the network", []string{"serve", "--listen", "0.0.0.0:0", "--data", t.TempDir()}, 2, "--allow-anonymous"},
		{"bad value", []string{"serve", "--limit-depth", "deep"}, 2, "limit-depth"},
		{"negative limit", []string{"serve", "--limit-depth", "-1", "--data", t.TempDir()}, 2, "limit-depth"},
		{"no folder", []string{"serve", "--data", ""}, 2, "data: it is empty"},
		{"two stores", []string{"serve", "--data", t.TempDir(), "--redis", "redis://127.0.0.1:1"}, 2, "choose one of the two stores"},
		{"a file without an end", []string{"serve", "--config", "/dev/zero"}, 2, "more than the 1048576 bytes"},
		{"a host with a port", []string{"serve", "--allowed-hosts", "a.example.com:80"}, 2, "allowed-hosts"},
		{"a selector that is not understood", []string{"get", "networks", "-l", "a>b", "--server", g.address}, 2, `selector: "a>b"`},
		{"an empty selector", []string{"get", "networks", "-l", "", "--server", g.address}, 2, `selector: ""`},
		{"nothing to apply", []string{"apply"}, 2, "-f FILE"},
		{"no such file", []string{"apply", "-f", "/nowhere.yaml"}, 2, "/nowhere.yaml"},
		{"a folder without manifests", []string{"apply", "-f", t.TempDir()}, 2, "holds no .yaml"},
		{"no such patch", []string{"patch", "net/a", "--patch-file", "/nowhere.yaml"}, 2, "/nowhere.yaml"},
		{"an empty patch", []string{"patch", "net/a", "-p", ""}, 2, "an object is wanted"},
		{"a patch that is null", []string{"patch", "net/a", "-p", "null"}, 2, "an object is wanted"},
		{"a patch that is a list", []string{"patch", "net/a", "-p", "[]"}, 2, "an object is wanted"},
		{"a patch that is no YAML", []string{"patch", "net/a", "-p", "{"}, 2, "patch: "},
		{"unknown output", []string{"get", "networks", "-o", "xml", "--server", g.address}, 2, "accepted are table, wide, yaml, json, manifest, name, jsonpath=TEMPLATE"},
		{"unknown kind", []string{"get", "teapots", "--server", g.address}, 1, "known kinds: "},
		{"nobody there", []string{"get", "networks", "--server", "http://127.0.0.1:1"}, 1, "no answer from http://127.0.0.1:1/graphql: nothing listens there\n"},
		{"no URL", []string{"get", "networks", "--server", "localhost"}, 2, "server:"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, errOut, code := sluice(t, "", c.args...)
			if code != c.code || !strings.Contains(errOut, c.says) || strings.Count(errOut, "\n") != 1 {
				t.Errorf("exit %d, stderr %q; want exit %d and one line with %q", code, errOut, c.code, c.says)
			}
		})
	}
	for text, says := range map[string]string{"\xff": "is not UTF-8", networkManifest + "---\n" + strings.Replace(networkManifest, "foo", "other", 1): "but differ"} {
		if _, errOut, code := g.cli(text, "apply", "-f", "-"); code != 2 || !strings.Contains(errOut, says) {
			t.Errorf("%q: exit %d %s", text, code, errOut)
		}
	}
	if _, errOut, code := g.cli("# nothing\n", "apply", "-f", "-"); code != 2 || !strings.Contains(errOut, "no document") {
		t.Errorf("empty input: exit %d %s", code, errOut)
	}
	for _, arg := range []string{"version", "--version"} {
		if out, _, code := sluice(t, "", arg); code != 0 || !strings.HasPrefix(out, "sluice ") {
			t.Errorf("%s: exit %d %s", arg, code, out)
		}
	}
}
