package access

import (
	"fmt"
	"testing"
)

// BenchmarkPolicyChange makes the policy of 10,000 bindings after one of them was changed.
func BenchmarkPolicyChange(b *testing.B) {
	roles, bindings := map[string][]byte{}, map[string][]byte{}
	for i := range 20 {
		roles[fmt.Sprint("r", i)] = []byte(`{"metadata":{},"spec":{"rules":[{"kinds":["Network","Subnet"],"verbs":["GET","LIST"]}]}}`)
	}
	binding := func(i, n int) []byte {
		return fmt.Appendf(nil, `{"metadata":{"labels":{"team":"web"}},"spec":{"roles":["r%d"],"users":["token:u%d"],"groups":["oidc:corp:g%d"],"namespaces":["ns%d","*"]}}`, i%20, n, i%100, i%50)
	}
	for i := range 10_000 {
		bindings[fmt.Sprint("b", i)] = binding(i, i)
	}
	b.ReportAllocs()
	n, p := 0, (*Policy)(nil)
	for b.Loop() {
		n++
		bindings["b7"] = binding(7, n)
		p = NewPolicy(Config{Enabled: true}, nil, p, roles, bindings)
	}
}
