package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheEditorOpensAgainWithTheRefusalAtTheTop(t *testing.T) {
	g := start(t, "")
	g.cli(network("net-a", "web", 1500), "apply", "-f", "-")
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	// First a number that is too large, then, where the comment says so, one that is not.
	editor(t, fmt.Sprintf(`cp "$1" %[1]s/seen.$(ls %[1]s | grep -c seen); if grep -q '^# - spec.resource.mtu: must be at most 9216' "$1"; then sed -i 's/mtu: 90000/mtu: 9000/' "$1"; else sed -i 's/mtu: 1500/mtu: 90000/' "$1"; fi`, dir))
	g.expect(0, "Network default/net-a UPDATED\n", "Network net-a: spec.resource.mtu: must be at most 9216 (VALIDATION_FAILED)\n", "edit", "network/net-a")
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
	g.cli("", "control", "network")
	g.cli(credentials("s"), "apply", "-f", "-")
	g.cli(network("net-a", "web", 1500), "apply", "-f", "-")
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	status := func() any {
		return g.must(`{ network(name: "net-a") { statusJSON } }`).get("network", "statusJSON")
	}
	editor(t, `sed -i '/^status:/,$d' "$1"; echo 'status: {id: "7", conditions: [{type: Available, status: "False"}]}' >> "$1"`)
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

func TestADryRunOfAnEditWritesNothing(t *testing.T) {
	g := start(t, "")
	g.cli(network("net-a", "web", 1500), "apply", "-f", "-")
	before := g.revision("net-a")
	editor(t, `sed -i 's/mtu: 1500/mtu: 9000/; s/^status:$/status:\n  id: "7"/' "$1"`)
	g.expect(0, "Network default/net-a UPDATED (dry run)\n", "", "edit", "network", "net-a", "--dry-run")
	t.Setenv("SLUICE_DRY_RUN", "true")
	g.expect(0, "Network default/net-a UPDATED (dry run)\n", "", "edit", "network", "net-a")
	g.expect(0, "Network default/net-a UPDATED (dry run)\n", "", "edit", "network", "net-a", "--subresource=status")
	if g.revision("net-a") != before {
		t.Error("it was written")
	}
}

func TestABlankVariableNamesNoEditor(t *testing.T) {
	g := start(t, "")
	g.cli(network("net-a", "web", 1500), "apply", "-f", "-")
	t.Setenv("VISUAL", " ")
	t.Setenv("SLUICE_EDITOR", "")
	t.Setenv("EDITOR", "sed -i s/1500/9000/")
	g.expect(0, "Network default/net-a UPDATED\n", "", "edit", "network", "net-a")
}

// safes is a catalogue whose kind has a status with a map, and a field that is taken and not shown.
const safes = `
type Vault @resource(plural: "vaults", group: "example.org", version: "v1", scope: GLOBAL) { spec: VaultSpec!  status: VaultStatus }
type VaultSpec { size: Int  password: String @writeOnly @constraint(maxLength: 100) }
type VaultStatus { counts: [MapEntry!] @map @constraint(maxProperties: 9, maxLength: 9, keyMaxLength: 9)  parts: [VaultPart!] }
type VaultPart { name: String  sizes: [MapEntry!] @map @constraint(maxProperties: 9, maxLength: 9, keyMaxLength: 9) }
`

func TestMapsOfAStatusAreEditedAsObjects(t *testing.T) {
	g := start(t, "", "--catalogue", folder(t, map[string]string{"vault.graphqls": safes}))
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

func TestEdit_TakesLongNamesAndCommandsWithQuotes(t *testing.T) {
	g := startWith(t, "s")
	name := strings.Repeat("n", 253)
	if _, errOut, code := g.cli(network(name, "web", 1500), "apply", "-f", "-"); code != 0 {
		t.Fatal(errOut)
	}
	dir := filepath.Join(t.TempDir(), "my editors")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "ed")
	if err := os.WriteFile(path, []byte("#!/bin/sh\nsed -i \"s/$1/$2/\" \"$3\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("EDITORS", dir)
	for i, command := range []string{"'" + path + "' 'mtu: [0-9]*' \"mtu: 1000\"", strings.ReplaceAll(path, " ", `\ `) + ` mtu:.* mtu:\ 1001`, `"$EDITORS/ed" "mtu:.*" "mtu: 1002"`} {
		t.Setenv("SLUICE_EDITOR", command)
		g.expect(0, "Network default/"+name+" UPDATED\n", "", "edit", "network", name)
		if !strings.Contains(g.stored(name), fmt.Sprintf("mtu: %d\n", 1000+i)) {
			t.Errorf("%s: %s", command, g.stored(name))
		}
	}
	t.Setenv("SLUICE_EDITOR", `"unfinished`)
	if _, errOut, code := g.cli("", "edit", "network", name); code != 2 || !strings.Contains(errOut, "is no command of an editor") {
		t.Errorf("exit %d %s", code, errOut)
	}
}

// TestEdit_TakesTheTextAsEditorsWriteIt: in place or in a new file, with other ends of lines, with a byte order mark; and
// nothing is changed when an editor leaves no text.
func TestEdit_TakesTheTextAsEditorsWriteIt(t *testing.T) {
	g := startWith(t, "s")
	if _, errOut, code := g.cli(network("a", "web", 1000), "apply", "-f", "-"); code != 0 {
		t.Fatal(errOut)
	}
	t.Setenv("TMPDIR", t.TempDir()) // the texts that are kept
	const replaced = ` "$1" > "$1.new"; mv "$1.new" "$1"`
	mtu := 1000
	for name, script := range map[string]string{
		"a new file":          `sed "s/mtu: .*/mtu: NEW/"` + replaced,
		"CRLF":                `sed "s/mtu: .*/mtu: NEW/; s/\$/\r/"` + replaced,
		"a byte order mark":   `(printf '\357\273\277'; sed "s/mtu: .*/mtu: NEW/" "$1") > "$1.new"; mv "$1.new" "$1"`,
		"without a revision":  `sed -i "/revision:/d; s/mtu: .*/mtu: NEW/" "$1"`,
		"without a last line": `sed "s/mtu: .*/mtu: NEW/" "$1" > "$1.new"; printf '%s' "$(cat "$1.new")" > "$1"`,
	} {
		t.Run(name, func(t *testing.T) {
			mtu++
			editor(t, strings.Replace(script, "NEW", fmt.Sprint(mtu), 1))
			g.expect(0, "Network default/a UPDATED\n", "", "edit", "network", "a")
			if got := g.stored("a"); !strings.Contains(got, fmt.Sprintf("mtu: %d\n", mtu)) {
				t.Errorf("it is %s, want mtu %d", got, mtu)
			}
		})
	}
	before := g.stored("a")
	for script, c := range map[string]struct {
		code int
		says string
	}{
		`: > "$1"`: {0, "no changes made"},
		`rm "$1"`:  {1, "no such file"},
		`sed -i "s/mtu: .*/mtu: 1/" "$1"; exit 3`: {1, "nothing was changed, the text is in"},
	} {
		editor(t, script)
		out, errOut, code := g.cli("", "edit", "network", "a")
		if code != c.code || !strings.Contains(out+errOut, c.says) {
			t.Errorf("%s: exit %d %s%s", script, code, out, errOut)
		}
		if got := g.stored("a"); got != before {
			t.Errorf("%s: it is %s", script, got)
		}
	}
}
