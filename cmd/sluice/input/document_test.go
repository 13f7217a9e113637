package input_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/cmd/sluice/input"
)

func TestAFieldHasTheLineOfItsKey(t *testing.T) {
	const text = `# a comment
---
kind: K
metadata:
  name: a
  labels: {z: "1",
    a.b/c: "2"}
spec: &spec
  mtu: 10

  tags:
  - x
  - name: y
    size: 1
  "quoted.key": 1
other: *spec
`
	for field, want := range map[string]int{
		"": 2, "kind": 3, "metadata.name": 5, "metadata.namespace": 4, "spec": 8, "spec.mtu": 9, "spec.mtu.deeper": 9, "spec.tags": 11, "spec.tags[0]": 12, "spec.tags[1].size": 14,
		"spec.tags[7].size": 11, "spec.absent.deeper": 8, "spec.quoted.key": 15, "metadata.labels": 6, "metadata.labels.z": 6, "metadata.labels[0].key": 6,
		"metadata.labels.a.b/c": 7, "other.mtu": 9, "unknown": 2, "spec[0]": 8, "spec.tags[x]": 11, "[": 2,
	} {
		docs, err := stdin(text)
		if err != nil || len(docs) != 1 {
			t.Fatalf("%+v %v", docs, err)
		}
		if got := docs[0].At(field); got != fmt.Sprintf("standard input:%d", want) {
			t.Errorf("%q is at %s, want line %d", field, got, want)
		}
	}
	const array = "[\n{\"kind\": \"K\",\n \"spec\": {\n  \"mtu\": 1}}]"
	docs, err := stdin(array)
	if err != nil || docs[0].At("spec.mtu") != "standard input:4" || docs[0].AtLine(2) != "standard input:3" {
		t.Errorf("%+v %v", docs, err)
	}
	docs, err = stdin("kind: List\nitems:\n- kind: K\n- kind: K\n  spec:\n    mtu: 1\n")
	if err != nil || docs[1].At("spec.mtu") != "standard input:6" {
		t.Errorf("%+v %v", docs, err)
	}
	docs, err = stdin("kind: K\nspec: &a {\"\": *a}\n")
	if err != nil || docs[0].At("spec.[.x") != "standard input:2" {
		t.Errorf("an empty key: %+v %v", docs, err)
	}
	docs, err = stdin("\n\nkind: [\n")
	if err != nil || docs[0].At("spec.mtu") != "standard input:1" {
		t.Errorf("what does not parse: %+v %v", docs, err)
	}
}

func TestTwinsAreRefusedOnlyWhereTheyDiffer(t *testing.T) {
	doc := func(namespace, spec string) string {
		return "kind: K\nmetadata: {name: a" + namespace + "}\nspec: {x: " + spec + "}\n---\n"
	}
	for name, c := range map[string]struct{ text, namespace, says string }{
		"the same twice":                    {doc("", "1") + doc("", "1"), "prod", ""},
		"two namespaces":                    {doc("", "1") + doc(", namespace: test", "2"), "prod", ""},
		"two things":                        {doc("", "1") + doc("", "2"), "prod", "standard input:1 and standard input:4 are of the same resource, K prod/a, but differ; nothing was sent"},
		"of a namespace that is not stated": {doc("", "1") + doc(", namespace: prod", "2"), "prod", "are of the same resource, K prod/a, but differ"},
		"of the default namespace":          {doc(", namespace: default", "1") + doc("", "2"), "", "are of the same resource, K default/a, but differ; nothing was sent"},
		"the same in the default namespace": {doc(", namespace: default", "1") + doc("", "1"), "", ""},
		"two things of no namespace":        {doc("", "1") + doc("", "2"), "", "are of the same resource, K a, but differ; nothing was sent"},
		"without a kind":                    {"items: [1]\n---\nitems: [2]\n", "prod", ""},
		"without a name":                    {"kind: K\nspec: {x: 1}\n---\nkind: K\nspec: {x: 2}\n", "prod", ""},
		"what does not parse":               {doc("", "1") + "kind: [\n---\nkind: [\n", "prod", ""},
	} {
		t.Run(name, func(t *testing.T) {
			docs, err := stdin(c.text)
			if err != nil {
				t.Fatal(err)
			}
			err = input.RefuseTwins(docs, c.namespace)
			if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestAMergePatchKeepsNullsThatClear(t *testing.T) {
	const base = `{"kind":"K","metadata":{"description":"d","labels":{"a":"1","b":"2"},"name":"n"},"spec":{"list":[1,2],"o":{"x":1},"size":9007199254740993}}`
	for patch, want := range map[string]string{
		`{}`: base,
		`spec: {o: {z: 2}, list: [3], size: null}`:                     `{"kind":"K","metadata":{"description":"d","labels":{"a":"1","b":"2"},"name":"n"},"spec":{"list":[3],"o":{"x":1,"z":2},"size":null}}`,
		`metadata: {labels: {a: null, c: "3"}, description: null}`:     `{"kind":"K","metadata":{"description":null,"labels":{"b":"2","c":"3"},"name":"n"},"spec":{"list":[1,2],"o":{"x":1},"size":9007199254740993}}`,
		`{"metadata": {"labels": null, "annotations": {"k": null}}}`:   `{"kind":"K","metadata":{"annotations":{},"description":"d","labels":null,"name":"n"},"spec":{"list":[1,2],"o":{"x":1},"size":9007199254740993}}`,
		`spec: {o: {x: {deep: 1}}, new: {secret: null}, list: {a: 1}}`: `{"kind":"K","metadata":{"description":"d","labels":{"a":"1","b":"2"},"name":"n"},"spec":{"list":{"a":1},"new":{"secret":null},"o":{"x":{"deep":1}},"size":9007199254740993}}`,
	} {
		got, err := input.MergePatch(base, patch)
		if err != nil || got != want {
			t.Errorf("%s\ngot  %s %v\nwant %s", patch, got, err, want)
		}
	}
	for _, bad := range []string{"[]", "null", "1", "a: [", ""} {
		if got, err := input.MergePatch(base, bad); err == nil || !strings.HasPrefix(err.Error(), "patch: ") {
			t.Errorf("%q: %s %v", bad, got, err)
		}
	}
}
