package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/graph/kinds"
	"github.com/sluicegw/sluice/internal/redistest"
)

// authorized starts a gateway of the catalogue of networks with access control.
func authorized(t *testing.T) *gateway {
	t.Helper()
	return authorizedOver(t, networks(t), "memory")
}

// authorizedOver is authorized for a catalogue and a store.
func authorizedOver(t *testing.T, catalogue *kinds.Schema, driver string) *gateway {
	t.Helper()
	g := gatewayOver(t, catalogue, drivers[driver], func(cfg *service.Config) {
		cfg.Access = access.Config{Enabled: true, AdminGroup: "token:admins"}
	})
	ctx, cancel := context.WithCancel(t.Context())
	running := make(chan error, 1)
	go func() { running <- g.svc.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-running
	})
	redistest.Await(t, "the policy", func() error {
		_, err := g.svc.Reader.Policy(ctx)
		return err
	})
	return g
}

// as makes somebody the caller.
func (g *gateway) as(name string, groups ...string) *gateway {
	g.caller = access.Caller{Identity: &access.Identity{Name: name, Source: "token", Groups: groups}}
	return g
}

func (g *gateway) asAdmin() *gateway { return g.as("token:root", "token:admins") }

// apply applies manifests.
func (g *gateway) apply(manifests ...string) {
	g.t.Helper()
	for _, m := range manifests {
		if got := g.do(`mutation($m: String!) { applyManifest(input: {manifest: $m}) { outcome } }`, map[string]any{"m": m}); len(got.Errors) > 0 {
			g.t.Fatalf("%s\n%v", m, got.Errors)
		}
	}
}

func role(name, rules string) string {
	return fmt.Sprintf(`{"apiVersion": "access.sluice.dev/v1", "kind": "AccessRole", "metadata": {"name": %q}, "spec": {"rules": [%s]}}`, name, rules)
}

func binding(name, user, role, namespaces string) string {
	return fmt.Sprintf(`{"apiVersion": "access.sluice.dev/v1", "kind": "AccessBinding", "metadata": {"name": %q}, "spec": {"users": [%q], "roles": [%q], "namespaces": [%q]}}`, name, user, role, namespaces)
}

// team gives token:dev two kinds in the namespace dev, token:auditor the bindings, and token:ci the catalogue.
func team(g *gateway) {
	g.t.Helper()
	g.asAdmin().apply(
		role("dev", `{"kinds": ["Network"], "verbs": ["GET", "LIST", "PATCH", "DELETE", "CREATE", "CONTROL"]}, {"kinds": ["Subnet"], "verbs": ["UPDATE", "CREATE"]}, {"kinds": ["Port"], "verbs": ["GET"], "names": ["p"]}`),
		role("all", `{"kinds": ["*"], "verbs": ["GET", "CATALOGUE"]}`),
		role("auditor", `{"kinds": ["AccessBinding"], "verbs": ["GET", "LIST"]}`),
		binding("dev", "token:dev", "dev", "dev"), binding("ci", "token:ci", "all", "*"), binding("auditors", "token:auditor", "auditor", "*"), binding("viewers", "token:watcher", "viewer", "*"),
	)
}

