package engine_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/graph/engine"
	"github.com/sluicegw/sluice/internal/heaptest"
)

// TestArguments_AreChargedForWhatTheyHold compares the charge for values of several forms with what they add to the
// memory. The least of several measurements counts, since other goroutines may use memory.
func TestArguments_AreChargedForWhatTheyHold(t *testing.T) {
	const count = 20_000
	for name, one := range map[string]string{
		"numbers":                    `1`,
		"Booleans":                   `true`,
		"texts":                      `"a"`,
		"lists of a number":          `[1]`,
		"empty objects":              `{}`,
		"objects with a number":      `{"a":1}`,
		"objects with a text":        `{"a":"b"}`,
		"objects in objects":         `{"a":{"b":{"c":{"d":1}}}}`,
		"lists of objects":           `{"a":[{"b":1}]}`,
		"objects with eight numbers": `{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1}`,
		"objects with nine numbers":  `{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1,"i":1}`,
		"objects with 15 numbers": `{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1,"i":1,"j":1,"k":1,"l":1,"m":1,` +
			`"n":1,"o":1}`,
	} {
		text := "[" + strings.Repeat(one+",", count-1) + one + "]"
		least := int64(0)
		charged := 0
		for range 5 {
			before := heaptest.InUse()
			tree := decodedTree(t, text)
			held := heaptest.InUse() - before
			charged = engine.InputHeld(tree)
			if least == 0 || held < least {
				least = held
			}
		}
		t.Logf("%s: each holds %d bytes, %d are charged", name, least/count, charged/count)
		if least > int64(charged) {
			t.Errorf("%s: they hold %d bytes, and only %d are charged", name, least, charged)
		}
	}
}

// decodedTree decodes a value as the variables of a request are decoded.
func decodedTree(t *testing.T, text string) (tree any) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&tree); err != nil {
		t.Fatal(err)
	}
	return tree
}
