package e2e_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluicegw/sluice/internal/redistest"
)

// guarded is a gateway whose callers may do what roles and bindings say.
type guarded struct {
	*gateway
	tokens *tokenFile
	// admin may do everything, user what [guarded.may] says.
	admin, user           *caller
	adminToken, userToken string
}

func startGuarded(t *testing.T) *guarded {
	t.Helper()
	tokens := newTokenFile(t)
	admin, user := tokens.add("root", "admins", time.Time{}), tokens.add("user", "team", time.Time{})
	g := &guarded{gateway: start(t, "", "--tokens", tokens.path, "--admin-group", "token:admins", "--limit-caller-steps", "1000000000"), tokens: tokens}
	plain := g.caller(nil)
	g.admin, g.user = plain.with(admin), plain.with(user)
	g.adminToken, g.userToken = admin, user
	return g
}

// ask asks one operation by HTTP.
func (c *caller) ask(query string) answer {
	c.t.Helper()
	return c.http(query).next()
}

// text is a string as GraphQL has it.
func graphQL(s string) string {
	raw, _ := json.Marshal(s)
	return string(raw)
}

// apply applies manifests of kinds, each in JSON.
func (g *guarded) apply(manifests ...string) {
	g.t.Helper()
	for _, m := range manifests {
		a := g.admin.ask(`mutation { applyManifest(input: {manifest: ` + graphQL(m) + `}) { outcome } }`)
		if len(a.Errors) > 0 {
			g.t.Fatalf("%s: %+v", m, a.Errors)
		}
	}
}

// rule is a rule of a role as its manifest has it.
type rule struct {
	Kinds      []string `json:"kinds"`
	Verbs      []string `json:"verbs"`
	Namespaces []string `json:"namespaces,omitempty"`
	Names      []string `json:"names,omitempty"`
}

// may makes rules the only ones of the user.
func (g *guarded) may(rules ...rule) {
	g.t.Helper()
	raw, _ := json.Marshal(rules)
	g.apply(`{"apiVersion": "access.sluice.dev/v1", "kind": "AccessRole", "metadata": {"name": "tested"}, "spec": {"rules": `+string(raw)+`}}`,
		`{"apiVersion": "access.sluice.dev/v1", "kind": "AccessBinding", "metadata": {"name": "tested"}, "spec": {"roles": ["tested"], "users": ["token:user"], "namespaces": ["*"]}}`)
}

// network, subnet and project are manifests.
func networkIn(namespace, name string) string {
	return fmt.Sprintf(`{"apiVersion": "openstack.k-orc.cloud/v1alpha1", "kind": "Network", "metadata": {"namespace": %q, "name": %q, "labels": {"app": "shop"}}, "spec": {"cloudCredentialsRef": {"secretName": "cloud", "cloudName": "one"}, "resource": {"mtu": 1450, "projectRef": "project"}}}`, namespace, name)
}

func subnetIn(namespace, name, network string) string {
	return fmt.Sprintf(`{"apiVersion": "openstack.k-orc.cloud/v1alpha1", "kind": "Subnet", "metadata": {"namespace": %q, "name": %q}, "spec": {"cloudCredentialsRef": {"secretName": "cloud", "cloudName": "one"}, "resource": {"networkRef": %q, "ipVersion": 4, "cidr": "10.0.0.0/24"}}}`, namespace, name, network)
}

func projectIn(namespace string) string {
	return fmt.Sprintf(`{"apiVersion": "openstack.k-orc.cloud/v1alpha1", "kind": "Project", "metadata": {"namespace": %q, "name": "project"}, "spec": {"cloudCredentialsRef": {"secretName": "cloud", "cloudName": "one"}, "resource": {}}}`, namespace)
}

// matrix is the fixture: three networks in two namespaces, with what refers to them and what they refer to.
var matrix = map[string]string{"net-a": "one", "net-b": "one", "net-c": "two"}

func (g *guarded) applyMatrix() {
	g.t.Helper()
	for _, namespace := range []string{"one", "two"} {
		g.apply(projectIn(namespace), fmt.Sprintf(`{"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": %q, "name": "cloud"}, "stringData": {"clouds.yaml": "x"}}`, namespace))
	}
	for _, name := range slices.Sorted(maps.Keys(matrix)) {
		g.apply(networkIn(matrix[name], name), subnetIn(matrix[name], strings.Replace(name, "net", "sub", 1), name))
	}
}