func TestACallerReadsWhatItMayDo(t *testing.T) {
	g := authorized(t)
	team(g)
	g.as("token:dev")
	for arguments, want := range map[string]string{
		``:                                     ``,
		`(kind: "net")`:                        "GET LIST CREATE PATCH DELETE",
		`(kind: "networks", namespace: "dev")`: "GET LIST CREATE PATCH DELETE",
		`(kind: "Network", namespace: "prod")`: ``,
		`(kind: "Network", namespace: "dev", name: "not-here")`: "GET LIST CREATE PATCH DELETE",
		`(kind: "Network", name: "a")`:                          ``,
		`(kind: "Subnet")`:                                      "CREATE", // what is not seen cannot be written
		`(kind: "Port", namespace: "dev")`:                      "GET",
		`(kind: "Port", namespace: "dev", name: "p")`:           "GET",
		`(kind: "Port", namespace: "dev", name: "q")`:           ``,
		`(kind: "AccessRole")`:                                  ``,
	} {
		quoted := `"` + strings.ReplaceAll(want, " ", `","`) + `"`
		if want == "" {
			quoted = ""
		}
		g.wants(`{ access`+arguments+` }`, `{"access":[`+quoted+`]}`)
	}
	g.as("token:ci").wants(`{ access }`, `{"access":["CATALOGUE"]}`)
	g.as("token:watcher").wants(`{ access(kind: "AccessRole") }`, `{"access":[]}`)
	g.asAdmin().wants(`{ access none: access(kind: "AccessRole", name: "x") }`,
		`{"access":["CATALOGUE","EXPORT"],"none":["GET","LIST","WATCH","CREATE","UPDATE","PATCH","UPSERT","FINALIZE","DELETE","ESCALATE"]}`)
}

func TestWhatIsAskedOfAccessHasToMakeSense(t *testing.T) {
	g := authorized(t)
	team(g)
	g.as("token:dev")
	codes := map[bool]failure.Code{false: failure.CodeBadUserInput, true: failure.CodeValidationFailed}
	for query, want := range map[string]string{
		`{ access(kind: "Netwrk") }`:                                            `kind: kind "Netwrk" is not known; known kinds: `,
		`{ access(kind: "AccessRole", namespace: "dev") }`:                      "namespace: kind AccessRole is GLOBAL",
		`{ access(kind: "AccessRole", namespace: "dev", name: "a") }`:           "namespace: kind AccessRole is GLOBAL",
		`{ access(namespace: "dev") }`:                                          "namespace: namespace goes with kind",
		`{ access(name: "a") }`:                                                 "name: name goes with kind",
		`{ access(kind: "Network", namespace: "Dev!") }`:                        "namespace: metadata.namespace: must be a DNS label",
		`{ access(kind: "Network", name: "A") }`:                                "name: metadata.name: must be a DNS-1123 subdomain",
		`{ accessGrants(verb: GET) { role } }`:                                  "kind: GET is used on resources",
		`{ accessGrants(verb: EXPORT, kind: "Network") { role } }`:              "kind: EXPORT is of no kind",
		`{ accessGrants(verb: REVEAL, kind: "Network") { role } }`:              "verb: kind Network does not offer REVEAL",
		`{ accessGrants(verb: STATUS, kind: "AccessBinding") { role } }`:        "verb: kind AccessBinding does not offer STATUS",
		`{ accessGrants(verb: GET, kind: "Network", namespace: "-") { role } }`: "namespace: metadata.namespace: must be a DNS label",
	} {
		var known *failure.Error
		if got := g.do(query, nil); len(got.Errors) != 1 || !errors.As(got.Errors[0].Err, &known) || known.Code != codes[strings.Contains(want, "metadata")] || !strings.HasPrefix(known.Path+": "+known.Message, want) {
			t.Errorf("%s: %v, want %s", query, got.Errors, want)
		}
	}
}

func TestResourcesAndKindsSayWhatTheCallerMayDo(t *testing.T) {
	g := authorized(t)
	team(g)
	g.apply(`{"apiVersion": "openstack.k-orc.cloud/v1alpha1", "kind": "Network", "metadata": {"name": "n", "namespace": "dev"}, "spec": {"cloudCredentialsRef": {"secretName": "s", "cloudName": "c"}, "resource": {}}}`)
	const ask = `{ network(namespace: "dev", name: "n") { allowed } }`
	g.as("token:dev").wants(ask, `{"network":{"allowed":["GET","LIST","CREATE","PATCH","DELETE"]}}`)
	g.wants(`{ resources(kind: "Network", namespace: "dev") { nodes { allowed } } }`, `{"resources":{"nodes":[{"allowed":["GET","LIST","CREATE","PATCH","DELETE"]}]}}`)
	g.as("token:watcher").wants(ask, `{"network":{"allowed":["GET","LIST","WATCH"]}}`)
	kindsOf := func() string { return string(g.do(`{ kinds { name allowed } }`, nil).Data) }
	if got := kindsOf(); !strings.Contains(got, `{"name":"Network","allowed":["GET","LIST","WATCH"]}`) || !strings.Contains(got, `{"name":"AccessRole","allowed":[]}`) {
		t.Error(got)
	}
	g.caller = access.Caller{}
	if got := kindsOf(); strings.Contains(got, "GET") || !strings.Contains(got, `"Network"`) {
		t.Error(got)
	}
}

