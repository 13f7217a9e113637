package kinds_test

import (
	"strings"
	"testing"

	"github.com/sluicegw/sluice/graph/kinds"
)

func TestSyntax_AnErrorSaysWhatWasMeant(t *testing.T) {
	for text, want := range map[string]string{
		"a: Int @default(0)":                     "a.graphqls:2: Expected Name, found Int; write @default(value: 0)",
		`a: String @default("x")`:                `a.graphqls:2: Expected Name, found String; write @default(value: "x")`,
		"a: String @ref(Team)":                   "a.graphqls:2: Expected :, found ); write @ref(kind: Team)",
		"a: Int @default(value = 0)":             "a.graphqls:2: Expected :, found =; write value: in place of value =",
		"a: String @constraint(maxLength 5)":     "a.graphqls:2: Expected :, found Int; write maxLength: and its value",
		"a: String @constraint{maxLength: 5}":    "a.graphqls:2: Expected Name, found {; the arguments of @constraint stand in parentheses",
		"a: String @stored(as: 'x')":             "a.graphqls:2: Unexpected <Invalid>; texts have double quotes",
		"a: Int // count":                        "a.graphqls:2: Expected Name, found <Invalid>; a comment begins with #",
		"a: Int?":                                "a.graphqls:2: Expected Name, found <Invalid>; a field may be null unless its type ends in !",
		"a: Int; b: Int":                         "a.graphqls:2: Expected Name, found <Invalid>; fields stand on lines of their own, without ;",
		"a: String[]":                            "a.graphqls:2: Expected Name, found [; a list is written [String!]",
		"a: Int = 5":                             "a.graphqls:2: Expected Name, found =; a default is written @default(value: 5)",
		"a Int":                                  "a.graphqls:2: Expected :, found Name; write a: Int",
		`"a": Int`:                               "a.graphqls:2: Expected Name, found :; the name of a field has no quotes",
		"a:":                                     "a.graphqls:3: Expected Name, found :; the field a before it has no type",
		"a: [Int":                                "a.graphqls:3: Expected ], found Name; a list on the line before has no ]",
		`a: String @stored(as: "it's // so?") !`: "a.graphqls:2: Expected Name, found !",
	} {
		_, err := kinds.ReadTexts(map[string]string{"a.graphqls": "type T {\n  " + text + "\n  z: Int\n}\n"}, "")
		if err == nil || strings.Split(err.Error(), "\n")[0] != want {
			t.Errorf("%s: %v\nwant %s", text, err, want)
		}
	}
}

func TestVocabulary_HasWhatKindsMayUse(t *testing.T) {
	text, err := kinds.Vocabulary()
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"directive @constraint(", "scalar Time", "scalar SafeInt", "type Condition {", "type MapEntry {", "type Query {"} {
		if strings.Count(text, part) != 1 {
			t.Errorf("%s is there %d times", part, strings.Count(text, part))
		}
	}
}
