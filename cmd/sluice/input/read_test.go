package input_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"

	"github.com/sluicegw/sluice/cmd/sluice/input"
)

// files is a new folder with files of these names and texts.
func files(t testing.TB, texts map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range texts {
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

// stdin reads documents from the standard input.
func stdin(text string) ([]input.Document, error) {
	return input.Source{Files: []string{"-"}, Stdin: strings.NewReader(text)}.Read()
}

func TestEveryFormOfManyDocumentsIsCutWithItsLines(t *testing.T) {
	one := func(name string) string { return "kind: K\nmetadata: {name: " + name + "}\n" }
	for name, c := range map[string]struct{ text, want string }{
		"one document":         {one("a"), "1 K a"},
		"markers":              {"# c\n---\n" + one("a") + "---\n---\n" + one("b"), "2 K a, 6 K b"},
		"an array":             {"[\n {\"kind\": \"K\",\n \"metadata\": {\"name\": \"a\"}},\n\n {\"kind\": \"K\"}]", "2 K a, 5 document 2"},
		"an empty array in it": {"kind: List\nitems: []\n---\n" + one("a"), "3 K a"},
		"a list":               {"apiVersion: v1\nkind: List\nitems:\n- kind: K\n  metadata: {name: a, namespace: m}\n- {kind: K, metadata: {name: b}}\n---\n" + one("c"), "4 K m/a, 6 K b, 7 K c"},
		"a list in JSON":       {"{\"kind\": \"List\",\n\"metadata\": [1],\n\"items\": [\n{\"kind\": \"K\", \"metadata\": {\"name\": \"a\"}}]}", "4 K a"},
		"no list":              {"kind: List\nmetadata: {name: items}\n", "1 List items"},
		"a list in a list":     {"kind: List\nitems:\n- kind: List\n  items:\n  - kind: K\n    metadata: {name: a}\n  - kind: List\n    items: []\n- kind: K\n  metadata: {name: b}\n", "5 K a, 9 K b"},
		"a list in an array":   {"[{\"kind\": \"List\", \"items\": [\n{\"kind\": \"K\", \"metadata\": {\"name\": \"a\"}}]}]", "2 K a"},
		"a list of a kind":     {"kind: KList\nitems:\n- kind: K\n  metadata: {name: a}\n---\n{\"kind\": \"KList\", \"items\": [{\"kind\": \"K\", \"metadata\": {\"name\": \"b\"}}]}\n", "3 K a, 6 K b"},
		"a kind of that name":  {"kind: KList\nmetadata: {name: a}\nitems:\n- kind: K\n---\nkind: List\nmetadata: {name: b}\nitems: []\n", "1 KList a, 5 List b"},
		"objects in JSON":      {"{\"kind\": \"K\", \"metadata\": {\"name\": \"a\"}}\n{\"kind\": \"List\",\n \"items\": [{\"kind\": \"K\", \"metadata\": {\"name\": \"b\"}}]}", "1 K a, 3 K b"},
		"marks":                {"\ufeff" + one("a") + "\ufeff---\n" + one("b") + "...\n" + one("c") + "---\t\n" + one("d"), "1 K a, 3 K b, 7 K c, 9 K d"},
		"a mark, then JSON":    {"\ufeff[{\"kind\": \"K\"}]", "1 document 1"},
		"what does not parse":  {"kind: [\n---\n" + one("a"), "1 document 1, 2 K a"},
		"a list that does not": {"kind: List\nitems: [\n", "1 document 1"},
		"an empty list":        {"apiVersion: v1\nkind: List\nitems: []\n", ""},
		"one in JSON":          {`{"apiVersion": "v1", "kind": "List", "items": []}`, ""},
		"an empty array":       {"[]", ""},
	} {
		t.Run(name, func(t *testing.T) {
			docs, err := stdin(c.text)
			var got []string
			for i, d := range docs {
				got = append(got, fmt.Sprintf("%d %s", d.Line, d))
				if d.Number != i+1 || d.File != "standard input" || d.Where() != fmt.Sprintf("standard input:%d", d.Line) {
					t.Errorf("%+v", d)
				}
			}
			if strings.Join(got, ", ") != c.want || err != nil {
				t.Errorf("got  %v %v\nwant %s", got, err, c.want)
			}
		})
	}
}

func TestTheItemsOfAListMeanWhatTheyMeantInIt(t *testing.T) {
	docs, err := stdin("kind: List\nitems:\n- kind: K\n  metadata: {name: 'yes', labels: {a: \"1\"}, revision: \"1-2\"}\n  spec:\n    size: 9007199254740993\n    s: \"0x10\"\n    t: |\n      two\n      lines\n")
	if err != nil || len(docs) != 1 {
		t.Fatalf("%+v %v", docs, err)
	}
	d := docs[0]
	if d.Name != "yes" || d.Revision != "1-2" || !strings.Contains(d.Text, "9007199254740993") || !strings.Contains(d.Text, `"0x10"`) || !strings.Contains(d.Text, `"two\nlines\n"`) {
		t.Errorf("%+v", d)
	}
}

func TestFoldersAreReadInTheOrderOfNamesAndOnlyAsDeepAsIsSaid(t *testing.T) {
	doc := func(name string) string { return "kind: K\nmetadata: {name: " + name + "}\n" }
	dir := files(t, map[string]string{"b.yaml": doc("b"), "a.yml": doc("a"), "c/d.json": `{"kind": "K", "metadata": {"name": "d"}}`, "c/e/f.yaml": doc("f"), "x.txt": doc("x")})
	for _, c := range []struct {
		recursive bool
		want      string
	}{{false, "K a K b"}, {true, "K a K b K d K f"}} {
		docs, err := input.Source{Files: []string{dir}, Recursive: c.recursive}.Read()
		var got []string
		for _, d := range docs {
			got = append(got, d.String())
		}
		if strings.Join(got, " ") != c.want || err != nil {
			t.Errorf("recursive %v: %v %v", c.recursive, got, err)
		}
	}
}

func TestSource_LeavesOutHiddenFolders(t *testing.T) {
	doc := func(name string) string { return "kind: K\nmetadata: {name: " + name + "}\n" }
	dir := files(t, map[string]string{"a.yaml": doc("a"), ".git/b.yaml": doc("b"), "c/.d/e.yaml": doc("e"), "c/f.yaml": doc("f"), ".g.yaml": doc("g")})
	for root, want := range map[string]string{dir: "K g K a K f", filepath.Join(dir, ".git"): "K b"} {
		docs, err := input.Source{Files: []string{root}, Recursive: true}.Read()
		var got []string
		for _, d := range docs {
			got = append(got, d.String())
		}
		if strings.Join(got, " ") != want || err != nil {
			t.Errorf("%v %v, want %s", got, err, want)
		}
	}
}

func TestAFolderWithAPipeIsRefused(t *testing.T) {
	dir := files(t, map[string]string{"a.yaml": "kind: K\nmetadata: {name: a}\n"})
	pipe := filepath.Join(dir, "b.yaml")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := input.Source{Files: []string{dir}}.Read()
	if err == nil || err.Error() != pipe+" is no regular file; name it itself to have it read" {
		t.Errorf("%v", err)
	}
	if err := errors.Join(os.Remove(pipe), os.Symlink("a.yaml", pipe)); err != nil {
		t.Fatal(err)
	}
	if docs, err := (input.Source{Files: []string{dir}}).Read(); err != nil || len(docs) != 2 {
		t.Errorf("a link: %v %v", docs, err)
	}
}

func TestAListWithoutItemsIsRefused(t *testing.T) {
	for name, text := range map[string]string{
		"none":         "kind: K\n---\napiVersion: v1\nkind: List\n",
		"null":         "kind: K\n---\napiVersion: v1\nkind: List\nmetadata: {resourceVersion: \"\"}\nitems:\n",
		"an object":    "kind: K\n---\napiVersion: v1\nkind: List\nitems: {}\n",
		"none in JSON": "kind: K\n---\n{\"apiVersion\": \"v1\", \"kind\": \"List\"}\n",
		"null in JSON": "kind: K\n---\n{\"kind\": \"List\", \"items\": null}\n",
	} {
		t.Run(name, func(t *testing.T) {
			if docs, err := stdin(text); err == nil || err.Error() != "standard input:2: a List has items, a list of manifests; write items: [] if there are none" {
				t.Errorf("%v %v", docs, err)
			}
		})
	}
}

func TestWhatCannotBeReadIsNamed(t *testing.T) {
	dir := files(t, map[string]string{"bad.yaml": "kind: \xff", "empty.yaml": "# nothing\n", "folder/none.txt": ""})
	for name, c := range map[string]struct {
		file, says string
	}{
		"no file":       {filepath.Join(dir, "nowhere"), "nowhere"},
		"no UTF-8":      {filepath.Join(dir, "bad.yaml"), "bad.yaml is not UTF-8"},
		"no document":   {filepath.Join(dir, "empty.yaml"), "no document in " + filepath.Join(dir, "empty.yaml")},
		"no manifest":   {filepath.Join(dir, "folder"), "-R reads the folders"},
		"a broken pipe": {"-", "standard input: broken"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := input.Source{Files: []string{c.file}, Stdin: iotest.ErrReader(fmt.Errorf("broken"))}.Read()
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestAllFilesTogetherAreBounded(t *testing.T) {
	dir := files(t, map[string]string{"a.yaml": "kind: K\n", "b.yaml": "kind: K\n"})
	for limit, says := range map[int64]string{16: "", 15: "b.yaml: all files have more than 15 bytes together", 7: "a.yaml: all files have more than 7 bytes together"} {
		_, err := input.Source{Files: []string{dir}, Limit: limit}.Read()
		if (err == nil) != (says == "") || err != nil && !strings.HasSuffix(err.Error(), says) {
			t.Errorf("%d: %v", limit, err)
		}
	}
	if _, err := (input.Source{Files: []string{"-"}, Stdin: endless{}, Limit: 1 << 20}).Read(); err == nil {
		t.Error("input without an end is read")
	}
}

// endless is input without an end.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '#'
	}
	return len(p), nil
}

func FuzzRead(f *testing.F) {
	f.Add("kind: K\nmetadata: {name: a}\n---\nkind: List\nitems: [{kind: K}]\n", "spec.a[1].b")
	f.Add(`[{"kind": "K"}, 1]`, "metadata.labels.a/b")
	f.Add("a: &a [*a]\nkind: List\nitems: [*a]", "a[0][0][0]")
	f.Fuzz(func(t *testing.T, text, field string) {
		docs, err := stdin(text)
		if err != nil {
			return
		}
		lines := strings.Count(text, "\n") + 1
		for _, d := range docs {
			_ = d.String()
			var at int
			if _, err := fmt.Sscanf(strings.TrimPrefix(d.At(field), "standard input:"), "%d", &at); err != nil || at < 1 || at > lines {
				t.Errorf("%q is at %s of %d lines", field, d.At(field), lines)
			}
		}
	})
}

func TestAListThatWouldLoseDocumentsIsRefused(t *testing.T) {
	const items = "items:\n- kind: K\n  metadata: {name: a}\n"
	for text, says := range map[string]string{
		"kind: List\n" + items + items:                             "standard input:1: items is given twice in a List",
		"kind: List\n" + items + "Items: []\n":                     `"Items" is not a field of a List; accepted are apiVersion, kind, metadata, items`,
		"kind: List\n" + items + "kind: List\n":                    "kind is given twice",
		`{"kind": "List", "items": [{"kind": "K"}], "items": []}`:  "items is given twice in a List",
		`{"kind": "List", "items": [{"kind": "K"}], "spec": null}`: `"spec" is not a field of a List`,
	} {
		if docs, err := stdin(text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s\n%d documents, %v", text, len(docs), err)
		}
	}
	for _, text := range []string{"apiVersion: v1\nkind: List\nmetadata: {resourceVersion: ''}\n" + items, `{"apiVersion": "v1", "kind": "List", "metadata": {}, "items": [{"kind": "K"}]}`} {
		if docs, err := stdin(text); err != nil || len(docs) != 1 {
			t.Errorf("%s\n%d documents, %v", text, len(docs), err)
		}
	}
}

// TestRead_AnAliasIsOfAnAnchorInItsDocument: one of an earlier document is refused before anything is sent. Of other
// aliases without an anchor the gateway says what is wrong, when it gets the document.
func TestRead_AnAliasIsOfAnAnchorInItsDocument(t *testing.T) {
	const doc = "kind: K\nmetadata: {name: a}\nspec: "
	for text, line := range map[string]int{
		doc + "&s {x: 1}\n---\n" + doc + "*s\n":                               7,
		doc + "{x: &s {y: 1}}\n---\n" + doc + "{}\n---\n" + doc + "{x: [*s]}": 11,
		doc + "{}\n---\n" + doc + "\n  - &s 1\n---\n" + doc + "{<<: *s}\n":    12,
	} {
		docs, err := stdin(text)
		want := fmt.Sprintf("standard input:%d: the anchor of this alias is in an earlier document of the file; repeat the value", line)
		if err == nil || err.Error() != want {
			t.Errorf("%s%v %v, want %s", text, docs, err, want)
		}
	}
	for _, text := range []string{
		doc + "&s {x: 1}\n---\n" + doc + "{x: &s {y: 1}, z: *s}\n",
		doc + "{x: '&s'}\n---\n" + doc + "*s2\n",
		doc + "*s\n---\n" + doc + "&s {}\n",
	} {
		if docs, err := stdin(text); err != nil || len(docs) != 2 {
			t.Errorf("%s%v %v", text, docs, err)
		}
	}
}