func TestKind_TellsItsSizeToThoseWhoMayListAllOfIt(t *testing.T) {
	g := authorized(t)
	team(g)
	const network = `{"apiVersion": "openstack.k-orc.cloud/v1alpha1", "kind": "Network", "metadata": {"name": "n", "namespace": "dev"},
		"spec": {"cloudCredentialsRef": {"secretName": "s", "cloudName": "c"}, "resource": {"description": "d"}}}`
	size := func() float64 {
		t.Helper()
		var data struct {
			Kinds []struct {
				Name        string
				StoredBytes *float64
			}
		}
		if err := json.Unmarshal(g.do(`{ kinds { name storedBytes } }`, nil).Data, &data); err != nil {
			t.Fatal(err)
		}
		for _, k := range data.Kinds {
			if k.Name == "Network" && k.StoredBytes != nil {
				return *k.StoredBytes
			}
		}
		return -1
	}
	g.asAdmin()
	if got := size(); got != 0 {
		t.Errorf("no network takes %v bytes", got)
	}
	g.apply(network)
	short := size()
	g.apply(strings.Replace(network, `"d"`, `"dd"`, 1))
	if long := size(); short <= 0 || long != short+1 {
		t.Errorf("a description that is one byte longer: %v, %v", short, long)
	}
	g.as("token:watcher")
	if got := size(); got <= 0 {
		t.Errorf("who may list all: %v", got)
	}
	g.as("token:dev")
	if got := size(); got != -1 {
		t.Errorf("who may list one namespace is told %v", got)
	}
}

func TestWhoMayDoSomethingIsShownToThoseWhoMayReadTheBindings(t *testing.T) {
	g := authorized(t)
	team(g)
	const ask = `{ accessGrants(verb: PATCH, kind: "Network", namespace: "dev") { binding role rule users groups } }`
	dev := `{"binding":"dev","role":"dev","rule":0,"users":["token:dev"],"groups":[]}`
	g.asAdmin().wants(ask, `{"accessGrants":[{"binding":null,"role":null,"rule":null,"users":[],"groups":["token:admins"]},`+dev+`]}`)
	g.as("token:auditor").wants(ask, `{"accessGrants":[`+strings.Replace(dev, `"rule":0`, `"rule":null`, 1)+`]}`)
	g.as("token:dev").wants(ask, `{"accessGrants":[]}`)
	g.as("token:auditor").wants(`{ accessGrants(verb: WATCH, kind: "Port", namespace: "any", name: "p") { binding role rule } }`, `{"accessGrants":[{"binding":"viewers","role":"viewer","rule":0}]}`)
	g.wants(`{ accessGrants(verb: CATALOGUE) { binding role rule } }`, `{"accessGrants":[{"binding":"ci","role":"all","rule":null}]}`)
	g.asAdmin().wants(`{ accessGrants(verb: PATCH, kind: "Network", namespace: "prod") { binding } }`, `{"accessGrants":[{"binding":null}]}`)
}

