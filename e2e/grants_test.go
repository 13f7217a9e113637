package e2e_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluicegw/sluice/internal/redistest"
)

// audited is a gateway that judges its callers: token:root is its administrator.
type audited struct {
	*gateway
	tokens *tokenFile
	// texts are the tokens by their names.
	texts map[string]string
	audit string
}

// startAudited runs a gateway with a token for each name, and for root.
func startAudited(t *testing.T, names ...string) *audited {
	t.Helper()
	g := &audited{tokens: newTokenFile(t), texts: map[string]string{}, audit: filepath.Join(t.TempDir(), "audit.log")}
	g.texts["root"] = g.tokens.add("root", "admins", time.Time{})
	for _, name := range names {
		g.texts[name] = g.tokens.add(name, "-", time.Time{})
	}
	g.gateway = start(t, "", "--tokens", g.tokens.path, "--admin-group", "token:admins", "--audit", g.audit, "--access-log", "--limit-caller-steps", "1000000000")
	return g
}

// as is a client with the token of a name.
func (g *audited) as(name string) *caller { return g.caller(nil).with(g.texts[name]) }

// administer has the administrator change something.
func (g *audited) administer(query string) {
	g.t.Helper()
	if a := g.as("root").http(query).next(); a.codes() != "" {
		g.t.Fatalf("%s: %+v", query, a)
	}
}

// bind gives a token a role in namespaces.
func (g *audited) bind(token, role string, namespaces ...string) {
	g.t.Helper()
	g.administer(fmt.Sprintf(`mutation { createAccessBinding(input: {name: "%s-%s", spec: {users: ["token:%s"], roles: [%q], namespaces: ["%s"]}}) { outcome: accessBinding { id } } }`,
		token, role, token, role, strings.Join(namespaces, `", "`)))
}

func TestWhatRolesRefuseIsInTheAuditLogOnceAndInTheAccessLog(t *testing.T) {
	t.Parallel()
	g := startAudited(t, "reader")
	g.bind("reader", "viewer", "*")
	questions := map[string]struct{ query, namespace, name string }{
		"of the engine":   {`query Asked { secret(namespace: "ns", name: "s") { id } }`, "ns", "s"},
		"a list":          {`query Asked { secrets(namespace: "ns") { totalCount } }`, "ns", ""},
		"a list of all":   {`query Asked { secrets { totalCount } }`, "", ""},
		"of any kind":     {`query Asked { resources(kind: "Secret", namespace: "ns") { totalCount } }`, "ns", ""},
		"a summary":       {`query Asked { secretsSummary(namespace: "ns", by: ["namespace"]) { groups { count } } }`, "ns", ""},
		"of the core":     {`query Asked { reveal(kind: "Secret", name: "s") { uid } }`, "default", "s"},
		"a mutation":      {`mutation Asked { deleteNetwork(input: {name: "n"}) { state } }`, "default", "n"},
		"a core mutation": {`mutation Asked { updateKind(input: {kind: "Network", controlled: true}) { clientMutationId } }`, "", ""},
	}
	reads := 0
	ask := func(transport, query, namespace, name string) {
		t.Helper()
		reads++
		s := transports[transport](g.as("reader"), query)
		defer s.stop()
		a, how := s.outcome()
		if a.codes() != "FORBIDDEN" && !strings.Contains(how, "FORBIDDEN") {
			t.Errorf("%s by %s: %+v %s", query, transport, a, how)
		}
		var refused []auditLine
		redistest.Await(t, "the refusal is written", func() error {
			lines, err := auditLines(g.audit)
			if err != nil {
				return err
			}
			refused = nil
			for _, line := range lines {
				if line.Event == "REFUSED" {
					refused = append(refused, line)
				}
			}
			if len(refused) < reads {
				return errors.New("it is missing")
			}
			return nil
		})
		if last := refused[len(refused)-1]; len(refused) != reads || last.Code != "FORBIDDEN" || last.By != "token:reader" || last.Verb == "" || last.Kind == "" ||
			last.Namespace != namespace || last.Name != name {
			t.Errorf("%s by %s: %d refusals for %d questions, the last is %+v", query, transport, len(refused), reads, last)
		}
		redistest.Await(t, "the access log has it", func() error {
			n := 0
			for line := range strings.Lines(g.log.String()) {
				if strings.Contains(line, `"operationName":"Asked"`) && strings.Contains(line, `"code":"FORBIDDEN"`) && strings.Contains(line, "token:reader") {
					n++
				}
			}
			if n != reads {
				return fmt.Errorf("%d lines for %d questions", n, reads)
			}
			return nil
		})
	}
	for transport := range transports {
		for _, q := range questions {
			ask(transport, q.query, q.namespace, q.name)
		}
	}
	for _, transport := range streaming() {
		ask(transport, `subscription Asked { secretChanges(namespace: "ns", name: "s") { type } }`, "ns", "s")
		ask(transport, `subscription Asked { resourceChanges(kinds: ["Secret"], namespace: "ns") { type } }`, "ns", "")
	}
}

