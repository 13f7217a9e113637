package manifest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/backend/manifest"
)

func TestSplitCutsAtMarkersAndKeepsLines(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"one":             {"a: 1\n", `1:"a: 1\n" `},
		"no last newline": {"a: 1", `1:"a: 1" `},
		"two":             {"a: 1\n---\nb: 2\n", `1:"a: 1\n" 2:"\nb: 2\n" `},
		"leading marker":  {"# head\n---\na: 1\n", `2:"\na: 1\n" `},
		"content behind":  {"--- {a: 1}\n--- # c\nb: 2\n", `1:" {a: 1}\n" 2:" # c\nb: 2\n" `},
		"no marker":       {"a: '---'\nb: ----\n---- c\n", `1:"a: '---'\nb: ----\n---- c\n" `},
		"windows":         {"a: 1\r\n---\r\nb: 2\r\n", `1:"a: 1\r\n" 2:"\r\nb: 2\r\n" `},
		"nothing":         {"---\n# a\n...\n---\n%YAML 1.2\n", ""},
		"block scalar":    {"a: |\n  x\n  ---\n  y\n", `1:"a: |\n  x\n  ---\n  y\n" `},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			for _, p := range manifest.Split(c.text) {
				got += fmt.Sprintf("%d:%q ", p.Line, p.Text)
			}
			if got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestNullIsTheSameAsAbsent(t *testing.T) {
	d, err := manifest.Parse("kind: K\nmetadata: {name: a, namespace: null, labels: null}\nspec: null\n")
	if err != nil {
		t.Fatal(err)
	}
	if d.Metadata.Namespace != nil || d.Metadata.Labels != nil || d.Spec != nil {
		t.Errorf("%+v", d)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("apiVersion: g/v1\nkind: K\nmetadata: {name: a, labels: {x: y}}\nspec: {a: [1, 2.5, yes]}\n")
	f.Add("a: &a [*a]")
	f.Add("? {}\n: x")
	f.Fuzz(func(t *testing.T, text string) {
		d, err := manifest.Parse(text)
		if err != nil || d.Spec == nil {
			return
		}
		out, err := d.YAML()
		if err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		again, err := manifest.Parse(string(out))
		if err != nil {
			t.Fatalf("what was written cannot be read: %v\n%s", err, out)
		}
		if again.Kind != d.Kind || again.Metadata.Name != d.Metadata.Name || len(again.Metadata.Labels) != len(d.Metadata.Labels) {
			t.Fatalf("%+v became %+v", d, again)
		}
	})
}

func TestTheTextIsBounded(t *testing.T) {
	if _, err := manifest.Parse(strings.Repeat(" ", manifest.MaxBytes+1)); err == nil {
		t.Error("accepted")
	}
}
