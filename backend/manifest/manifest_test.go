package manifest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/backend/manifest"
)

func TestManifest_SplitCutsAtMarkersAndKeepsLines(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"one":             {"a: 1\n", `1:"a: 1\n" `},
		"no last newline": {"a: 1", `1:"a: 1" `},
		"two":             {"a: 1\n---\nb: 2\n", `1:"a: 1\n" 2:"\nb: 2\n" `},
		"leading marker":  {"# head\n---\na: 1\n", `2:"\na: 1\n" `},
		"content behind":  {"--- {a: 1}\n--- # c\nb: 2\n", `1:"{a: 1}\n" 2:"# c\nb: 2\n" `},
		"no marker":       {"a: '---'\nb: ----\n---- c\n", `1:"a: '---'\nb: ----\n---- c\n" `},
		"windows":         {"a: 1\r\n---\r\nb: 2\r\n", `1:"a: 1\r\n" 2:"\r\nb: 2\r\n" `},
		"nothing":         {"---\n# a\n...\n---\n%YAML 1.2\n", ""},
		"tab behind":      {"a: 1\n---\t\nb: 2\n---\t# c\nd: 3\n", `1:"a: 1\n" 2:"\nb: 2\n" 4:"# c\nd: 3\n" `},
		"end marker":      {"a: 1\n...\nb: 2\n... # c\n---\nd: 3\n...\n%YAML 1.2\n---\ne: 4\n", `1:"a: 1\n" 3:"b: 2\n" 5:"\nd: 3\n" 9:"\ne: 4\n" `},
		"no end marker":   {"a: ...\n... b\n....\n", `1:"a: ...\n... b\n....\n" `},
		"marks":           {"\ufeffa: 1\n\ufeff---\nb: 2\n---\n\ufeffc: 3\n...\n\ufeff# d\ne: \ufeff\n", `1:"a: 1\n" 2:"\nb: 2\n" 4:"\nc: 3\n" 7:"# d\ne: \ufeff\n" `},
		"JSON":            {"{\"a\": 1}{\"b\": 2}\n \ufeff{\n\"c\": \"}{\"}\n\n---\n{\"d\": 4}\n", `1:"{\"a\": 1}" 1:"{\"b\": 2}" 2:"{\n\"c\": \"}{\"}" 5:"\n{\"d\": 4}\n" `},
		"no JSON":         {"{\"a\": 1} {b: 2}\n", `1:"{\"a\": 1} {b: 2}\n" `},
		"a number behind": {"{\"a\": 1} 2\n", `1:"{\"a\": 1} 2\n" `},
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

func TestManifest_AliasesAreBoundedBeforeTheyAreExpanded(t *testing.T) {
	bomb := "a0: &a0 " + strings.Repeat("y", 1000) + "\n"
	for i := range 8 { // 1,000 * 10^8 bytes
		bomb += fmt.Sprintf("a%d: &a%d [%s]\n", i+1, i+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i), 10), ","))
	}
	for name, text := range map[string]string{
		"nested": bomb, "flat": "x: &a " + strings.Repeat("y", 1000) + "\nz: [" + strings.TrimSuffix(strings.Repeat("*a,", 30_000), ",") + "]",
	} {
		if _, err := manifest.ToJSON(text); err == nil || !strings.Contains(err.Error(), "aliases") || len(err.Error()) > 200 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got, err := manifest.ToJSON("x: &a {b: 1}\nz: *a\n"); err != nil || string(got) != `{"x":{"b":1},"z":{"b":1}}` {
		t.Errorf("a few aliases: %s, %v", got, err)
	}
}

func TestManifest_NullIsTheSameAsAbsent(t *testing.T) {
	d, err := manifest.Parse("kind: K\nmetadata: {name: a, namespace: null, labels: null}\nspec: null\n")
	if err != nil {
		t.Fatal(err)
	}
	if d.Metadata.Namespace != nil || d.Metadata.Labels != nil || d.Spec != nil {
		t.Errorf("%+v", d)
	}
}

