package input_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicegw/sluice/backend/manifest"
)

// scalarStyles write a text as a scalar of YAML, as far as the style can. The lines of a block have an indentation.
var scalarStyles = map[string]func(text, indent string) (scalar string, able bool){
	"double quoted": func(text, _ string) (string, bool) {
		raw, err := json.Marshal(text)
		return string(raw), err == nil
	},
	"single quoted": func(text, _ string) (string, bool) {
		return "'" + strings.ReplaceAll(text, "'", "''") + "'", !strings.ContainsAny(text, "\n")
	},
	"literal": func(text, indent string) (string, bool) {
		return "|2+\n" + indent + strings.ReplaceAll(text, "\n", "\n"+indent), strings.HasSuffix(text, "\n")
	},
	"folded": func(text, indent string) (string, bool) {
		return ">2+\n" + indent + strings.ReplaceAll(text, "\n", "\n"+indent), strings.HasSuffix(text, "\n")
	},
	"plain": func(text, _ string) (string, bool) { return text, text != "" && !strings.Contains(text, "\n") },
}

// randomText is made of what is special in YAML or JSON.
func randomText(r *rand.Rand) string {
	parts := []string{"a", "b", " ", "  ", "\n", "\n\n", ":", "-", "#", "\t", "é", "\"", "'", ">", "|", "x x x", "word ", "\u2028", "\\n", "%", "@", "---", "...", "010", "1_000", "~", "<&>", "🙂"}
	var b strings.Builder
	for range 1 + r.IntN(13) {
		b.WriteString(parts[r.IntN(len(parts))])
	}
	return b.String()
}

// TestRead_ADocumentIsTheSameInAList for random texts in each style: what cannot be read alone cannot be read in a
// list, and what can be read is what it is alone.
func TestRead_ADocumentIsTheSameInAList(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	read := 0
	for range 2000 {
		text := randomText(r)
		for style, write := range scalarStyles {
			document := func(indent string) (string, bool) {
				scalar, able := write(text, indent+"    ")
				lines := []string{"kind: K", "metadata: {name: a}", "spec:", "  text: " + scalar, "  number: 010"}
				return strings.Join(lines, "\n"+indent) + "\n", able
			}
			alone, able := document("")
			inList, _ := document("  ")
			if !able {
				continue
			}
			want, err := manifest.Parse(alone)
			docs, listErr := stdin("kind: List\nitems:\n- " + inList)
			if err != nil {
				if listErr == nil && len(docs) == 1 && docs[0].Kind == "K" {
					t.Errorf("seed %d, %s: read in a list alone\n%s", seed, style, alone)
				}
				continue
			}
			if listErr != nil || len(docs) != 1 {
				t.Fatalf("seed %d, %s: %v\n%s", seed, style, listErr, inList)
			}
			read++
			got, err := manifest.Parse(docs[0].Text)
			if err != nil {
				t.Fatalf("seed %d, %s: %v\n%s", seed, style, err, docs[0].Text)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("seed %d, %s: %s\n%s", seed, style, diff, alone)
			}
		}
	}
	if read < 1000 {
		t.Errorf("only %d documents were read", read)
	}
}

func TestRead_AnAliasIsOfAnAnchorInItsItem(t *testing.T) {
	item := func(name, spec string) string {
		return "- kind: K\n  metadata: {name: " + name + "}\n  spec: " + spec + "\n"
	}
	for text, line := range map[string]int{
		item("a", "&s {x: 1}") + item("b", "*s"):                6 + 2,
		item("a", "{x: &s {y: 1}}") + item("b", "{<<: *s}"):     8,
		item("a", "{}") + "- &i {kind: K}\n- *i\n":              7,
		"- kind: List\n  items:\n  - &i {kind: K}\n  - {a: *i}": 6,
	} {
		docs, err := stdin("kind: List\nitems:\n" + text)
		want := fmt.Sprintf("standard input:%d: not acceptable as YAML: the anchor of this alias is outside of the item; repeat the value", line)
		if err == nil || err.Error() != want {
			t.Errorf("%s%v %v, want %s", text, docs, err, want)
		}
	}
	docs, err := stdin("kind: List\nitems:\n" + item("a", "{x: &s {y: 1}, z: *s}"))
	if err != nil || len(docs) != 1 || !strings.Contains(docs[0].Text, `"z":{"y":1}`) {
		t.Errorf("an anchor in the item: %v %v", docs, err)
	}
}

func TestRead_AnItemThatCannotBeReadIsRefusedWithItsLine(t *testing.T) {
	_, err := stdin("# head\n---\nkind: List\nitems:\n- {kind: K}\n- kind: K\n  metadata:\n    labels: {a: b, a: c}\n")
	if err == nil || err.Error() != "standard input:8: not acceptable as YAML: a key is given twice" {
		t.Errorf("%v", err)
	}
}

func TestDocument_AFieldOfAnItemIsOnItsLineInTheFile(t *testing.T) {
	docs, err := stdin("---\nkind: List\nitems:\n- kind: K\n  metadata: {name: a}\n  spec:\n    one: 1\n    list:\n    - two\n    - three\n")
	if err != nil || len(docs) != 1 {
		t.Fatalf("%v %v", docs, err)
	}
	for field, want := range map[string]string{"": "4", "spec.one": "7", "spec.list[1]": "10", "spec.none": "6"} {
		if got := docs[0].At(field); got != "standard input:"+want {
			t.Errorf("%s is at %s, want line %s", field, got, want)
		}
	}
}
