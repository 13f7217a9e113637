package jsontree_test

import (
	"encoding/json"
	"math/big"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/backend/service/jsontree"
)

func TestInteger_GoesByTheText(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "-0": 0, "0.0": 0, "0e-400": 0, "10": 10, "10.0": 10, "1e1": 10, "1E+1": 10, "1000e-1": 100, "-12.50e1": -125,
		"9007199254740991": 1<<53 - 1, "-9007199254740991.0": -(1<<53 - 1), "0.00012e5": 12, "9007199254740991000e-3": 1<<53 - 1,
	} {
		if got, ok := jsontree.Integer(json.Number(text)); !ok || got != want {
			t.Errorf("%s is %d, %v; want %d", text, got, ok, want)
		}
	}
	for _, text := range []string{
		"0.5", "123456789012345.99999", "4503599627370496.2", "1e-400", "1e400", "1e99999999999999999999", "9007199254740992", "-9007199254740992", "1e16", "x",
	} {
		if got, ok := jsontree.Integer(json.Number(text)); ok {
			t.Errorf("%s is the integer %d", text, got)
		}
	}
}

func FuzzInteger(f *testing.F) {
	for _, text := range []string{"0", "-1", "1.5", "1e3", "1.25e2", "1000e-3", "9007199254740992", "123456789012345.99999"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var n json.Number
		if !json.Valid([]byte(text)) || json.Unmarshal([]byte(text), &n) != nil || strings.HasPrefix(strings.TrimSpace(text), `"`) {
			return
		}
		if len(text) > 100 || strings.ContainsAny(text, "eE") && len(text)-strings.IndexAny(text, "eE") > 5 {
			return // a huge rational
		}
		exact, parsed := new(big.Rat).SetString(string(n))
		if !parsed {
			return
		}
		got, ok := jsontree.Integer(n)
		safe := new(big.Rat).SetInt64(jsontree.MaxSafeInteger)
		want := exact.IsInt() && exact.Cmp(safe) <= 0 && exact.Cmp(safe.Neg(safe)) >= 0
		if ok != want || ok && new(big.Rat).SetInt64(got).Cmp(exact) != 0 {
			t.Errorf("%s is %d, %v; want %v", text, got, ok, want)
		}
	})
}