// reading is a path to networks.
type reading struct {
	// needs are the verbs on networks that show them.
	needs []string
	// covers are the fields of the schema that it uses.
	covers string
	// query returns the operation; id is the global id of a resource.
	query func(id func(kind, namespace, name string) string) string
}

// each asks for each network by an alias.
func each(field func(namespace, name string) string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(matrix)) {
		fmt.Fprintf(&b, "%s: %s ", strings.Replace(name, "-", "", 1), field(matrix[name], name))
	}
	return "{ " + b.String() + "}"
}

const withName = "{ metadata { name } }"

// readings are all paths to networks, by their names.
func readings() map[string]reading {
	get, list, watch := []string{"GET"}, []string{"GET", "LIST"}, []string{"GET", "WATCH"}
	plain := func(query string) func(func(string, string, string) string) string {
		return func(func(string, string, string) string) string { return query }
	}
	type ids = func(kind, namespace, name string) string
	return map[string]reading{
		"direct": {get, "network", plain(each(func(ns, name string) string {
			return fmt.Sprintf("network(namespace: %q, name: %q) %s", ns, name, withName)
		}))},
		"by kind": {get, "resource", plain(each(func(ns, name string) string {
			return fmt.Sprintf("resource(kind: \"net\", namespace: %q, name: %q) %s", ns, name, withName)
		}))},
		"node": {get, "node", func(id ids) string {
			return each(func(ns, name string) string {
				return fmt.Sprintf("node(id: %q) { ... on Network %s }", id("Network", ns, name), withName)
			})
		}},
		"nodes": {get, "nodes", func(id ids) string {
			return fmt.Sprintf("{ nodes(ids: [%q, %q, %q]) { ... on Network %s } }", id("Network", "one", "net-a"), id("Network", "one", "net-b"), id("Network", "two", "net-c"), withName)
		}},
		"nested":       {get, "Subnet.network", plain("{ subnets { nodes { network " + withName + " } } }")},
		"dependencies": {get, "Subnet.dependencies", plain("{ subnets { nodes { dependencies { nodes { resource " + withName + " } } } } }")},
		"dependents":   {get, "Project.dependents", plain("{ projects { nodes { dependents { nodes { name resource " + withName + " } totalCount } } } }")},
		"blockers":     {get, "Project.blockedBy", plain("{ projects { nodes { blockedBy { edges { node { name } } } } } }")},
		"tree of dependencies": {get, "dependencyTree", func(id ids) string {
			return each(func(ns, name string) string {
				return fmt.Sprintf("dependencyTree(id: %q, direction: DEPENDENCIES) { dependencies { resource %s } }", id("Subnet", ns, strings.Replace(name, "net", "sub", 1)), "{ ... on Network "+withName+" }")
			})
		}},
		"tree of dependents": {list, "dependencyTree", func(id ids) string {
			return fmt.Sprintf("{ a: dependencyTree(id: %q, direction: DEPENDENTS, depth: 1) { dependents { name kind } } b: dependencyTree(id: %q, direction: DEPENDENTS, depth: 1) { dependents { name kind } } }", id("Project", "one", "project"), id("Project", "two", "project"))
		}},
		"manifest": {get, "Network.manifest", plain(each(func(ns, name string) string {
			return fmt.Sprintf("network(namespace: %q, name: %q) { manifest(format: JSON) }", ns, name)
		}))},
		"inverse":           {list, "Project.networks", plain("{ projects { nodes { networks { nodes " + withName + " totalCount } } } }")},
		"list":              {list, "networks", plain("{ networks { nodes " + withName + " } }")},
		"list of a kind":    {list, "resources", plain("{ resources(kind: \"network\") { edges { node " + withName + " } } }")},
		"list by namespace": {list, "networks", plain("{ a: networks(namespace: \"one\") { nodes " + withName + " } b: networks(namespace: \"two\") { nodes " + withName + " } }")},
		"filter":            {list, "networks", plain(`{ networks(filter: {labels: [{key: "app", eq: "shop"}], spec: {resource: {mtu: {gte: 1000}}}}) { nodes ` + withName + ` } }`)},
		"filter by name":    {list, "networks", plain(`{ networks(filter: {name: {in: ["net-a", "net-b", "net-c"]}}) { nodes ` + withName + ` } }`)},
		"order":             {list, "networks", plain(`{ networks(orderBy: [{field: CREATED_AT, direction: DESC}], last: 10) { nodes ` + withName + ` } }`)},
		"snapshot":          {watch, "networkChanges", plain(`subscription { networkChanges(snapshot: true) { type network ` + withName + ` } }`)},
		"snapshot of kinds": {watch, "resourceChanges", plain(`subscription { resourceChanges(kinds: ["net"], snapshot: true) { type resource ` + withName + ` } }`)},
	}
}

