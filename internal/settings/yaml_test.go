package settings_test

import (
	"testing"

	"github.com/sluicegw/sluice/internal/settings"
)

func TestDecode_NamesTheLineOfEachMistake(t *testing.T) {
	type entry struct {
		Server string `yaml:"server"`
		Count  int    `yaml:"count"`
	}
	for text, want := range map[string]string{
		"":                           "",
		"a: {server: x, count: 1}":   "",
		"a:\n  sever: x\n  count: y": "line 2: field sever not found; line 3: cannot construct !!str `y`",
		"a: [\nb":                    "line 2: did not find expected ',' or ']'",
		"a: {}\na: {}":               `line 2: mapping key "a" already defined at line 1`,
	} {
		got := ""
		err := settings.Decode([]byte(text), &map[string]entry{})
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}