// TestManifest_WhatIsNotAcceptableIsToldWithoutItsValue since it may be a password, or a key
// of a map, that nobody is to be shown. The kind is not known yet.
func TestManifest_WhatIsNotAcceptableIsToldWithoutItsValue(t *testing.T) {
	for _, spec := range []string{
		"{password: *hunter2}", "{password: !hunter2 x}", "{password: !!hunter2 x}", "{password: !!int hunter2}", "{password: !!float hunter2}", "{password: !!bool hunter2}",
		"{password: !!null hunter2}", "{password: !!timestamp hunter2}", "{password: !!binary hunter2}", "{password: &hunter2 [*hunter2]}",
		"{map: {hunter2: a, hunter2: b}}", "{map: {\"hunter2\": a, hunter2: b}}", "{? [hunter2] : x}", "{? {hunter2: x} : x}", "{map: {? !!int hunter2 : x}}", "{<<: hunter2}",
	} {
		if _, err := manifest.Parse("apiVersion: v1\nkind: K\nspec: " + spec); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", spec, err)
		}
	}
	_, err := manifest.Parse("{\"spec\":\n {\"map\": {\"hunter2\": 1, \"hunter2\": 2}}}")
	if want := "not acceptable as JSON: line 2, column 33: a key is given twice"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("apiVersion: g/v1\nkind: K\nmetadata: {name: a, labels: {x: y}}\nspec: {a: [1, 2.5, yes]}\n")
	f.Add("apiVersion: v1\nkind: K\nmetadata: {name: a}\nspec: {}\nstringData: {a: \"<1>\"}\ntype: x\n")
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
		if again.Kind != d.Kind || again.Metadata.Name != d.Metadata.Name || len(again.Metadata.Labels) != len(d.Metadata.Labels) || len(again.Placed) != len(d.Placed) {
			t.Fatalf("%+v became %+v", d, again)
		}
	})
}

func TestManifest_NothingOfADocumentIsPassedOver(t *testing.T) {
	for text, want := range map[string]string{
		`{"kind":"K","metadata":{"name":"a"}} }junk`:                  "not acceptable",
		`{"kind":"K","metadata":{"name":"a"}} {"kind":"K"}`:           "2 documents, one is wanted",
		`{"kind":"K","metadata":{"name":"a"}}]`:                       "not acceptable",
		"kind: K\nmetadata: {name: a, description: !!binary /w==}\n":  "line 2: it has a tag that is not accepted",
		"kind: K\nmetadata: {name: a, description: !foo x}\n":         "line 2: it has a tag that is not accepted",
		"kind: K\nmetadata:\n  name: a\n  labels: {\"1\": b, 1: c}\n": "line 4: a key is given twice",
		"kind: K\nmetadata: {name: a, description: \"a\xff\"}\n":      "UTF-8",
	} {
		if d, err := manifest.Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %+v %v", text, d, err)
		}
	}
	for _, text := range []string{"kind: K\nmetadata: &m {name: a}\n...\n", "kind: !!str K\nmetadata: {<<: {name: a}}\n"} {
		if d, err := manifest.Parse(text); err != nil || d.Metadata.Name != "a" {
			t.Errorf("%q: %+v %v", text, d, err)
		}
	}
}

func TestManifest_TheTextIsBounded(t *testing.T) {
	if _, err := manifest.Parse(strings.Repeat(" ", manifest.MaxBytes+1)); err == nil {
		t.Error("accepted")
	}
}

func TestManifest_WhatAnEditRemovesIsCleared(t *testing.T) {
	const whole = "kind: K\nmetadata: {name: a, labels: {x: z}, annotations: {k: v}, description: d, expiresAt: 2030-01-01T00:00:00Z}\nspec: {size: 9007199254740993}\n"
	for name, c := range map[string]struct{ edited, cleared string }{
		"nothing":         {whole, "[]"},
		"the labels":      {strings.Replace(whole, "labels: {x: z}, ", "", 1), "[labels]"},
		"everything":      {"kind: K\nmetadata: {name: a}\nspec: {size: 9007199254740993}\n", "[labels annotations description expiresAt]"},
		"null is written": {strings.Replace(whole, "description: d", "description: null", 1), "[description]"},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := manifest.ClearRemoved(whole, c.edited)
			if err != nil {
				t.Fatal(err)
			}
			d, err := manifest.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprint(d.Metadata.Cleared); got != c.cleared {
				t.Errorf("cleared %s, want %s", got, c.cleared)
			}
			if string(d.Spec) != `{"size":9007199254740993}` {
				t.Errorf("spec %s", d.Spec)
			}
		})
	}
	if _, err := manifest.ClearRemoved(whole, "metadata: [1]\n"); err == nil {
		t.Error("metadata that is no mapping is accepted")
	}
}