// namesIn are the names of networks in an answer.
func namesIn(text string) []string {
	out := regexp.MustCompile(`net-[abc]`).FindAllString(text, -1)
	slices.Sort(out)
	return slices.Compact(out)
}

// scopes are where a rule holds, and the networks that it has there.
var scopes = map[string]struct {
	rule rule
	has  []string
}{
	"all":       {rule{}, []string{"net-a", "net-b", "net-c"}},
	"namespace": {rule{Namespaces: []string{"one"}}, []string{"net-a", "net-b"}},
	"name":      {rule{Names: []string{"net-a"}}, []string{"net-a"}},
	"both":      {rule{Namespaces: []string{"two"}, Names: []string{"net-a", "net-c"}}, []string{"net-c"}},
}

// besides are the rights that the user always has: on everything but networks.
func besides() rule {
	return rule{Kinds: []string{"Subnet", "Project", "Port"}, Verbs: []string{"*"}}
}

// TestEveryPathShowsWhatTheRightsAllow goes through verbs, scopes, paths and transports. In short, each set of verbs is
// tried by one of the transports, and by another one in each scope.
func TestEveryPathShowsWhatTheRightsAllow(t *testing.T) {
	t.Parallel()
	g := startGuarded(t)
	g.applyMatrix()
	ids := map[string]string{}
	id := func(kind, namespace, name string) string {
		key := kind + "/" + namespace + "/" + name
		if ids[key] == "" {
			ids[key], _ = g.admin.ask(fmt.Sprintf(`{ resource(kind: %q, namespace: %q, name: %q) { id } }`, kind, namespace, name)).get("resource", "id").(string)
		}
		return ids[key]
	}
	all := slices.Sorted(maps.Keys(transports))
	turn := 0
	for where, scope := range scopes {
		turn++ // the same verbs take another transport in each scope
		for _, verbs := range [][]string{nil, {"GET"}, {"LIST"}, {"WATCH"}, {"GET", "LIST"}, {"GET", "WATCH"}, {"LIST", "WATCH"}, {"*"}} {
			rules := []rule{besides()}
			if verbs != nil {
				one := scope.rule
				one.Kinds, one.Verbs = []string{"Network"}, verbs
				rules = append(rules, one)
			}
			g.may(rules...)
			tried := all
			if testing.Short() {
				tried = all[turn%len(all):][:1]
				turn++
			}
			for name, path := range readings() {
				want := scope.has
				if !slices.Contains(verbs, "*") && slices.ContainsFunc(path.needs, func(v string) bool { return !slices.Contains(verbs, v) }) {
					want = nil
				}
				for _, by := range tried {
					query := path.query(id)
					got, codes := g.shown(g.user, by, query)
					if !slices.Equal(got, want) || len(want) > 0 && len(codes) > 0 || strings.Trim(strings.Join(codes, " "), "FORBIDEN ") != "" {
						t.Errorf("%s, %s %v on %s: %v %v, want %v", by, name, verbs, where, got, codes, want)
					}
				}
			}
			g.counts(fmt.Sprintf("%v on %s", verbs, where), scope.has, slices.Contains(verbs, "*") || slices.Contains(verbs, "GET") && slices.Contains(verbs, "LIST"))
		}
	}
}

// shown returns the networks in the answer to an operation, and the codes of its errors. A subscription is read to
// its IN_SYNC.
func (g *guarded) shown(c *caller, transport, query string) (names, codes []string) {
	g.t.Helper()
	subscribes := strings.HasPrefix(query, "subscription")
	if subscribes && transport == "HTTP" {
		transport = "server-sent events"
	}
	s := transports[transport](c, query)
	defer s.stop()
	var text strings.Builder
	for {
		a, how := s.outcome()
		if how != "" {
			if strings.HasPrefix(how, "error ") {
				codes = append(codes, regexp.MustCompile(`"code":"(\w+)"`).FindStringSubmatch(how)[1])
			}
			break
		}
		if len(a.Errors) > 0 {
			codes = append(codes, strings.Fields(a.codes())...)
		}
		raw, _ := json.Marshal(a.Data)
		text.Write(raw)
		if !subscribes || len(a.Errors) > 0 || strings.Contains(string(raw), "IN_SYNC") {
			break
		}
	}
	return namesIn(text.String()), codes
}

