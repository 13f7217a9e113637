package backend_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/sluicegw/sluice/backend"
)

func TestSensitiveRecordsLieTogether(t *testing.T) {
	keys := []backend.Key{
		{Kind: "A", Name: "x"}, {Kind: "Zebra", Namespace: "z", Name: "x"}, {Kind: "_catalogue", Name: "x"}, {Kind: "_lease", Name: "x"}, {Kind: "sensitive", Name: "x"},
	}
	for _, k := range keys[:2] {
		keys = append(keys, k.Sensitive())
	}
	slices.SortFunc(keys, func(a, b backend.Key) int { return bytes.Compare(a.Append(nil), b.Append(nil)) })
	first := slices.IndexFunc(keys, backend.Key.IsSensitive)
	for i, k := range keys {
		if between := i >= first && i < first+2; k.IsSensitive() != between || k.IsSensitive() && !k.Internal() {
			t.Errorf("%s is number %d, the range begins at %d", k, i, first)
		}
	}
}