// TestAllKindsAreThoseThatTheCallerMayList, a tree has the kinds that the caller may see, and both are no errors.
func TestAllKindsAreThoseThatTheCallerMayList(t *testing.T) {
	t.Parallel()
	g := startAudited(t, "viewer", "nobody")
	g.bind("viewer", "viewer", "*")
	file := filepath.Join(t.TempDir(), "wired.yaml")
	if err := os.WriteFile(file, []byte(credentials("s")+wired()+"---\n"+subnet("sub-a")), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, problem, code := g.cliAs("root", "apply", "-f", file); code != 0 {
		t.Fatal(problem)
	}
	const left = "sluice: left out, since you do not have the verb LIST: AccessBinding, AccessRole, Secret\n"
	for _, args := range [][]string{{"get", "all", "-o", "name"}, {"get", "all", "-o", "name", "--sort-by", ".metadata.name"}} {
		out, problem, code := g.cliAs("viewer", args...)
		if code != 0 || problem != left || !strings.Contains(out, "network/net-a\n") || strings.Contains(out, "secret") {
			t.Errorf("%s: exit %d\n%s%s", args, code, out, problem)
		}
	}
	if _, problem, code := g.cliAs("viewer", "get", "secrets,networks"); code != 1 || !strings.Contains(problem, "FORBIDDEN") {
		t.Errorf("kinds that are named: exit %d\n%s", code, problem)
	}
	if out, problem, code := g.cliAs("nobody", "get", "all"); code != 1 || out != "" || problem != "sluice: you do not have the verb LIST on any kind\n" {
		t.Errorf("nobody: exit %d\n%s%s", code, out, problem)
	}
	if out, problem, code := g.cliAs("viewer", "tree", "network", "net-a"); code != 0 || strings.Contains(out, "secret") || !strings.Contains(out, "subnet/") {
		t.Errorf("exit %d\n%s%s", code, out, problem)
	}
	if out, _, _ := g.cliAs("root", "tree", "network", "net-a"); !strings.Contains(out, "secret/s ") {
		t.Errorf("root:\n%s", out)
	}
	tree := g.run("tree", "network/net-a", "--watch", "--token-file", g.tokenOf("viewer"))
	tree.until("subnet/sub-a", "BOUND")
	if err := tree.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	tree.ends(0)
}

// tokenOf returns a file with the token of a name.
func (g *audited) tokenOf(name string) string {
	g.t.Helper()
	path := filepath.Join(g.t.TempDir(), "token")
	if err := os.WriteFile(path, []byte(g.texts[name]), 0o600); err != nil {
		g.t.Fatal(err)
	}
	return path
}

// cliAs runs a command with the token of a name.
func (g *audited) cliAs(name string, args ...string) (out, problem string, code int) {
	g.t.Helper()
	return g.cli("", append(args, "--token-file", g.tokenOf(name))...)
}

// lined has one space between words, so that columns can be compared.
func lined(text string) string {
	var out []string
	for line := range strings.Lines(text) {
		out = append(out, strings.Join(strings.Fields(line), " "))
	}
	return strings.Join(out, "\n")
}

func TestTheCommandLineSaysWhoMayDoWhat(t *testing.T) {
	t.Parallel()
	g := startAudited(t, "dev", "auditor", "nobody")
	g.administer(`mutation { createAccessRole(input: {name: "dev", spec: {rules: [{kinds: ["Network"], verbs: ["GET", "LIST", "PATCH"]}, {kinds: ["Subnet"], verbs: ["PATCH"]}]}}) { accessRole { id } } }`)
	g.administer(`mutation { createAccessRole(input: {name: "auditor", spec: {rules: [{kinds: ["AccessBinding", "AccessRole"], verbs: ["GET", "LIST"]}]}}) { accessRole { id } } }`)
	g.bind("dev", "dev", "web")
	g.bind("dev", "viewer", "lab")
	g.bind("auditor", "auditor", "*")
	for _, c := range []struct {
		name, command, out string
		code               int
	}{
		{"dev", "can-i patch network", "yes", 0},
		{"dev", "can-i PATCH net/a -n web", "yes", 0},
		{"dev", "can-i patch networks a", "no", 1},
		{"dev", "can-i patch networks -n lab", "no", 1},
		{"dev", "can-i patch subnets", "no", 1},
		{"dev", "can-i export", "no", 1},
		{"root", "can-i export", "yes", 0},
		{"root", "can-i delete abind x", "yes", 0},
		{"dev", "can-i fly network", "", 2},
		{"dev", "can-i get", "", 2},
		{"dev", "can-i export network", "", 2},
		{"dev", "can-i get nothing", "", 1},
		{"dev", "can-i", "", 2},
		{"dev", "can-i --list network -n web", "KIND VERBS\nNetwork get,list,patch", 0},
		{"nobody", "can-i --list", "", 0},
		{"auditor", "can-i --list", "KIND VERBS\nAccessBinding get,list\nAccessRole get,list", 0},
		{"auditor", "can-i --list -n web", "KIND VERBS\nAccessBinding get,list\nAccessRole get,list", 0},
		{"auditor", "who-can patch network -n web", "BINDING ROLE RULE USERS GROUPS\ndev-dev dev 0 token:dev -", 0},
		{"root", "who-can get port a -n lab", "BINDING ROLE RULE USERS GROUPS\n(admin-group) - - - token:admins\ndev-viewer viewer 0 token:dev -", 0},
		{"dev", "who-can patch network -n web", "", 0},
		{"dev", "explain patch network -n web", "yes: token:dev may use PATCH on network -n web\nPATCH is given by a binding that you may not see\nGET is given by a binding that you may not see", 0},
		{"dev", "explain patch subnet/a -n web", "no: token:dev may not use PATCH on subnet/a -n web\nno binding that you may see gives PATCH\nno binding that you may see gives GET", 1},
		{"auditor", "explain list arole", "yes: token:auditor may use LIST on accessrole\nVERB BINDING ROLE RULE FOR\nLIST auditor-auditor auditor 0 token:auditor\nGET auditor-auditor auditor 0 token:auditor", 0},
		{"root", "explain export", "yes: token:root may use EXPORT\nVERB BINDING ROLE RULE FOR\nEXPORT (admin-group) - - token:admins", 0},
	} {
		out, problem, code := g.cliAs(c.name, append([]string{"auth"}, strings.Fields(c.command)...)...)
		if lined(out) != c.out || code != c.code || code == 2 && problem == "" {
			t.Errorf("%s: %s: %d\n%s%s\nwant %d %s", c.name, c.command, code, lined(out), problem, c.code, c.out)
		}
	}
	out, _, _ := g.cliAs("dev", "auth", "can-i", "patch", "net", "a", "-n", "web", "-o", "json")
	if want := `{ "allowed": true, "verb": "PATCH", "kind": "Network", "namespace": "web", "name": "a" }`; strings.Join(strings.Fields(out), " ") != want {
		t.Error(out)
	}
	out, _, _ = g.cliAs("auditor", "auth", "explain", "get", "abind", "-o", "yaml")
	if !strings.Contains(out, "allowed: true") || !strings.Contains(out, "binding: auditor-auditor") || !strings.Contains(out, "missing: []") {
		t.Error(out)
	}
}

func TestTheCommandLineSaysThatThereIsNoAccessControl(t *testing.T) {
	t.Parallel()
	g := start(t, "")
	for command, want := range map[string]string{
		"can-i delete network a":     "yes",
		"explain delete network a":   "yes: the gateway has no access control, everybody may do everything",
		"who-can delete network a":   "the gateway has no access control, everybody may do everything",
		"can-i --list arole":         "KIND VERBS\nAccessRole get,list,watch,create,update,patch,upsert,finalize,delete,escalate",
		"can-i reveal network":       "no",
		"who-can delete network/a/b": "",
	} {
		if out, problem, _ := g.cli("", append([]string{"auth"}, strings.Fields(command)...)...); lined(out) != want || want == "" && problem == "" {
			t.Errorf("%s: %s%s", command, out, problem)
		}
	}
}

func TestTheKindsOfTheProductAreShownLikeAnyKind(t *testing.T) {
	t.Parallel()
	g := startAudited(t, "auditor")
	g.administer(`mutation { createAccessRole(input: {name: "auditor", spec: {rules: [{kinds: ["AccessBinding", "AccessRole"], verbs: ["GET", "LIST", "WATCH"]}]}}) { accessRole { id } } }`)
	g.bind("auditor", "auditor", "*")
	for command, want := range map[string]string{
		"get accessroles":                        "NAME KINDS AGE\nauditor AccessBinding,AccessRole",
		"get arole":                              "NAME KINDS AGE\nauditor AccessBinding,AccessRole",
		"get abind -o wide":                      "auditor-auditor auditor * token:auditor -",
		"describe arole auditor":                 "Kind: AccessRole",
		"describe accessbinding/auditor-auditor": "Kind: AccessBinding",
		"tree abind auditor-auditor":             "accessbinding/auditor-auditor",
		"get abind auditor-auditor -o manifest":  "apiVersion: access.sluice.dev/v1",
		"explain arole.spec.rules":               "verbs",
	} {
		out, problem, code := g.cliAs("auditor", strings.Fields(command)...)
		if code != 0 || !strings.Contains(lined(out), want) {
			t.Errorf("%s: %d\n%s%s", command, code, out, problem)
		}
	}
}

func TestTheExamplesOfAccessGiveWhatTheySay(t *testing.T) {
	t.Parallel()
	g := startAudited(t, "ci", "network-controller", "dashboard")
	if out, problem, code := g.cliAs("root", "apply", "-f", "../examples/access"); code != 0 {
		t.Fatalf("%s%s", out, problem)
	}
	g.administer(`mutation { createSecret(input: {namespace: "web", name: "shop-cloud", spec: {stringData: [{key: "k", value: "v"}]}}) { secret { id } } }`)
	g.administer(`mutation { createSecret(input: {namespace: "web", name: "other", spec: {stringData: [{key: "k", value: "v"}]}}) { secret { id } } }`)
	manifest := filepath.Join(t.TempDir(), "network.yaml")
	text := strings.ReplaceAll(network("net", "web", 1500), "secretName: s", "secretName: shop-cloud")
	if err := os.WriteFile(manifest, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, problem, code := g.cliAs("ci", "apply", "-n", "web", "-f", manifest); code != 0 {
		t.Errorf("ci applies: %s%s", out, problem)
	}
	for _, c := range []struct{ name, command, out string }{
		{"ci", "can-i upsert network -n web", "yes"},
		{"ci", "can-i upsert network -n lab", "no"},
		{"ci", "can-i delete network -n web", "no"},
		{"ci", "can-i get secret shop-cloud -n web", "yes"},
		{"ci", "can-i get secret other -n web", "no"},
		{"ci", "can-i reveal secret shop-cloud -n web", "no"},
		{"network-controller", "can-i status network a -n lab", "yes"},
		{"network-controller", "can-i control network", "yes"},
		{"network-controller", "can-i reveal secret a -n lab", "yes"},
		{"network-controller", "can-i status subnet a -n lab", "no"},
		{"network-controller", "can-i delete network a", "no"},
		{"dashboard", "can-i watch network -n lab", "yes"},
		{"dashboard", "can-i list secret", "no"},
		{"dashboard", "can-i patch network", "no"},
		{"root", "who-can update server -n web", "BINDING ROLE RULE USERS GROUPS\n(admin-group) - - - token:admins\nweb-team editor 0 - oidc:corp:web-team"},
		{"root", "who-can get server -n web", "BINDING ROLE RULE USERS GROUPS\n(admin-group) - - - token:admins\ndashboard dashboard 0 token:dashboard -\nweb-support viewer 0 - oidc:corp:support\nweb-team editor 0 - oidc:corp:web-team"},
		{"root", "who-can reveal secret -n web", "BINDING ROLE RULE USERS GROUPS\n(admin-group) - - - token:admins\nnetwork-controller network-controller 1 token:network-controller -"},
	} {
		out, problem, _ := g.cliAs(c.name, append([]string{"auth"}, strings.Fields(c.command)...)...)
		if lined(out) != c.out {
			t.Errorf("%s: %s: %s%s", c.name, c.command, lined(out), problem)
		}
	}

	// The command line counts what the caller may not see of what holds a resource.
	g.administer(`mutation { createSubnet(input: {namespace: "web", name: "sub", spec: {cloudCredentialsRef: {secretName: "shop-cloud", cloudName: "c"}, resource: {networkRef: "net", ipVersion: 4, cidr: "10.0.0.0/24"}}}) { subnet { id } } }`)
	g.administer(`mutation { createAccessRole(input: {name: "remover", spec: {rules: [{kinds: ["Secret", "Network"], verbs: ["GET", "LIST", "DELETE"]}]}}) { accessRole { id } } }`)
	g.bind("network-controller", "remover", "web")
	for command, want := range map[string]string{
		"delete secret shop-cloud -n web --dry-run":      "network/net and 1 that you may not see hold it",
		"tree network net -n web --direction dependents": "1 more that you may not see rely on it",
	} {
		if out, problem, _ := g.cliAs("network-controller", strings.Fields(command)...); !strings.Contains(out, want) {
			t.Errorf("%s: %s%s", command, out, problem)
		}
	}
}

func TestWhoControlsAKindIsInTheAuditLog(t *testing.T) {
	t.Parallel()
	g := startAudited(t)
	for _, controlled := range []bool{true, false} {
		g.administer(fmt.Sprintf(`mutation { updateKind(input: {kind: "Network", controlled: %t}) { clientMutationId } }`, controlled))
	}
	lines, err := auditLines(g.audit) // they are written before the answer
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, line := range lines {
		if strings.HasPrefix(line.Event, "KIND_") {
			got = append(got, line.Event+" "+line.Kind+" by "+line.By)
		}
	}
	if want := []string{"KIND_CONTROLLED Network by token:root", "KIND_RELEASED Network by token:root"}; !slices.Equal(got, want) {
		t.Errorf("the audit log has %v, want %v", got, want)
	}
}