// counts holds the numbers of networks against those that the user may list.
func (g *guarded) counts(what string, has []string, may bool) {
	g.t.Helper()
	a := g.user.ask(`{ networks(first: 0) { totalCount } networksSummary(by: ["namespace"]) { groups { count } } namespaces { nodes { counts { kind count } } } }`)
	want := 0
	if may {
		want = len(has)
	} else if !strings.Contains(a.codes(), "FORBIDDEN") && a.get("networks", "totalCount") != 0.0 {
		g.t.Errorf("%s: %v", what, a)
	}
	total, _ := a.get("networks", "totalCount").(float64)
	summed, grouped := 0.0, 0.0
	list, _ := a.get("networksSummary", "groups").([]any)
	for _, group := range list {
		summed += group.(map[string]any)["count"].(float64)
	}
	nodes, _ := a.get("namespaces", "nodes").([]any)
	for _, node := range nodes {
		for _, count := range node.(map[string]any)["counts"].([]any) {
			if c := count.(map[string]any); c["kind"] == "Network" {
				grouped += c["count"].(float64)
			}
		}
	}
	if int(total) != want || int(summed) != want || int(grouped) != want {
		g.t.Errorf("%s: %v networks, %v in the summary, %v in namespaces; want %d", what, total, summed, grouped, want)
	}
}

// writing is a way to write a network.
type writing struct {
	verb, field string
	// input is that of the mutation, for a network and its revision.
	input func(namespace, name, id, revision string) string
}

const newSpec = `{cloudCredentialsRef: {secretName: "cloud", cloudName: "one"}, resource: {mtu: 1500, projectRef: "project"}}`

func writings() []writing {
	with := func(rest string) func(namespace, name, id, revision string) string {
		return func(namespace, name, id, revision string) string {
			rest := strings.NewReplacer("$ID", graphQL(id), "$REVISION", graphQL(revision), "$MANIFEST", graphQL(networkIn(namespace, name))).Replace(rest)
			return "dryRun: true, " + strings.Replace(rest, "$NAME", fmt.Sprintf("namespace: %q, name: %q", namespace, name), 1)
		}
	}
	return []writing{
		{"CREATE", "createNetwork", with("$NAME, spec: " + newSpec)},
		{"UPDATE", "updateNetwork", with("$NAME, expectedRevision: $REVISION, spec: " + newSpec)},
		{"PATCH", "patchNetwork", with("$NAME, expectedRevision: $REVISION, spec: {resource: {mtu: 1500}}")},
		{"PATCH", "patchResource", with("id: $ID, expectedRevision: $REVISION, specJSON: {resource: {mtu: 1500}}")},
		{"UPSERT", "upsertNetwork", with("$NAME, spec: " + newSpec)},
		{"STATUS", "updateNetworkStatus", with("$NAME, expectedRevision: $REVISION, status: {cloudId: \"x\"}")},
		{"STATUS", "patchNetworkStatus", with("$NAME, status: {cloudId: \"x\"}")},
		{"STATUS", "updateResourceStatus", with("id: $ID, expectedRevision: $REVISION, statusJSON: {id: \"x\"}")},
		{"DELETE", "deleteNetwork", with("$NAME")},
		{"DELETE", "deleteResource", with("id: $ID")},
		{"UPSERT", "applyManifest", with("manifest: $MANIFEST")},
	}
}

