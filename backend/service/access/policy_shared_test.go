package access_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/access"
)

// TestPolicy_NamespacesShareTheNamesOfARole fails if the names of a role are copied for each namespace that it is bound
// in.
func TestPolicy_NamespacesShareTheNamesOfARole(t *testing.T) {
	const many = 1000
	rule := access.Rule{Kinds: []string{"Network"}, Verbs: []descriptor.Verb{"GET", "LIST"}}
	binding := access.Binding{Roles: []string{"r"}, Users: []string{"token:u"}}
	for i := range many {
		rule.Names = append(rule.Names, fmt.Sprint("n", i))
		binding.Namespaces = append(binding.Namespaces, fmt.Sprint("ns", i))
	}
	p := policy(t, map[string][]access.Rule{"r": {rule}, "one": {{Kinds: rule.Kinds, Verbs: rule.Verbs, Names: []string{"x"}}}},
		binding, access.Binding{Roles: []string{"one"}, Users: []string{"token:u"}, Namespaces: []string{"ns1"}})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	s := p.RightsOf(user("token:u")).Scope(kindOf("Network"), "LIST", "GET")
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > 4<<20 {
		t.Errorf("a scope of %d names in %d namespaces takes %d bytes", many, many, got)
	}
	for _, c := range []struct {
		key backend.Key
		has bool
	}{
		{backend.Key{Namespace: "ns1", Name: "x"}, true}, {backend.Key{Namespace: "ns2", Name: "x"}, false},
		{backend.Key{Namespace: "ns1", Name: "n1"}, true}, {backend.Key{Namespace: "ns2", Name: "n999"}, true}, {backend.Key{Namespace: "ns", Name: "n1"}, false},
	} {
		if s.Has(c.key.Namespace, c.key.Name) != c.has {
			t.Errorf("%v: %t, want %t", c.key, !c.has, c.has)
		}
	}
	if s.Size() != many*many+1 {
		t.Errorf("%d places", s.Size())
	}
}