func TestBlockersThatTheCallerMayNotSeeAreCounted(t *testing.T) {
	g := authorized(t)
	team(g)
	const cloud = `"cloudCredentialsRef": {"secretName": "s", "cloudName": "c"}`
	g.apply(
		`{"apiVersion": "openstack.k-orc.cloud/v1alpha1", "kind": "Network", "metadata": {"name": "n", "namespace": "dev"}, "spec": {`+cloud+`, "resource": {}}}`,
		`{"apiVersion": "openstack.k-orc.cloud/v1alpha1", "kind": "Subnet", "metadata": {"name": "s", "namespace": "dev"}, "spec": {`+cloud+`, "resource": {"networkRef": "n", "ipVersion": 4, "cidr": "10.0.0.0/24"}}}`,
	)
	const ask = `mutation { deleteNetwork(input: {namespace: "dev", name: "n", dryRun: true}) { state blockedBy { totalCount hiddenCount nodes { name } } } }`
	g.asAdmin().wants(ask, `{"deleteNetwork":{"state":"PENDING","blockedBy":{"totalCount":1,"hiddenCount":0,"nodes":[{"name":"s"}]}}}`)
	g.as("token:dev").wants(ask, `{"deleteNetwork":{"state":"PENDING","blockedBy":{"totalCount":0,"hiddenCount":1,"nodes":[]}}}`)
	g.wants(`{ network(namespace: "dev", name: "n") { blockedBy(first: 0) { hiddenCount } dependents { hiddenCount } dependencies { hiddenCount } } }`,
		`{"network":{"blockedBy":{"hiddenCount":1},"dependents":{"hiddenCount":0},"dependencies":{"hiddenCount":0}}}`)
}

func TestWithoutAccessControlEverythingOfferedIsAllowed(t *testing.T) {
	g := newGateway(t, shelves(t), nil)
	g.wants(`{ access kind: access(kind: "Shelf") accessGrants(verb: GET, kind: "Shelf") { role } }`, `{"access":["CATALOGUE","EXPORT"],"kind":["GET","CREATE"],"accessGrants":[]}`)
}

func TestTheVerbsOfTheAPIAreThoseOfTheEvaluator(t *testing.T) {
	g := newGateway(t, shelves(t), nil)
	var got []string
	for _, v := range g.engine.Schema().Types["AccessVerb"].EnumValues {
		got = append(got, v.Name)
	}
	if want := fmt.Sprint(access.Verbs()); fmt.Sprint(got) != want {
		t.Errorf("%v, want %s", got, want)
	}
}

// Each root field of a mutation is judged by the policy that the fields before it have left behind.
func TestALaterMutationIsJudgedByThePolicyThatAnEarlierOneHasMade(t *testing.T) {
	g := authorized(t)
	g.asAdmin().apply(role("own", `{"kinds": ["Network", "AccessBinding", "AccessRole"], "verbs": ["*"]}`), binding("own", "token:dev", "own", "*"))
	g.as("token:dev")
	got := g.do(`mutation($r: String!, $b: String!) {
		role: applyManifest(input: {manifest: $r}) { outcome }
		bind: applyManifest(input: {manifest: $b}) { outcome }
		dropped: deleteAccessBinding(input: {name: "own"}) { state }
		kind: updateKind(input: {kind: "Network", controlled: true}) { kind { name } }
		back: applyManifest(input: {manifest: $b}) { outcome }
	}`, map[string]any{"r": role("new", `{"kinds": ["Network"], "verbs": ["GET"]}`), "b": binding("new", "token:dev", "new", "*")})
	var codes []string
	for _, err := range got.Errors {
		if known, ok := errors.AsType[*failure.Error](err); ok {
			codes = append(codes, fmt.Sprint(err.Path, " ", known.Code))
		}
	}
	if text := string(got.Data); !strings.Contains(text, `"role":{"outcome":"CREATED"},"bind":{"outcome":"CREATED"},"dropped":{"state":"DELETED"},"kind":null,"back":null`) || strings.Join(codes, ", ") != "kind FORBIDDEN, back FORBIDDEN" {
		t.Errorf("%s %v", text, codes)
	}
}
