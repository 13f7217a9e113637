package backend_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/backend"
)

func TestKey_SensitiveRecordsLieTogether(t *testing.T) {
	keys := []backend.Key{
		{Kind: "A", Name: "x"}, {Kind: "Zebra", Namespace: "z", Name: "x"}, {Kind: "_catalogue", Name: "x"}, {Kind: "_lease", Name: "x"}, {Kind: "sensitive", Name: "x"},
	}
	for _, k := range keys[:2] {
		keys = append(keys, k.Sensitive())
	}
	slices.SortFunc(keys, func(a, b backend.Key) int { return bytes.Compare(a.Append(nil), b.Append(nil)) })
	sensitive := func(k backend.Key) bool { return strings.HasPrefix(k.Kind, backend.SensitiveKind("")) }
	first := slices.IndexFunc(keys, sensitive)
	for i, k := range keys {
		if between := i >= first && i < first+2; sensitive(k) != between || sensitive(k) && !k.Internal() {
			t.Errorf("%s is number %d, the range begins at %d", k, i, first)
		}
	}
}