// TestEveryWriteNeedsItsVerb tries each mutation with each verb, in and out of the scope. Out of it the answer is the
// same whether or not there is such a network.
func TestEveryWriteNeedsItsVerb(t *testing.T) {
	t.Parallel()
	g := startGuarded(t)
	g.applyMatrix()
	at := map[string][2]string{}
	for name, namespace := range matrix {
		a := g.admin.ask(fmt.Sprintf(`{ network(namespace: %q, name: %q) { id metadata { revision } } }`, namespace, name))
		at[name] = [2]string{a.get("network", "id").(string), a.get("network", "metadata", "revision").(string)}
	}
	run := func(w writing, namespace, name string) string {
		id, revision := at["net-a"][0], at["net-a"][1]
		if known, ok := at[name]; ok {
			id, revision = known[0], known[1]
		}
		a := g.user.ask(fmt.Sprintf("mutation { %s(input: {%s}) { clientMutationId } }", w.field, w.input(namespace, name, id, revision)))
		return a.codes()
	}
	for _, verbs := range [][]string{{"GET"}, {"CREATE"}, {"UPDATE"}, {"GET", "CREATE"}, {"GET", "UPDATE"}, {"GET", "PATCH"}, {"GET", "UPSERT"}, {"GET", "STATUS"}, {"GET", "DELETE"}, {"GET", "CREATE", "UPDATE"}, {"*"}} {
		g.may(besides(), rule{Kinds: []string{"Network"}, Verbs: verbs, Namespaces: []string{"one"}})
		for _, w := range writings() {
			has := func(all ...string) bool {
				return slices.Contains(verbs, "*") || !slices.ContainsFunc(all, func(v string) bool { return !slices.Contains(verbs, v) })
			}
			want := "FORBIDDEN"
			switch {
			case w.verb == "CREATE" && has("CREATE"):
				want = "ALREADY_EXISTS"
			case w.field == "applyManifest" && has("CREATE") && !has("GET"):
				want = "ALREADY_EXISTS"
			case w.field == "applyManifest" && has("GET", "CREATE", "UPDATE"), w.field == "applyManifest" && has("GET", "UPDATE"), w.verb != "CREATE" && has("GET", w.verb):
				want = ""
			case w.field == "applyManifest" && has("GET", "CREATE"): // it changes nothing
				want = ""
			}
			if got := run(w, "one", "net-a"); got != want {
				t.Errorf("%v: %s: %q, want %q", verbs, w.field, got, want)
			}
			for _, name := range []string{"net-c", "absent"} {
				if strings.Contains(w.field, "Resource") && name == "absent" {
					continue // it has no id
				}
				if got := run(w, "two", name); got != "FORBIDDEN" {
					t.Errorf("%v: %s of %s in another namespace: %q", verbs, w.field, name, got)
				}
			}
		}
	}
}

// TestTheMatrixHasEveryField fails for a field of the schema that leads to resources and that no test of access
// control goes through.
func TestTheMatrixHasEveryField(t *testing.T) {
	t.Parallel()
	schema, err := os.ReadFile("../docs/schema.graphql")
	if err != nil {
		t.Fatal(err)
	}
	covered := []string{
		// Of no resource: who asks and the kinds of the catalogue.
		"Query.viewer", "Query.kinds",
		// By name, in the tests here and in [TestNothingHiddenIsTold].
		"Query.networksSummary", "Query.namespaces", "Query.reveal", "Query.access", "Query.accessGrants", "Query.unreadables",
		"Network.id", "Network.kind", "Network.subKind", "Network.apiVersion", "Network.metadata", "Network.spec", "Network.status", "Network.specJSON",
		"Network.statusJSON", "Network.conditions", "Network.allowed", "Network.project", "Network.dependencies", "Network.dependents", "Network.blockedBy",
		// Inverses of networks are planned as that of a project is.
		"Network.floatingIPs", "Network.ports", "Network.gatewayRouters", "Network.shareNetworks", "Network.subnets",
		// CONTROL is of a whole kind.
		"Mutation.updateKind",
	}
	for _, r := range readings() {
		of := r.covers
		if !strings.Contains(of, ".") {
			of = map[bool]string{true: "Subscription.", false: "Query."}[strings.HasSuffix(of, "Changes")] + of
		}
		covered = append(covered, of)
	}
	for _, w := range writings() {
		covered = append(covered, "Mutation."+w.field)
	}
	other := regexp.MustCompile(`^(Query|Mutation|Subscription)\.`)
	network := regexp.MustCompile(`\.(network|networks|\w+Network|\w+NetworkStatus|networksSummary|networkChanges)$`)
	for _, of := range []string{"Query", "Mutation", "Subscription", "Network"} {
		for _, field := range fieldsOf(string(schema), of) {
			path := of + "." + field
			ofAnotherKind := other.MatchString(path) && derived(string(schema), field) && !network.MatchString(path)
			if !ofAnotherKind && !strings.Contains(path, "ShareNetwork") && !slices.Contains(covered, path) {
				t.Errorf("%s leads to resources, and no test of access control goes through it", path)
			}
		}
	}
}

// fieldsOf are the fields of an object type in SDL.
func fieldsOf(schema, of string) (out []string) {
	schema = regexp.MustCompile(`(?s)""".*?"""`).ReplaceAllString(schema, "")
	body := regexp.MustCompile(`(?s)\ntype ` + of + `( implements [^{]*)?\{(.*?)\n\}`).FindStringSubmatch(schema)
	if body == nil {
		return nil
	}
	depth := 0
	for line := range strings.Lines(body[2]) {
		if m := regexp.MustCompile(`^\s*(\w+)[(:]`).FindStringSubmatch(line); m != nil && depth == 0 {
			out = append(out, m[1])
		}
		depth += strings.Count(line, "(") - strings.Count(line, ")")
	}
	return out
}

