package e2e_test

import (
	"bufio"
	"encoding/json"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// promised are the words in backquotes, or in braces within backquotes, that
// docs/compatibility.md has between two texts, wherever its lines end.
func promised(t *testing.T, after, before string) []string {
	t.Helper()
	page, err := os.ReadFile("../docs/compatibility.md")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(string(page)), " ")
	_, rest, found := strings.Cut(text, after)
	part, _, ended := strings.Cut(rest, before)
	var out []string
	for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(part, -1) {
		for word := range strings.SplitSeq(strings.Trim(m[1], "{}"), ", ") {
			if word != "..." {
				out = append(out, word)
			}
		}
	}
	if !found || !ended || len(out) == 0 {
		t.Fatalf("docs/compatibility.md has nothing between %q and %q", after, before)
	}
	return out
}

// missing are the words that an object does not have as keys.
func missing(object map[string]any, words []string) (out []string) {
	for _, word := range words {
		if _, ok := object[word]; !ok {
			out = append(out, word)
		}
	}
	return out
}

// The keys of errors, in all answers that the transcripts have.
func TestErrorsHaveTheKeysThatArePromised(t *testing.T) {
	t.Parallel()
	known := append(promised(t, "These keys keep their meaning", "An error may have"), "code", "requestId")
	seen := map[string]bool{}
	var visit func(value any)
	visit = func(value any) {
		switch v := value.(type) {
		case []any:
			for _, one := range v {
				visit(one)
			}
		case map[string]any:
			if ext, ok := v["extensions"].(map[string]any); ok && v["message"] != nil {
				for key := range ext {
					seen[key] = true
				}
			}
			for _, one := range v {
				visit(one)
			}
		}
	}
	err := filepath.WalkDir("../graph/server/testdata/transcripts", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		text := strings.ReplaceAll(string(raw), "\n< ", "\n")
		for i, c := range text {
			if c == '{' && (i == 0 || text[i-1] == '\n' || text[i-1] == ' ') {
				var object map[string]any
				if json.NewDecoder(strings.NewReader(text[i:])).Decode(&object) == nil {
					visit(object)
				}
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range slices.Sorted(maps.Keys(seen)) {
		if !slices.Contains(known, key) {
			t.Errorf("errors have the key %q, which docs/compatibility.md does not promise", key)
		}
	}
	if len(seen) < 15 {
		t.Errorf("the transcripts have only %d keys of errors", len(seen))
	}
}

func TestOutputForProgramsIsAsPromised(t *testing.T) {
	t.Parallel()
	g := start(t, "")
	object := func(text string) (out map[string]any) {
		t.Helper()
		if err := json.Unmarshal([]byte(text), &out); err != nil {
			t.Fatalf("%v in %q", err, text)
		}
		return out
	}
	written := promised(t, "and `finalize` print one", "a line. Keys")
	manifest := "apiVersion: openstack.k-orc.cloud/v1alpha1\nkind: Network\nmetadata: {name: net-a}\nspec: {cloudCredentialsRef: {secretName: s, cloudName: c}, resource: {}}\n"
	for _, args := range [][]string{
		{"create", "-f", "-"}, {"apply", "-f", "-"}, {"label", "network", "net-a", "a=b"}, {"annotate", "network", "net-a", "a=b"},
		{"patch", "network", "net-a", "-p", "spec: {resource: {mtu: 1400}}"}, {"finalize", "network", "net-a", "--add", "example.org/x"}, {"delete", "network", "net-a"},
	} {
		for _, dry := range []bool{true, false} {
			args, left := append(slices.Clone(args), "-o", "json"), written
			if dry {
				args = append(args, "--dry-run")
			} else {
				left = slices.DeleteFunc(slices.Clone(left), func(key string) bool { return key == "dryRun" })
			}
			out, errOut, code := g.cli(manifest, args...)
			if code != 0 {
				t.Fatalf("%v: %d %s", args, code, errOut)
			}
			// A dry run stores no revision, and a deletion answers none; a dry creation has no uid.
			lacks := missing(object(out), left)
			if rest := slices.DeleteFunc(lacks, func(key string) bool { return key == "revision" || dry && key == "uid" }); len(rest) > 0 {
				t.Errorf("%v lacks %v: %s", args, rest, out)
			}
		}
	}
	out, _, _ := g.cli("", "get", "networks", "-o", "json")
	if list := object(out); list["kind"] != "List" || list["items"] == nil {
		t.Errorf("get -o json of several: %s", out)
	}
	out, _, _ = g.cli("", "tree", "network", "net-a", "-o", "json")
	if lacks := missing(object(out), promised(t, "`tree -o json` has", ". ")); len(lacks) > 0 {
		t.Errorf("tree -o json lacks %v: %s", lacks, out)
	}

	folders := [2]string{t.TempDir(), t.TempDir()}
	for i, field := range []string{`code: String @stored(as: "id") @constraint(maxLength: 9)`, `code: String @stored(as: "id") @constraint(maxLength: 8)`} {
		sdl := "type Shelf @resource(plural: \"shelves\", group: \"\", version: \"v1\", scope: GLOBAL) {\n  spec: ShelfSpec!\n}\n\ntype ShelfSpec {\n  " + field + "\n}\n"
		if err := os.WriteFile(filepath.Join(folders[i], "shelf.graphqls"), []byte(sdl), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out, errOut, code := sluice(t, "", "catalogue", "diff", folders[1], "--from", folders[0], "-o", "json")
	var changes []map[string]any
	if err := json.Unmarshal([]byte(out), &changes); err != nil || code != 1 || len(changes) != 1 {
		t.Fatalf("catalogue diff: %v %d %s %s", err, code, out, errOut)
	}
	if lacks := missing(changes[0], promised(t, "is an array of", "with paths in")); len(lacks) > 0 || changes[0]["path"] != "spec.id" {
		t.Errorf("catalogue diff lacks %v: %s", lacks, out)
	}
}

func TestLogsAndMetricsAreAsPromised(t *testing.T) {
	t.Parallel()
	g := start(t, "", "--log-format", "json", "--access-log", "--slow-log", "1ns", "--audit", filepath.Join(t.TempDir(), "audit.log"))
	g.must(`query Named { networks { totalCount } }`)
	g.must(`mutation { createNetwork(input: {name: "net-a", spec: {cloudCredentialsRef: {secretName: "s", cloudName: "c"}, resource: {}}}) { clientMutationId } }`)
	if !g.log.await(`"operationType":"mutation"`) {
		t.Fatal("no mutation is logged")
	}
	res, err := http.Get(g.address + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	metrics, err := os.ReadFile("../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	described, lines := 0, bufio.NewScanner(res.Body)
	for lines.Scan() {
		name, isType := strings.CutPrefix(lines.Text(), "# TYPE sluice_")
		if !isType {
			continue
		}
		name, _, _ = strings.Cut(name, " ")
		described++
		if !strings.Contains(string(metrics), "`sluice_"+name+"`") {
			t.Errorf("docs/metrics.md lacks the metric sluice_%s", name)
		}
	}
	if lines.Err() != nil || described < 20 {
		t.Errorf("%d metrics: %v", described, lines.Err())
	}
	if code := g.stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}

	every := promised(t, "each line of the log is an object with", ". Lines from before")
	operation := promised(t, "`slow operation` keep", ". Lines of the access log")
	access := promised(t, "Lines of the access log also have", "; a line about")
	seen := map[string]int{}
	for line := range strings.Lines(g.log.String()) {
		var object map[string]any
		if err := json.Unmarshal([]byte(line), &object); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		want := every
		msg, _ := object["msg"].(string)
		if msg == "access" || msg == "slow operation" {
			want = append(slices.Clone(want), operation...)
			seen[msg]++
		}
		if msg == "access" {
			want = append(want, access...)
		}
		if lacks := missing(object, want); len(lacks) > 0 {
			t.Errorf("%v are missing: %s", lacks, line)
		}
	}
	if seen["access"] != 2 || seen["slow operation"] != 2 {
		t.Errorf("lines of operations: %v", seen)
	}
}
