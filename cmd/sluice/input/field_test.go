package input_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicegw/sluice/cmd/sluice/input"
	"github.com/sluicegw/sluice/graph/client"
)

func network() client.Kind {
	return client.Kind{
		Name: "Network", Scope: "NAMESPACED",
		Fields: []client.Field{
			{Path: "spec.mtu", Type: "Int"}, {Path: "spec.big", Type: "SafeInt"}, {Path: "spec.ratio", Type: "Float"}, {Path: "spec.up", Type: "Boolean"},
			{Path: "spec.name", Type: "String"}, {Path: "spec.tags", Type: "String", List: true}, {Path: "spec.sizes", Type: "Int", List: true},
			{Path: "spec.mode", Type: "Mode", EnumValues: []client.EnumValue{{Name: "DARK_OAK", Stored: "dark-oak"}, {Name: "OAK", Stored: "OAK"}}},
			{Path: "spec.free", Type: "String"},
			{Path: "status.conditions", Type: "Condition", List: true}, {Path: "status.conditions.type", Type: "String"}, {Path: "status.conditions.status", Type: "String"},
		},
		FilterableFields: []client.FilterableField{{Path: "spec.mtu"}, {Path: "spec.big"}, {Path: "spec.ratio"}, {Path: "spec.up"}, {Path: "spec.name"}, {Path: "spec.tags"}, {Path: "spec.sizes"}, {Path: "spec.mode"}},
	}
}

func TestAFilterIsThatOfTheAPIWithTypedValues(t *testing.T) {
	for text, want := range map[string]string{
		"spec.mtu=1500":                           `{"spec":{"mtu":{"eq":1500}}}`,
		"spec.mtu == 1500":                        `{"spec":{"mtu":{"eq":1500}}}`,
		"spec.mtu!=1500":                          `{"spec":{"mtu":{"ne":1500}}}`,
		"spec.mtu>1500":                           `{"spec":{"mtu":{"gt":1500}}}`,
		" spec.mtu >= -1 ":                        `{"spec":{"mtu":{"gte":-1}}}`,
		"spec.mtu<1500":                           `{"spec":{"mtu":{"lt":1500}}}`,
		"spec.mtu<=2147483647":                    `{"spec":{"mtu":{"lte":2147483647}}}`,
		"spec.big=9007199254740991":               `{"spec":{"big":{"eq":9007199254740991}}}`,
		"spec.ratio>=0.5":                         `{"spec":{"ratio":{"gte":0.5}}}`,
		"spec.up=true":                            `{"spec":{"up":{"eq":true}}}`,
		"spec.name^=web-":                         `{"spec":{"name":{"startsWith":"web-"}}}`,
		"spec.name*=eb":                           `{"spec":{"name":{"contains":"eb"}}}`,
		`spec.name="a,b (c)"`:                     `{"spec":{"name":{"eq":"a,b (c)"}}}`,
		`spec.name="say \"a,b\""`:                 `{"spec":{"name":{"eq":"say \"a,b\""}}}`,
		"spec.name=":                              `{"spec":{"name":{"eq":""}}}`,
		"spec.name in (a, b)":                     `{"spec":{"name":{"in":["a","b"]}}}`,
		"spec.name notin (a)":                     `{"spec":{"name":{"notIn":["a"]}}}`,
		"spec.mode=dark-oak":                      `{"spec":{"mode":{"eq":"DARK_OAK"}}}`,
		"spec.mode in (OAK,DARK_OAK)":             `{"spec":{"mode":{"in":["OAK","DARK_OAK"]}}}`,
		"spec.tags=foo":                           `{"spec":{"tags":{"hasAny":["foo"]}}}`,
		"spec.tags!=foo":                          `{"spec":{"tags":{"hasNone":["foo"]}}}`,
		"spec.sizes in (1,2)":                     `{"spec":{"sizes":{"hasAny":[1,2]}}}`,
		"spec.tags notin (a)":                     `{"spec":{"tags":{"hasNone":["a"]}}}`,
		"spec.mtu":                                `{"spec":{"mtu":{"isNull":false}}}`,
		"!spec.tags":                              `{"spec":{"tags":{"isNull":true}}}`,
		"metadata.name^=net":                      `{"name":{"startsWith":"net"}}`,
		"metadata.createdAt>2026-01-02T00:00:00Z": `{"createdAt":{"gt":"2026-01-02T00:00:00Z"}}`,
		"status.conditions.Available=False":       `{"conditions":[{"status":{"eq":"False"},"type":"Available"}]}`,
	} {
		got, err := input.ParseFilter(network(), []string{text})
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		var b strings.Builder
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(got); err != nil {
			t.Fatal(err)
		}
		if want := `{"and":[` + want + "]}\n"; b.String() != want {
			t.Errorf("%q\ngot  %swant %s", text, b.String(), want)
		}
	}
}

