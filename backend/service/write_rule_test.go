package service_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/memory"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/jsontree"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/servicetest"
	"github.com/sluicegw/sluice/graph/kinds/kindstest"
)

// rulings judges specs of the product's kinds.
type rulings struct {
	t *testing.T
	*service.Service
	made int
}

func newRulings(t *testing.T) *rulings {
	t.Helper()
	store, err := memory.Open(memory.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	svc, err := service.New(service.Config{Kinds: kindstest.Kinds(t), Store: store})
	if err != nil {
		t.Fatal(err)
	}
	return &rulings{t: t, Service: svc}
}

// spec reads a spec, and adds the credentials that all kinds but one have.
func (r *rulings) spec(of, text string) map[string]any {
	r.t.Helper()
	var tree map[string]any
	if err := json.Unmarshal([]byte(text), &tree); err != nil {
		r.t.Fatalf("%s: %v", text, err)
	}
	if of != "RouterInterface" {
		tree["cloudCredentialsRef"] = map[string]any{"secretName": "s", "cloudName": "c"}
	}
	return tree
}

// create makes a resource of a new name.
func (r *rulings) create(of, spec string) (kind.Identity, string, error) {
	r.t.Helper()
	r.made++
	id := kind.Identity{Kind: of, Name: fmt.Sprint("n", r.made)}
	out, err := r.Writer.Create(context.Background(), service.CreateRequest{Identity: id, Spec: r.spec(of, spec)})
	if err != nil {
		return id, "", err
	}
	return id, out.Resource.Stored.Revision.String(), nil
}

// check fails unless a write is accepted, if says is empty, or refused at the path with the text says.
func (r *rulings) check(what string, err error, path, says string) {
	r.t.Helper()
	if says == "" {
		if err != nil {
			r.t.Errorf("%s is refused: %v", what, err)
		}
		return
	}
	if err == nil {
		r.t.Errorf("%s is accepted", what)
		return
	}
	e := servicetest.WantCode(r.t, err, failure.CodeValidationFailed)
	found := false
	for _, v := range e.Violations {
		cel, _ := v.Limit.(string)
		found = found || v.Rule == "rule" && v.Path == path && v.Message == says && cel != ""
	}
	if !found || !strings.Contains(e.Error(), path+": "+says) {
		r.t.Errorf("%s: nothing is told of %s as %q: %v", what, path, says, err)
	}
}

// TestWrite_WhoOwnsAResourceSaysWhatItHas: a managed resource has a resource and no
// import, an unmanaged one the reverse. All kinds with a management policy are asked.
func TestWrite_WhoOwnsAResourceSaysWhatItHas(t *testing.T) {
	r, managed := newRulings(t), 0
	for _, k := range kindstest.Kinds(t) {
		if k.Spec.Field("managementPolicy") == nil {
			continue
		}
		managed++
		part := func(name string) string {
			raw, err := json.Marshal(sample(k.Spec.Field(name), 0))
			if err != nil {
				t.Fatal(err)
			}
			return fmt.Sprintf("%q:%s", name, raw)
		}
		resource, imported := part("resource"), part("import")
		for _, c := range []struct{ spec, says string }{
			{`{` + resource + `}`, ""},
			{`{"managementPolicy":"managed",` + resource + `,"managedOptions":{"onDelete":"detach"}}`, ""},
			{`{"managementPolicy":"unmanaged",` + imported + `}`, ""},
			{`{}`, "set resource: it is required while managementPolicy is MANAGED"},
			{`{` + resource + `,` + imported + `}`, "remove import, or set managementPolicy to UNMANAGED"},
			{`{"managementPolicy":"unmanaged",` + resource + `,` + imported + `}`, "remove resource, or set managementPolicy to MANAGED"},
			{`{"managementPolicy":"unmanaged"}`, "set import: it is required while managementPolicy is UNMANAGED"},
			{`{"managementPolicy":"unmanaged",` + imported + `,"managedOptions":{}}`, "remove managedOptions, or set managementPolicy to MANAGED"},
		} {
			_, _, err := r.create(k.Name, c.spec)
			r.check(k.Name+" "+c.spec, err, "spec", c.says)
		}
	}
	if managed != 25 {
		t.Errorf("%d kinds have a management policy", managed)
	}
}

// TestWrite_CrossFieldRulesOfTheKinds holds each rule about one state of the product's
// kinds by hand: a spec, and the words of the rule that refuses it, or none.
func TestWrite_CrossFieldRulesOfTheKinds(t *testing.T) {
	const (
		resource = "spec.resource"
		filter   = "spec.import.filter"
		rules    = "spec.resource.rules[0]"
		host     = "spec.resource.hostID"
	)
	rule := func(r string) string { return `{"resource":{"rules":[` + r + `]}}` }
	port := func(r string) string { return `{"resource":{"networkRef":"n",` + r + `}}` }
	server := func(r string) string { return `{"resource":{"flavorRef":"f","ports":[]` + r + `}}` }
	group := func(r string) string { return `{"resource":{` + r + `}}` }
	assignment := func(r string) string { return `{"resource":{"roleRef":"r"` + r + `}}` }
	const (
		version    = "set ipVersion to 4 or 6"
		order      = "set portRange.min to at most portRange.max: protocol is TCP, UDP, DCCP, SCTP, UDPLITE or absent"
		icmpMin    = "set portRange.min to at most 255: protocol is ICMP, ICMPV6 or absent"
		icmpMax    = "set portRange.max to at most 255: protocol is ICMP, ICMPV6 or absent"
		noGroups   = "remove securityGroupRefs, or set portSecurity to ENABLED"
		noPairs    = "remove allowedAddressPairs, or set portSecurity to ENABLED"
		oneHost    = "set either id or serverRef, and not to an empty text"
		oneSource  = "set either floatingNetworkRef or floatingSubnetRef"
		oneActor   = "set either userRef or groupRef"
		oneScope   = "set either projectRef or domainRef"
		someDisk   = "set imageRef or bootVolume"
		oneDisk    = "set either imageRef or bootVolume, not both"
		perHost    = "remove rules.maxServerPerHost, or set policy to ANTI_AFFINITY"
		together   = "set both networkRef and subnetRef, or neither"
		onlySubnet = "set subnetRef if type is SUBNET, and remove it otherwise"
		content    = "set resource.content: it is required unless the image is imported"
	)
	r := newRulings(t)
	for _, c := range []struct{ kind, spec, path, says string }{
		{"AddressScope", `{"resource":{"ipVersion":6}}`, "", ""},
		{"AddressScope", `{"resource":{"ipVersion":5}}`, resource, version},
		{"AddressScope", `{"managementPolicy":"unmanaged","import":{"filter":{"ipVersion":4}}}`, "", ""},
		{"AddressScope", `{"managementPolicy":"unmanaged","import":{"filter":{"ipVersion":5}}}`, filter, version},
		{"Subnet", `{"resource":{"networkRef":"n","cidr":"10.0.0.0/24","ipVersion":4}}`, "", ""},
		{"Subnet", `{"resource":{"networkRef":"n","cidr":"10.0.0.0/24","ipVersion":5}}`, resource, version},
		{"Subnet", `{"managementPolicy":"unmanaged","import":{"filter":{"ipVersion":6}}}`, "", ""},
		{"Subnet", `{"managementPolicy":"unmanaged","import":{"filter":{"ipVersion":5}}}`, filter, version},
		{"SecurityGroup", rule(`{"ethertype":"IPv4","protocol":"tcp","portRange":{"min":21,"max":21}}`), "", ""},
		{"SecurityGroup", rule(`{"ethertype":"IPv4","protocol":"tcp","portRange":{"min":22,"max":21}}`), rules, order},
		{"SecurityGroup", rule(`{"ethertype":"IPv4","portRange":{"min":22,"max":21}}`), rules, order},
		{"SecurityGroup", rule(`{"ethertype":"IPv6","protocol":"ipv6-encap"}`), "", ""},
		{"SecurityGroup", rule(`{"ethertype":"IPv4","protocol":"icmp","portRange":{"min":255,"max":0}}`), "", ""},
		{"SecurityGroup", rule(`{"ethertype":"IPv4","protocol":"icmp","portRange":{"min":256,"max":0}}`), rules, icmpMin},
		{"SecurityGroup", rule(`{"ethertype":"IPv6","protocol":"icmpv6","portRange":{"min":0,"max":256}}`), rules, icmpMax},
		{"Port", port(`"portSecurity":"Enabled","securityGroupRefs":["s"],"allowedAddressPairs":[{"ip":"10.0.0.1"}]`), "", ""},
		{"Port", port(`"portSecurity":"Disabled"`), "", ""},
		{"Port", port(`"portSecurity":"Disabled","securityGroupRefs":["s"]`), resource, noGroups},
		{"Port", port(`"portSecurity":"Disabled","allowedAddressPairs":[{"ip":"10.0.0.1"}]`), resource, noPairs},
		{"Port", port(`"hostID":{"serverRef":"srv"}`), "", ""},
		{"Port", port(`"hostID":{"id":"host"}`), "", ""},
		{"Port", port(`"hostID":{"id":""}`), host, oneHost},
		{"FloatingIP", `{"resource":{"floatingNetworkRef":"n"}}`, "", ""},
		{"FloatingIP", `{"resource":{"floatingSubnetRef":"s"}}`, "", ""},
		{"FloatingIP", `{"resource":{"floatingNetworkRef":"n","floatingSubnetRef":"s"}}`, resource, oneSource},
		{"FloatingIP", `{"resource":{"portRef":"p"}}`, resource, oneSource},
		{"RoleAssignment", assignment(`,"userRef":"u","projectRef":"p"`), "", ""},
		{"RoleAssignment", assignment(`,"groupRef":"g","domainRef":"d"`), "", ""},
		{"RoleAssignment", assignment(`,"userRef":"u","groupRef":"g","domainRef":"d"`), resource, oneActor},
		{"RoleAssignment", assignment(`,"domainRef":"d"`), resource, oneActor},
		{"RoleAssignment", assignment(`,"userRef":"u","projectRef":"p","domainRef":"d"`), resource, oneScope},
		{"RoleAssignment", assignment(`,"userRef":"u"`), resource, oneScope},
		{"Server", server(`,"imageRef":"i"`), "", ""},
		{"Server", server(`,"bootVolume":{"volumeRef":"v"}`), "", ""},
		{"Server", server(``), resource, someDisk},
		{"Server", server(`,"imageRef":"i","bootVolume":{"volumeRef":"v"}`), resource, oneDisk},
		{"ServerGroup", group(`"policy":"anti-affinity","rules":{"maxServerPerHost":2}`), "", ""},
		{"ServerGroup", group(`"policy":"affinity","rules":{"maxServerPerHost":0}`), "", ""},
		{"ServerGroup", group(`"policy":"affinity","rules":{}`), "", ""},
		{"ServerGroup", group(`"policy":"soft-anti-affinity","rules":{"maxServerPerHost":1}`), resource, perHost},
		{"ShareNetwork", `{"resource":{}}`, "", ""},
		{"ShareNetwork", `{"resource":{"networkRef":"n","subnetRef":"s"}}`, "", ""},
		{"ShareNetwork", `{"resource":{"networkRef":"n"}}`, resource, together},
		{"ShareNetwork", `{"resource":{"subnetRef":"s"}}`, resource, together},
		{"RouterInterface", `{"routerRef":"r","type":"Subnet","subnetRef":"s"}`, "", ""},
		{"RouterInterface", `{"routerRef":"r","type":"Subnet"}`, "spec", onlySubnet},
		{"Image", `{"resource":{"content":{"diskFormat":"raw","download":{"url":"https://example.org/i"}}}}`, "", ""},
		{"Image", `{"managementPolicy":"unmanaged","import":{"filter":{"name":"i"}}}`, "", ""},
		{"Image", `{"resource":{}}`, "spec", content},
	} {
		_, _, err := r.create(c.kind, c.spec)
		r.check(c.kind+" "+c.spec, err, c.path, c.says)
	}
}

// TestWrite_RulesAboutAChangeOfTheKinds holds each rule that looks at the object as it
// was, by an update, an upsert and a patch.
func TestWrite_RulesAboutAChangeOfTheKinds(t *testing.T) {
	const (
		unshared = "leave shared true: a cloud does not take back what it shares"
		inherit  = "set portSecurity to ENABLED or DISABLED: it cannot be changed to INHERIT"
		password = "leave passwordRef, or name another Secret in it: a cloud does not take a password away"
	)
	r := newRulings(t)
	for _, c := range []struct{ kind, first, then, patch, says string }{
		{"AddressScope", `{"resource":{"ipVersion":4}}`, `{"resource":{"ipVersion":4,"shared":false}}`, `{"resource":{"shared":false}}`, ""},
		{"AddressScope", `{"resource":{"ipVersion":4,"shared":false}}`, `{"resource":{"ipVersion":4,"shared":true}}`, `{"resource":{"shared":true}}`, ""},
		{"AddressScope", `{"resource":{"ipVersion":4,"shared":true}}`, `{"resource":{"ipVersion":4,"shared":false}}`, `{"resource":{"shared":false}}`, unshared},
		{"AddressScope", `{"resource":{"ipVersion":4,"shared":true}}`, `{"resource":{"ipVersion":4}}`, `{"resource":{"shared":null}}`, ""},
		{"Port", `{"resource":{"networkRef":"n","portSecurity":"Enabled"}}`, `{"resource":{"networkRef":"n","portSecurity":"Disabled"}}`, `{"resource":{"portSecurity":"Disabled"}}`, ""},
		{"Port", `{"resource":{"networkRef":"n","portSecurity":"Enabled"}}`, `{"resource":{"networkRef":"n","portSecurity":"Inherit"}}`, `{"resource":{"portSecurity":"Inherit"}}`, inherit},
		{"Port", `{"resource":{"networkRef":"n","portSecurity":"Enabled"}}`, `{"resource":{"networkRef":"n"}}`, `{"resource":{"portSecurity":null}}`, inherit}, // the effective default
		{"Port", `{"resource":{"networkRef":"n"}}`, `{"resource":{"networkRef":"n","portSecurity":"Inherit"}}`, `{"resource":{"portSecurity":"Inherit"}}`, ""},
		{"User", `{"resource":{}}`, `{"resource":{"passwordRef":"a"}}`, `{"resource":{"passwordRef":"a"}}`, ""},
		{"User", `{"resource":{"passwordRef":"a"}}`, `{"resource":{"passwordRef":"b"}}`, `{"resource":{"passwordRef":"b"}}`, ""},
		{"User", `{"resource":{"passwordRef":"a"}}`, `{"resource":{}}`, `{"resource":{"passwordRef":null}}`, password},
	} {
		what := c.kind + " " + c.first + " to " + c.then
		for _, verb := range []string{"update", "upsert", "patch"} {
			id, revision, err := r.create(c.kind, c.first)
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			switch ctx := context.Background(); verb {
			case "update":
				_, err = r.Writer.Update(ctx, service.UpdateRequest{Identity: id, ExpectedRevision: revision, Spec: r.spec(c.kind, c.then)})
			case "upsert":
				_, err = r.Writer.Upsert(ctx, service.UpsertRequest{Identity: id, Spec: r.spec(c.kind, c.then)})
			default:
				_, err = r.Writer.Patch(ctx, service.PatchRequest{Identity: id, ExpectedRevision: revision, Patch: json.RawMessage(c.patch)})
			}
			r.check(verb+" of "+what, err, "spec.resource", c.says)
		}
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
		r := fix.CreateWidget("a", `{"title":"A","weight":100,"tags":["x"],"box":{"import":true}}`).Resource.Stored.Revision.String()
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

// TestWrite_ARuleSeesWhatItNames: rules are judged together by the fields that they name. It
// makes no difference whether they look at one, ask whether it is there, or take the whole object.
func TestWrite_ARuleSeesWhatItNames(t *testing.T) {
	const says = "the rule is broken"
	spec := func(rules ...string) *descriptor.Shape {
		inner := &descriptor.Shape{Name: "Inner", Fields: []descriptor.Field{{Name: "x", Type: descriptor.TypeInt}, {Name: "y", Type: descriptor.TypeInt, Default: json.Number("7")}}}
		out := &descriptor.Shape{Name: "RuledSpec", Fields: []descriptor.Field{
			{Name: "text", Type: descriptor.TypeString}, {Name: "policy", Type: descriptor.TypeString, Default: "open"}, {Name: "import", Type: descriptor.TypeString},
			{Name: "numbers", Type: descriptor.TypeInt, List: true}, {Name: "inner", Type: descriptor.TypeObject, Shape: inner},
		}}
		for _, r := range rules {
			out.Rules = append(out.Rules, descriptor.Rule{CEL: r, Message: says})
		}
		return out
	}
	for _, c := range []struct {
		rule              string
		refused, accepted string // specs; empty: none is accepted
	}{
		{`has(self.text)`, `{}`, `{"text":"a"}`},
		{`!has(self.policy)`, `{}`, ``},
		{`self.policy == 'open' || has(self.__import__)`, `{"policy":"closed"}`, `{"policy":"closed","import":"a"}`},
		{`!has(self.inner) || self.inner.y == 7`, `{"inner":{"y":8}}`, `{"inner":{}}`},
		{`!has(self.inner.x)`, `{"inner":{"x":1}}`, `{"inner":{}}`},
		{`size(self) < 4`, `{"text":"a","import":"b","numbers":[]}`, `{"text":"a","import":"b"}`},
		{`!('text' in self)`, `{"text":"a"}`, `{}`},
		{`!has(self.text) || self['text'] == 'a'`, `{"text":"b"}`, `{"text":"a"}`},
		{`!has(self.numbers) || self.numbers.all(n, n > 1)`, `{"numbers":[2,1]}`, `{"numbers":[2,3]}`},
		{`[self].all(s, !has(s.text))`, `{"text":"a"}`, `{}`},
		{`[1].all(self, !has(.self.text))`, `{"text":"a"}`, `{}`},
		{`!has(self.text) || self.text.matches('^a+$')`, `{"text":"ab"}`, `{"text":"aa"}`},
		{`!has(self.text) || self.text + 'b' == 'ab'`, `{"text":"b"}`, `{"text":"a"}`},
		{`self.text == 'a'`, `{}`, `{"text":"a"}`},
	} {
		for _, rules := range [][]string{{c.rule}, {"true", c.rule}, {c.rule, "self.policy != 'none'"}} {
			k := servicetest.Widget()
			k.Name, k.Singular, k.Plural, k.Spec = "Ruled", "ruled", "ruleds", spec(rules...)
			k.Status, k.FilterableFields, k.References, k.SubKinds = nil, nil, nil, nil
			compiled, err := kind.Compile([]descriptor.Kind{k})
			if err != nil {
				t.Fatalf("%s: %v", c.rule, err)
			}
			violations := func(text string) []failure.Violation {
				tree, err := jsontree.Parse(text)
				if err != nil {
					t.Fatal(err)
				}
				var found kind.Violations
				found.Object(t.Context(), compiled.All()[0].Spec, failure.At("spec"), tree)
				var e *failure.Error
				if errors.As(found.Err(backend.Key{}), &e) {
					return e.Violations
				}
				return nil
			}
			if got := violations(c.refused); len(got) != 1 || got[0].Path != "spec" || got[0].Limit != c.rule || !strings.HasPrefix(got[0].Message, says) {
				t.Errorf("%s of %s: %+v", c.rule, c.refused, got)
			}
			if c.accepted == "" {
				continue
			}
			if got := violations(c.accepted); len(got) > 0 {
				t.Errorf("%s of %s: %+v", c.rule, c.accepted, got)
			}
		}
	}
}