func TestManifest_AKeyIsTakenAsItIsWritten(t *testing.T) {
	for _, key := range []string{"y", "N", "yes", "No", "on", "OFF", "0x10", "1.0", "0777", "1e3", "~", "null", "True", "1", "-1", "true", "2026", "2026-01-31", "1.2.3", "on.example.org/x", "-"} {
		if d, err := manifest.Parse("kind: A\nmetadata:\n  labels:\n    " + key + ": a\n"); err != nil || d.Metadata.Labels[key] != "a" {
			t.Errorf("%s: %+v %v", key, d, err)
		}
	}
}

// TestManifest_YAMLIsReadAsYAML12Says by its core schema, with the merge keys of YAML 1.1.
func TestManifest_YAMLIsReadAsYAML12Says(t *testing.T) {
	for text, want := range map[string]string{
		"[y, no, On, true, False, ~, null]":                        `["y","no","On",true,false,null,null]`,
		"[1, -7, 0x1F, 0o17, 01500, 010, -010, +3, 00, -0]":        `[1,-7,31,15,1500,10,-10,3,0,-0]`,
		"[1_000, 0b11, 0x, 0o8, 1:30, +0x1, 1__0, '010', 0o-7]":    `["1_000","0b11","0x","0o8","1:30","+0x1","1__0","010","0o-7"]`,
		"[1.10, 1e3, .5, 5., -0.0, 123456789012345678901]":         `[1.10,1e3,0.5,5,-0.0,123456789012345678901]`,
		"[01.50, 1.E+2, -.5e-3, ., e3, +.5, 0x7fffffffffffffffff]": `[1.50,1E+2,-0.5e-3,".","e3",0.5,2361183241434822606847]`,
		"[!!int 010, !!float 7, !!bool True, !!str null]":          `[10,7,true,"null"]`,
		"[2026-01-31, '7', !!str 7, \"\\u00e9\", !!int \"7\"]":     `["2026-01-31","7","7","é",7]`,
		"a: &x {b: 1, c: 2}\nd: {<<: *x, c: 3}\ne: *x":             `{"a":{"b":1,"c":2},"d":{"c":3,"b":1},"e":{"b":1,"c":2}}`,
		"<<: [{a: 1}, {a: 2, b: 3}]\nc: |\n  x\n  y\n":             `{"c":"x\ny\n","a":1,"b":3}`,
		"[\"a\u0085b\", 'c\u2028\ue000d', e\u2029f] # \u0085g: 1":  "[\"a\u0085b\",\"c\\u2028\ue000d\",\"e\\u2029f\"]",
		"": `null`, "# nothing": `null`, "a:": `{"a":null}`,
	} {
		if got, err := manifest.ToJSON(text); err != nil || string(got) != want {
			t.Errorf("%s: %s %v, want %s", text, got, err, want)
		}
	}
	for text, why := range map[string]string{
		"a: 1\nb: 2\na: 3": "line 3: a key is given twice",
		"kind: a\nkind: b": `line 2: key "kind" is given twice`,
		"{[a]: 1}":         "line 1: a key is no text",
		"a: !!binary QQ==": "line 1: it has a tag that is not accepted",
		"a: !secret":       "line 1: it has a tag that is not accepted",
		"a: !!int secret":  "line 1: a value does not have the type of its tag",
		"a: !!map [1]":     "line 1: it has a tag that is not accepted",
		"a: .inf":          "line 1: a number that is infinite",
		"a: !!float .NaN":  "line 1: a number that is infinite",
		"a: !!int 1_000":   "line 1: a value does not have the type of its tag",
		"a: !!int 1.5":     "line 1: a value does not have the type of its tag",
		"a: *secret":       "there is an alias without its anchor",
		"a: &a [*a]":       "line 1: an anchor contains itself",
		"a: &a\n  <<: *a":  "an anchor contains itself",
		"<<: 1":            "line 1: << merges a mapping",
		"a: 1\n--- 2":      "line 2: there is more after the end of the value",
		"a: 'b":            "found unexpected end of stream",
	} {
		got, err := manifest.ToJSON(text)
		if err == nil || !strings.Contains(err.Error(), why) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %s %v, want %s", text, got, err, why)
		}
	}
}