// derived reports whether a root field is derived from a kind: its name has that of one.
func derived(schema, field string) bool {
	for _, m := range regexp.MustCompile(`\ntype (\w+) implements Node & Resource`).FindAllStringSubmatch(schema, -1) {
		if strings.Contains(strings.ToLower(field), strings.ToLower(m[1])) || strings.HasPrefix(strings.ToLower(field), strings.ToLower(strings.TrimSuffix(m[1], "y"))) {
			return true
		}
	}
	return false
}

// TestAPolicyHoldsAtOnceAndEverywhere changes a binding at one gateway and reads at both.
func TestAPolicyHoldsAtOnceAndEverywhere(t *testing.T) {
	t.Parallel()
	if os.Getenv(storeVariable) != "redis" {
		t.Skip("two gateways need a store that they share")
	}
	g := startGuarded(t)
	g.applyMatrix()
	other := start(t, g.data, "--tokens", g.tokens.path, "--admin-group", "token:admins")
	there := other.caller(nil).with(g.user.bearer)
	g.may(rule{Kinds: []string{"Network"}, Verbs: []string{"GET", "LIST"}})
	redistest.Await(t, "the other gateway to know the tokens", func() error {
		if a := there.ask(viewer); len(a.Errors) > 0 {
			return fmt.Errorf("%s", a.codes())
		}
		return nil
	})
	for i := range 20 {
		namespace := []string{"one", "two"}[i%2]
		g.may(rule{Kinds: []string{"Network"}, Verbs: []string{"GET", "LIST"}, Namespaces: []string{namespace}})
		for at, c := range map[string]*caller{"here": g.user, "there": there} {
			raw, _ := json.Marshal(c.ask("{ networks { nodes { metadata { namespace } } } }").Data)
			if !strings.Contains(string(raw), `"`+namespace+`"`) || strings.Contains(string(raw), `"`+[]string{"two", "one"}[i%2]+`"`) {
				t.Errorf("%s, after the change to %s: %s", at, namespace, raw)
			}
		}
	}
}

// TestTheCommandLineShowsWhatTheRightsAllow runs commands as the user, with rights on one namespace.
func TestTheCommandLineShowsWhatTheRightsAllow(t *testing.T) {
	t.Parallel()
	g := startGuarded(t)
	g.applyMatrix()
	token := t.TempDir() + "/token"
	if err := os.WriteFile(token, []byte(g.user.bearer), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(stdin string, args ...string) (out string, code int) {
		t.Helper()
		out, errOut, code := g.cli(stdin, append(args, "--token-file", token)...)
		return out + errOut, code
	}
	g.may(besides(), rule{Kinds: []string{"Network"}, Verbs: []string{"GET", "LIST", "WATCH"}, Namespaces: []string{"one"}})
	for _, c := range []struct {
		args string
		code int
		want []string // networks in the output
		says string
	}{
		{"get networks -A -o name", 0, []string{"net-a", "net-b"}, ""},
		{"get networks -A -o json", 0, []string{"net-a", "net-b"}, ""},
		{"get networks -n two", 0, nil, ""},
		{"get network net-a -n one -o yaml", 0, []string{"net-a"}, ""},
		{"get network net-c -n two", 3, []string{"net-c"}, "NOT_FOUND"}, // as it was asked for
		{"get network absent -n two", 3, nil, "NOT_FOUND"},
		{"describe project project -n two", 0, nil, "project"},
		{"tree subnet sub-a -n one", 0, []string{"net-a"}, ""},
		{"delete network net-a -n one --dry-run=server", 1, []string{"net-a"}, "FORBIDDEN"},
		{"delete network net-c -n two --dry-run=server", 1, []string{"net-c"}, "FORBIDDEN"},
	} {
		out, code := run("", strings.Fields(c.args)...)
		if code != c.code || !slices.Equal(namesIn(out), c.want) || !strings.Contains(out, c.says) {
			t.Errorf("sluice %s: exit %d, want %d %q\n%s", c.args, code, c.code, c.want, out)
		}
	}
	if out, code := run(networkIn("two", "net-c"), "apply", "-f", "-"); code != 1 || !strings.Contains(out, "FORBIDDEN") {
		t.Errorf("apply: exit %d\n%s", code, out)
	}
}
