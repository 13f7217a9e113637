package access_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/sluicegw/sluice/backend/service/access"
)

// BenchmarkPolicy makes the policy of 10,000 bindings: the first one, and one after a change.
func BenchmarkPolicy(b *testing.B) {
	bindings := map[string][]byte{}
	for i := range 10_000 {
		raw, err := json.Marshal(map[string]any{"metadata": map[string]any{"generation": 1}, "spec": access.Binding{
			Roles: []string{access.Editor}, Users: []string{fmt.Sprintf("token:user-%d", i)}, Groups: []string{fmt.Sprintf("oidc:corp:group-%d", i%100)}, Namespaces: []string{fmt.Sprintf("ns-%d", i%1000)},
		}})
		if err != nil {
			b.Fatal(err)
		}
		bindings[fmt.Sprintf("binding-%d", i)] = raw
	}
	cfg := access.Config{Enabled: true}
	b.Run("first", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			access.NewPolicy(cfg, kinds(), nil, nil, bindings)
		}
	})
	b.Run("next", func(b *testing.B) {
		b.ReportAllocs()
		for p := access.NewPolicy(cfg, kinds(), nil, nil, bindings); b.Loop(); {
			p = access.NewPolicy(cfg, kinds(), p, nil, bindings)
		}
	})
}
