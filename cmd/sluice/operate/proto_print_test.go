package operate

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/cmd/sluice/commandtest"
)

func TestProtoPrint_KeepsTheNumbers(t *testing.T) {
	dir := t.TempDir()
	kinds, numbers := filepath.Join(dir, "kinds"), filepath.Join(dir, "numbers.txt")
	if err := os.Mkdir(kinds, 0o700); err != nil {
		t.Fatal(err)
	}
	commandtest.WriteFile(t, kinds, "shelf.graphqls", shelves)
	run := func(args ...string) (out, errOut string, code int) {
		t.Helper()
		return commandtest.Run(t, newRoot, append([]string{"proto", "print", kinds, "--numbers", numbers}, args...)...)
	}
	out, errOut, code := run("--package", "acme.v1")
	if code != 0 || !strings.Contains(out, "package acme.v1;") || !strings.Contains(out, "optional string label = 2;") || !strings.Contains(errOut, "commit it") {
		t.Fatal(code, out, errOut)
	}
	before, err := os.ReadFile(numbers)
	if err != nil {
		t.Fatal(err)
	}
	again, errOut, code := run()
	if after, _ := os.ReadFile(numbers); code != 0 || again != out || errOut != "" || string(after) != string(before) {
		t.Error("the second time it is another file:", code, errOut)
	}
	// A field before the others gets the next number.
	commandtest.WriteFile(t, kinds, "shelf.graphqls", strings.Replace(shelves, "  width: Int", "  depth: Int\n  width: Int", 1))
	out, _, code = run("--to", filepath.Join(dir, "kinds.proto"))
	text, err := os.ReadFile(filepath.Join(dir, "kinds.proto"))
	if err != nil || code != 0 || out != "" || !strings.Contains(string(text), "depth = 3;") || !strings.Contains(string(text), "width = 1;") {
		t.Error(err, code, out, string(text))
	}
	if _, errOut, code = run("--package", "acme.v2"); code != 2 || !strings.Contains(errOut, "another package needs another file of numbers") {
		t.Error(code, errOut)
	}
	if err := os.WriteFile(numbers, []byte("package acme.v1\nmessage M\n0 string a a\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, errOut, code = run(); code != 2 || !strings.Contains(errOut, "numbers.txt: line 3: ") {
		t.Error(code, errOut)
	}
}

// TestProtoPrint_HasTheKindsThatAreServed while the next major is a candidate: those of the major before.
func TestProtoPrint_HasTheKindsThatAreServed(t *testing.T) {
	dir := t.TempDir()
	numbers := filepath.Join(t.TempDir(), "numbers.txt")
	commandtest.WriteFile(t, dir, "shelves.graphqls", shelves)
	commandtest.Must(t, newRoot, "catalogue", "release", "1.0", dir)
	racks := strings.Replace(shelves, "type Shelf ", "type Rack ", 1)
	commandtest.WriteFile(t, dir, "shelves.graphqls", strings.Replace(racks, `plural: "shelves"`, `plural: "racks"`, 1))
	commandtest.Must(t, newRoot, "catalogue", "release", "2.0", dir)
	for states, want := range map[string]string{"v2.0: {candidate: true}\n": "Shelf", "{}\n": "Rack"} {
		other := map[string]string{"Shelf": "Rack", "Rack": "Shelf"}[want]
		commandtest.WriteFile(t, filepath.Join(dir, "versions"), "versions.yaml", states)
		out := commandtest.Must(t, newRoot, "proto", "print", dir, "--numbers", numbers)
		if !strings.Contains(out, "service "+want+"Service {") || strings.Contains(out, "service "+other+"Service {") {
			t.Errorf("%s: %s", states, out)
		}
	}
}

func TestProtoPrint_NeedsAFileOfNumbers(t *testing.T) {
	if _, errOut, code := commandtest.Run(t, newRoot, "proto", "print"); code != 2 || !strings.Contains(errOut, "numbers: name the file") {
		t.Error(code, errOut)
	}
}

func TestServeCheck_LooksAtTheNumbers(t *testing.T) {
	dir := t.TempDir()
	commandtest.WriteFile(t, dir, "shelf.graphqls", shelves)
	numbers := filepath.Join(t.TempDir(), "numbers.txt")
	if err := os.WriteFile(numbers, []byte("package acme.v1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"--catalogue", dir, "--data", filepath.Join(t.TempDir(), "data"), "--service-listen", "127.0.0.1:0", "--field-numbers", numbers}
	lines, _, code := checkServe(t, args...)
	if code != 1 || len(lines) != 1 || !strings.Contains(lines[0], "field-numbers: "+numbers+": there are no numbers for ") || !strings.Contains(lines[0], "Shelf.spec") {
		t.Error(code, lines)
	}
	commandtest.Must(t, newRoot, "proto", "print", dir, "--numbers", numbers, "--to", filepath.Join(t.TempDir(), "kinds.proto"))
	if lines, notes, code := checkServe(t, args...); code != 0 {
		t.Error(lines, notes)
	}
}
