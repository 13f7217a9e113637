package service_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/backend/memory"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/graph/kinds/kindstest"
)

// TestCrossFieldRulesOfTheKinds holds each rule of the product's kinds by hand:
// a spec, and the words of the rule that refuses it, or none.
func TestCrossFieldRulesOfTheKinds(t *testing.T) {
	store, err := memory.Open(memory.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	svc, err := service.New(service.Config{Kinds: kindstest.Kinds(t), Store: store})
	if err != nil {
		t.Fatal(err)
	}
	upsert := func(of, name, spec string) error {
		var tree map[string]any
		if err := json.Unmarshal([]byte(spec), &tree); err != nil {
			t.Fatalf("%s: %v", spec, err)
		}
		tree["cloudCredentialsRef"] = map[string]any{"secretName": "s", "cloudName": "c"}
		_, err := svc.Upsert(context.Background(), anon, service.UpsertRequest{Identity: kind.Identity{Kind: of, Name: name}, Spec: tree})
		return err
	}
	judge := func(err error, says, what string) {
		t.Helper()
		if says == "" {
			if err != nil {
				t.Errorf("%s is refused: %v", what, err)
			}
			return
		}
		e := wantCode(t, err, failure.CodeValidationFailed)
		found := false
		for _, v := range e.Violations {
			found = found || v.Rule == "rule" && strings.Contains(v.Message, says)
		}
		if !found {
			t.Errorf("%s: no violation says %q: %+v", what, says, e.Violations)
		}
	}
	for _, kind := range []string{"Project", "Network", "Router", "SecurityGroup"} {
		for _, c := range []struct{ spec, says string }{
			{`{"resource":{}}`, ""},
			{`{"managementPolicy":"managed","resource":{},"managedOptions":{"onDelete":"detach"}}`, ""},
			{`{"managementPolicy":"unmanaged","import":{"filter":{"name":"a"}}}`, ""},
			{`{}`, "resource is required while managementPolicy is MANAGED"},
			{`{"resource":{},"import":{"filter":{"name":"a"}}}`, "import is for resources whose managementPolicy is UNMANAGED"},
			{`{"managementPolicy":"unmanaged","resource":{},"import":{"filter":{"name":"a"}}}`, "resource is for resources whose managementPolicy is MANAGED"},
			{`{"managementPolicy":"unmanaged"}`, "import is required while managementPolicy is UNMANAGED"},
			{`{"managementPolicy":"unmanaged","import":{"filter":{"name":"a"}},"managedOptions":{}}`, "managedOptions is for resources whose managementPolicy is MANAGED"},
		} {
			name := "n" + strings.ToLower(kind)
			if strings.Contains(c.spec, "unmanaged") {
				name = "u" + name
			}
			judge(upsert(kind, name, c.spec), c.says, kind+" "+c.spec)
		}
	}
	rule := func(r string) string { return `{"resource":{"rules":[` + r + `]}}` }
	port := func(r string) string { return `{"resource":{"networkRef":"n",` + r + `}}` }
	for _, c := range []struct{ kind, name, spec, says string }{
		{"Subnet", "a", `{"resource":{"networkRef":"n","cidr":"10.0.0.0/24","ipVersion":4}}`, ""},
		{"Subnet", "b", `{"resource":{"networkRef":"n","cidr":"10.0.0.0/24","ipVersion":5}}`, "ipVersion is 4 or 6"},
		{"Subnet", "c", `{"managementPolicy":"unmanaged","import":{"filter":{"ipVersion":6}}}`, ""},
		{"Subnet", "d", `{"managementPolicy":"unmanaged","import":{"filter":{"ipVersion":5}}}`, "ipVersion is 4 or 6"},
		{"SecurityGroup", "a", rule(`{"ethertype":"IPv4","protocol":"tcp","portRange":{"min":21,"max":21}}`), ""},
		{"SecurityGroup", "b", rule(`{"ethertype":"IPv4","protocol":"tcp","portRange":{"min":22,"max":21}}`), "portRange.min is at most portRange.max"},
		{"SecurityGroup", "c", rule(`{"ethertype":"IPv6","protocol":"ipv6-encap"}`), ""},
		{"SecurityGroup", "d", rule(`{"ethertype":"IPv4","protocol":"icmp","portRange":{"min":255,"max":0}}`), ""},
		{"SecurityGroup", "e", rule(`{"ethertype":"IPv4","protocol":"icmp","portRange":{"min":256,"max":0}}`), "portRange.min is at most 255"},
		{"SecurityGroup", "f", rule(`{"ethertype":"IPv6","protocol":"icmpv6","portRange":{"min":0,"max":256}}`), "portRange.max is at most 255"},
		{"Port", "a", port(`"portSecurity":"Enabled","securityGroupRefs":["s"],"allowedAddressPairs":[{"ip":"10.0.0.1"}]`), ""},
		{"Port", "b", port(`"portSecurity":"Disabled","securityGroupRefs":["s"]`), "securityGroupRefs is for ports whose portSecurity is not DISABLED"},
		{"Port", "c", port(`"portSecurity":"Disabled","allowedAddressPairs":[{"ip":"10.0.0.1"}]`), "allowedAddressPairs is for ports whose portSecurity is not DISABLED"},
		{"Port", "a", port(`"portSecurity":"Inherit"`), "portSecurity cannot be changed to INHERIT"},
		{"Port", "a", port(`"adminStateUp":true`), "portSecurity cannot be changed to INHERIT"}, // the effective default
		{"Port", "a", port(`"portSecurity":"Disabled"`), ""},
		{"Port", "d", port(`"hostID":{"serverRef":"srv"}`), ""},
		{"Port", "e", port(`"hostID":{"id":""}`), "either id or serverRef is given"},
	} {
		judge(upsert(c.kind, c.name, c.spec), c.says, c.kind+" "+c.spec)
	}
}

func FuzzPatch(f *testing.F) {
	f.Add(`{"title":null,"weight":1,"tags":[],"box":{"import":null}}`)
	f.Add(`{"parts":[{"slot":"a","serial":null}],"notes":{"ab":null}}`)
	f.Fuzz(func(t *testing.T, patch string) {
		if !json.Valid([]byte(patch)) {
			return
		}
		fix := setup(t)
		r := fix.create("a", `{"title":"A","weight":100,"tags":["x"],"box":{"import":true}}`).Resource.Stored.Revision.String()
		out, err := fix.patch("a", r, patch)
		if err != nil {
			return
		}
		again, err := fix.patch("a", out.Resource.Stored.Revision.String(), patch)
		if err != nil || again.Outcome != service.Unchanged {
			t.Fatalf("a patch that was applied is not UNCHANGED the second time: %+v %v", again, err)
		}
	})
}