func TestTestsAreJoinedByCommasAndByFlags(t *testing.T) {
	got, err := input.ParseFilter(network(), []string{"spec.mtu>1,spec.name in (a,b)", `spec.name="x,y",!spec.up`})
	if err != nil || len(got["and"].([]any)) != 4 {
		t.Errorf("%v %v", got, err)
	}
	if got, err := input.ParseFilter(network(), nil); got != nil || err != nil {
		t.Errorf("none: %v %v", got, err)
	}
}

func TestAFilterThatIsNotUnderstoodSaysWhatIsAccepted(t *testing.T) {
	for text, says := range map[string]string{
		"spec.mtu=abc":                       `spec.mtu is Int: "abc" is none; a whole number is accepted`,
		"spec.mtu=1.5":                       "a whole number is accepted",
		"spec.mtu=2147483648":                "a whole number is accepted",
		"spec.big=9007199254740993":          "a whole number is accepted",
		"spec.ratio=NaN":                     "a number is accepted",
		"spec.up=yes":                        "true or false is accepted",
		"spec.up>true":                       "spec.up is Boolean: =, != are accepted",
		"spec.mode=elm":                      "dark-oak, OAK is accepted",
		"spec.mode>OAK":                      "spec.mode is Enum: =, !=, in, notin are accepted",
		"spec.mtu^=1":                        "spec.mtu is Int: =, !=, <, <=, >, >=, in, notin are accepted",
		"spec.tags>a":                        "a list of String",
		"spec.up in (true)":                  "are accepted",
		"metadata.createdAt>yesterday":       "a time like 2006-01-02T15:04:05Z is accepted",
		"spec.free=a":                        `"spec.free" cannot be used in filters of kind Network; usable are metadata.name, metadata.namespace, metadata.createdAt, metadata.updatedAt, metadata.deletionRequestedAt, spec.mtu, `,
		"mtu>1":                              "and status.conditions.TYPE",
		"":                                   "cannot be used",
		"!":                                  "cannot be used",
		"=1":                                 "cannot be used",
		"spec.mtu in 1":                      "it is not understood",
		"spec.mtu in (1":                     "it is not understood",
		"spec.mtu among (1)":                 "it is not understood",
		"spec.mtu ~ 1":                       "it is not understood",
		`spec.name="a`:                       "quotes",
		"status.conditions.Available!=False": "only = is accepted",
		strings.Repeat("spec.mtu>1,", 51):    "cannot be used",
		strings.TrimSuffix(strings.Repeat("spec.mtu>1,", 51), ","): "51 tests; at most 50",
	} {
		if got, err := input.ParseFilter(network(), []string{text}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, error %v does not say %q", text, got, err, says)
		}
	}
}

func TestLabelsAreChosenAsByKubectl(t *testing.T) {
	got, err := input.ParseLabels([]string{"a=b,c!=d, example.org/e in (f, g),h notin (i)", "j,!k,l==m,n="})
	want := []client.LabelTest{
		{Key: "a", Operator: client.LabelIn, Values: []string{"b"}}, {Key: "c", Operator: client.LabelNotIn, Values: []string{"d"}},
		{Key: "example.org/e", Operator: client.LabelIn, Values: []string{"f", "g"}}, {Key: "h", Operator: client.LabelNotIn, Values: []string{"i"}},
		{Key: "j", Operator: client.LabelExists}, {Key: "k", Operator: client.LabelAbsent},
		{Key: "l", Operator: client.LabelIn, Values: []string{"m"}}, {Key: "n", Operator: client.LabelIn, Values: []string{""}},
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for _, text := range []string{"", "a>b", "a in b", "a in (b", "a,", "!", "a/b/c", "a=b c", "a within (b)", "=b", "a in ()", "a notin ( )"} {
		if got, err := input.ParseLabels([]string{text}); err == nil || !strings.Contains(err.Error(), "are accepted") {
			t.Errorf("%q: %v %v", text, got, err)
		}
	}
}

func TestTextThatIsNotUTF8IsRefused(t *testing.T) {
	for _, text := range []string{"spec.name=\xff", "spec.name in (a,\xff)"} {
		if got, err := input.ParseFilter(network(), []string{text}); err == nil || !strings.HasSuffix(err.Error(), "is not UTF-8") {
			t.Errorf("%q: %v %v", text, got, err)
		}
	}
	for _, text := range []string{"a=\xff", "a\xff", "a in (\xff)", "!\xff"} {
		if got, err := input.ParseLabels([]string{text}); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{"spec.mtu>1", `spec.name="a,b"`, "spec.name in (a,b)", "!a", "a=b,c notin (d)"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if got, err := input.ParseFilter(network(), []string{text}); err == nil && len(got) == 0 {
			t.Errorf("%q filters nothing", text)
		}
		if got, err := input.ParseLabels([]string{text}); err == nil && len(got) == 0 {
			t.Errorf("%q selects everything", text)
		}
	})
}
