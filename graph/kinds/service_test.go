package kinds_test

import "testing"

func TestService_IsPartOfTheDescriptor(t *testing.T) {
	schema, err := load("account", `
type Account @resource(plural: "accounts", group: "crm.example.org", version: "v1", scope: GLOBAL, service: "crm-2") {
  spec: Part!
}
type Note @resource(plural: "notes", group: "crm.example.org", version: "v1", scope: GLOBAL) { spec: Part! }
type Part { size: Int }
`)
	if err != nil {
		t.Fatal(err)
	}
	if got := schema.Kinds[0].Service; got != "crm-2" {
		t.Errorf("Account has the service %q", got)
	}
	if got := schema.Kinds[1].Service; got != "" {
		t.Errorf("Note has the service %q", got)
	}
}

func TestReview_IsPartOfTheDescriptor(t *testing.T) {
	for arguments, want := range map[string]struct {
		review string
		allows bool
	}{
		"":                   {},
		`, review: "policy"`: {"policy", false},
		`, review: "policy", reviewFailure: DENY`:  {"policy", false},
		`, review: "policy", reviewFailure: ALLOW`: {"policy", true},
	} {
		schema, err := load("note", `type Note
@resource(plural: "notes", group: "example.org", version: "v1", scope: GLOBAL`+arguments+`) { spec: Part! }
type Part { size: Int }
`)
		if err != nil {
			t.Errorf("%s: %v", arguments, err)
			continue
		}
		k := schema.Kinds[0].Kind
		if k.Review != want.review || k.ReviewAllowsFailure != want.allows {
			t.Errorf("%s: %q %v", arguments, k.Review, k.ReviewAllowsFailure)
		}
	}
}
