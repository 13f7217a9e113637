package access_test

import (
	"fmt"
	"testing"

	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/access"
)

// TestPolicy_APolicyIsTheSameWhateverTheLastOneWas follows bindings that are made, changed, damaged and deleted.
func TestPolicy_APolicyIsTheSameWhateverTheLastOneWas(t *testing.T) {
	cfg := access.Config{Enabled: true}
	roles := map[string][]byte{"r": body(t, access.Role{Rules: []access.Rule{{Kinds: []string{"*"}, Verbs: []descriptor.Verb{"GET"}}}})}
	bound := func(user, namespace string) []byte {
		return body(t, access.Binding{Roles: []string{"r"}, Users: []string{user}, Groups: []string{"g:" + namespace}, Namespaces: []string{namespace}})
	}
	var last *access.Policy
	for i, bindings := range []map[string][]byte{
		{"b1": bound("token:u", "a"), "b2": bound("token:v", "b")},
		{"b1": bound("token:u", "b"), "b2": bound("token:v", "b")},
		{"b1": []byte(`{"spec":{"users":7}}`), "b2": bound("token:u", "c")},
		{"b1": bound("token:u", "b")},
		{},
		{"b1": bound("token:u", "b"), "b2": bound("token:v", "b")},
	} {
		last = access.NewPolicy(cfg, kinds(), last, roles, bindings)
		anew := access.NewPolicy(cfg, kinds(), nil, roles, bindings)
		for _, id := range []*access.Identity{user("token:u"), user("token:v"), user("token:w", "g:a"), user("token:w", "g:b"), user("token:w", "g:c")} {
			t.Run(fmt.Sprint(i, " ", id.Name, id.Groups), func(t *testing.T) {
				if got, want := last.RightsOf(id).Key(), anew.RightsOf(id).Key(); got != want {
					t.Errorf("%s, want %s", got, want)
				}
			})
		}
	}
}
