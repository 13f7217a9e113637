package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/internal/redistest"
)

// newKinds is what an author of another domain writes: one file.
const newKinds = `"People who run things."
type Team @resource(plural: "teams", group: "example.org", version: "v1", scope: NAMESPACED) {
  spec: TeamSpec!
}

type TeamSpec {
  "How to reach the team."
  email: String! @constraint(minLength: 3, maxLength: 100, pattern: "@") @filterable @sortable
}

"A thing that a team runs."
type App @resource(plural: "apps", group: "example.org", version: "v1", scope: NAMESPACED) {
  spec: AppSpec!
  status: AppStatus
}

type AppSpec {
  "Who runs it."
  ownerRef: String! @ref(kind: "Team", inverse: "apps")
  "Who is called when the owner sleeps."
  backupRef: String @ref(kind: "Team", inverse: "backedApps")
  tier: Int! @constraint(min: 1, max: 5) @filterable @sortable
}

type AppStatus {
  healthy: Boolean
}
`

// catalogue makes a folder of the built-in kinds and one more file.
func catalogue(t *testing.T, sdl string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("..", "schema", "v1"))); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, "app.graphqls"), sdl)
	return dir
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestAKindIsOneFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "app.graphqls"), newKinds)
	g := start(t, "", "--catalogue", dir)
	s := g.dial()
	defer s.close()
	s.subscribe("1", `subscription { appChanges(filter: {spec: {tier: {lte: 2}}}) { type app { metadata { name } } } }`, nil)
	s.next("1")

	g.must(`mutation { createTeam(input: {name: "web", spec: {email: "web@example.org"}}) { team { id } } }`)
	a := g.must(`mutation { createApp(input: {name: "shop", spec: {ownerRef: "web", backupRef: "nobody", tier: 1}}) { app { metadata { revision } } } }`)
	revision := a.get("createApp", "app", "metadata", "revision").(string)
	a = g.must(fmt.Sprintf(`mutation { updateApp(input: {name: "shop", expectedRevision: %q, spec: {ownerRef: "web", tier: 2}}) { app { metadata { revision } } } }`, revision))
	revision = a.get("updateApp", "app", "metadata", "revision").(string)
	a = g.must(fmt.Sprintf(`mutation { patchApp(input: {name: "shop", expectedRevision: %q, spec: {tier: 3}}) { app { metadata { revision } } } }`, revision))
	revision = a.get("patchApp", "app", "metadata", "revision").(string)
	g.must(fmt.Sprintf(`mutation { updateAppStatus(input: {name: "shop", expectedRevision: %q, status: {healthy: true}}) { app { status { healthy } } } }`, revision))
	g.must(`mutation { upsertApp(input: {name: "blog", spec: {ownerRef: "web", tier: 1}}) { created } }`)
	a = g.must(`{
		apps(orderBy: [{field: SPEC_TIER, direction: DESC}]) { totalCount nodes { metadata { name } owner { spec { email } } backup { id } } }
		team(name: "web") { apps(filter: {spec: {tier: {eq: 1}}}) { nodes { metadata { name } } } backedApps { totalCount } }
	}`)
	if got := fmt.Sprint(a.Data); got != "map[apps:map[nodes:[map[backup:<nil> metadata:map[name:shop] owner:map[spec:map[email:web@example.org]]] map[backup:<nil> metadata:map[name:blog] owner:map[spec:map[email:web@example.org]]]] totalCount:2] team:map[apps:map[nodes:[map[metadata:map[name:blog]]]] backedApps:map[totalCount:0]]]" {
		t.Errorf("got %s", got)
	}
	g.must(`mutation { deleteApp(input: {name: "blog"}) { state } }`)
	for _, want := range []string{"ADDED shop", "MODIFIED shop", "DELETED shop", "ADDED blog", "DELETED blog"} {
		a := s.next("1")
		if got := fmt.Sprintf("%v %v", a.get("appChanges", "type"), a.get("appChanges", "app", "metadata", "name")); got != want {
			t.Errorf("event %q, want %q", got, want)
		}
	}
	if a := g.post(`mutation { createTeam(input: {name: "x", spec: {email: "nowhere"}}) { team { id } } }`, nil); a.codes() != "VALIDATION_FAILED" {
		t.Errorf("%+v", a)
	}
}

// refused runs a gateway that does not start, and returns what it says.
func refused(t *testing.T, args ...string) (stderr string) {
	t.Helper()
	stdout, stderr, code := sluice(t, "", append([]string{"serve", "--listen", "127.0.0.1:0", "--log-format", "json"}, args...)...)
	if code != 2 || stdout != "" {
		t.Fatalf("exit code %d\n%s\n%s", code, stdout, stderr)
	}
	return stderr
}

func TestACheckSaysHowManyKindsThereAre(t *testing.T) {
	t.Parallel()
	const team = "type Team @resource(plural: \"teams\", group: \"example.org\", version: \"v1\", scope: NAMESPACED) {\n  spec: TeamSpec!\n}\n\ntype TeamSpec {\n  tier: Int\n}\n"
	dir := t.TempDir()
	for _, c := range []struct{ kind, says string }{{"Team", "1 kind, "}, {"Crew", "2 kinds, "}} {
		writeFile(t, filepath.Join(dir, strings.ToLower(c.kind)+".graphqls"), strings.NewReplacer("Team", c.kind, "teams", strings.ToLower(c.kind)+"s").Replace(team))
		if stdout, stderr, code := sluice(t, "", "catalogue", "check", dir); code != 0 || !strings.HasPrefix(stdout, c.says) {
			t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
		}
	}
}

func TestACatalogueIsRefusedWholeByFileAndLine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	team, app := filepath.Join(dir, "team.graphqls"), filepath.Join(dir, "app.graphqls")
	writeFile(t, team, "type Team @resource(plural: \"teams\", group: \"example.org\", version: \"v1\", scope: NAMESPACED) {\n  spec: TeamSpec!\n}\n\ntype TeamSpec {\n  email: Strin!\n  tier: Int @constraint(minLength: 3)\n}\n")
	writeFile(t, app, "type App @resource(plural: \"apps\", group: \"example.org\", version: \"v1\", scope: NAMESPACED) {\n  spec: AppSpec!\n}\n\ntype AppSpec {\n  ownerRef: String! @ref(kind: \"Taem\", inverse: \"apps\")\n}\n")
	data := filepath.Join(t.TempDir(), "data")
	said := refused(t, "--data", data, "--catalogue", dir)
	for _, want := range []string{team + ":6: TeamSpec.email: ", team + ":7: TeamSpec.tier: ", app + ":6: AppSpec.ownerRef: "} {
		if !strings.Contains("\n"+said, "\n"+want) {
			t.Errorf("%q is missing:\n%s", want, said)
		}
	}
	if lines := strings.Count(said, "\n"); lines != 3 {
		t.Errorf("%d lines:\n%s", lines, said)
	}
	if _, err := os.Stat(data); err == nil {
		t.Error("the store was made for a catalogue that is not served")
	}
	if _, stderr, code := sluice(t, "", "catalogue", "check", dir); code != 2 || stderr != said {
		t.Errorf("catalogue check: exit code %d\n%s", code, stderr)
	}
}

func TestAStoreIsNotServedWithLessThanItWasServedWith(t *testing.T) {
	t.Parallel()
	dir := catalogue(t, newKinds)
	g := start(t, "")
	g.must(`mutation { createProject(input: {name: "p", spec: {cloudCredentialsRef: {secretName: "s", cloudName: "c"}, managementPolicy: MANAGED, resource: {}}}) { project { id } } }`)
	g.stop()
	g = start(t, g.data, "--catalogue", dir)
	g.must(`mutation { createTeam(input: {name: "web", spec: {email: "web@example.org"}}) { team { id } } }`)
	if a := g.must(`{ project(name: "p") { metadata { name } } }`); a.get("project", "metadata", "name") != "p" {
		t.Errorf("%+v", a)
	}
	g.stop()
	less := catalogue(t, strings.Replace(newKinds, "  backupRef: String", "  deputyRef: String", 1))
	said := refused(t, append(store(t, g.data), "--catalogue", less)...)
	for _, want := range []string{"App.spec.backupRef", "--allow-breaking"} {
		if !strings.Contains(said, want) {
			t.Errorf("%q is missing:\n%s", want, said)
		}
	}
	g = start(t, g.data, "--catalogue", less, "--allow-breaking")
	g.stop()
	// The catalogues of before were accepted once, so a release is taken back without a flag.
	g = start(t, g.data)
	if !g.log.await("resources of a kind that is not in the catalogue are kept and not served") {
		t.Errorf("nobody is told of the teams that are not served:\n%s", g.log)
	}
	g.stop()
	g = start(t, g.data, "--catalogue", dir)
	if a := g.must(`{ team(name: "web") { spec { email } } }`); a.get("team", "spec", "email") != "web@example.org" {
		t.Errorf("what was not served is lost: %+v", a)
	}
}

func TestGatewaysOfTwoCataloguesShareAStore(t *testing.T) {
	t.Parallel()
	sameOnEachStore(t)
	data := []string{"--redis", redistest.Start(t).URL()}
	older := start(t, "", append([]string{"--catalogue", catalogue(t, newKinds)}, data...)...)
	newer := start(t, "", append([]string{"--catalogue", catalogue(t, strings.Replace(newKinds, "  tier: Int!", "  motto: String @constraint(maxLength: 100)\n  tier: Int!", 1))}, data...)...)
	newer.must(`mutation { createTeam(input: {name: "web", spec: {email: "web@example.org"}}) { team { id } } }`)
	s := older.dial()
	defer s.close()
	s.subscribe("1", `subscription { appChanges { type app { spec { tier } } } }`, nil)
	s.next("1")
	newer.must(`mutation { createApp(input: {name: "shop", spec: {ownerRef: "web", tier: 1, motto: "open"}}) { app { id } } }`)
	if a := s.next("1"); a.get("appChanges", "app", "spec", "tier") != 1.0 {
		t.Errorf("%+v", a)
	}
	older.must(`mutation { upsertApp(input: {name: "shop", spec: {ownerRef: "web", tier: 2}}) { app { id } } }`)
	if a := newer.must(`{ app(name: "shop") { spec { tier motto } } }`); fmt.Sprint(a.Data) != "map[app:map[spec:map[motto:open tier:2]]]" {
		t.Errorf("the older catalogue took the newer one's field: %v", a.Data)
	}
	if a := older.post(`{ app(name: "shop") { spec { motto } } }`, nil); a.codes() != "GRAPHQL_VALIDATION_FAILED" {
		t.Errorf("%+v", a)
	}
}

func TestAnAuthorNamesTheFieldOfAReferenceAndLeavesTheGroupOut(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "lock.graphqls"), `
type Person @resource(plural: "people", group: "", version: "v1", scope: NAMESPACED) { spec: PersonSpec! }
type PersonSpec { age: Int }
type Lock @resource(plural: "locks", group: "", version: "v1beta1", scope: NAMESPACED) { spec: LockSpec! }
type LockSpec {
  keeper: String @ref(kind: "Person", as: "keeper", inverse: "keeps")
  backupRef: String @ref(kind: "Person", as: "deputy")
  users: [String!] @list(type: SET) @constraint(maxItems: 3) @ref(kind: "Person", as: "users")
  parts: [LockPart!] @list(type: ATOMIC) @constraint(maxItems: 3)
}
type LockPart { madeBy: String @ref(kind: "Person", as: "maker") }
`)
	g := start(t, "", "--catalogue", dir)
	manifests := filepath.Join(dir, "all.yaml")
	writeFile(t, manifests, `apiVersion: v1
kind: Person
metadata: {name: ada}
spec: {age: 36}
---
apiVersion: v1beta1
kind: Lock
metadata: {name: door}
spec: {keeper: ada, backupRef: ada, users: [ada, bob], parts: [{madeBy: ada}, {madeBy: bob}]}
`)
	if stdout, stderr, code := g.cli("", "apply", "-f", manifests); code != 0 {
		t.Fatalf("exit code %d\n%s\n%s", code, stdout, stderr)
	}
	a := g.must(`{
		lock(name: "door") { keeper { spec { age } } deputy { metadata { name } } users { totalCount nodes { metadata { name } } } spec { keeper parts { maker { spec { age } } } } }
		person(name: "ada") { keeps(filter: {spec: {keeper: {eq: "ada"}}}) { nodes { metadata { name } } } }
		kinds { name group apiVersion references { path field } }
	}`)
	want := "map[kinds:[map[apiVersion:access.sluice.dev/v1 group:access.sluice.dev name:AccessBinding references:[]] map[apiVersion:access.sluice.dev/v1 group:access.sluice.dev name:AccessRole references:[]] map[apiVersion:v1beta1 group: name:Lock references:[map[field:keeper path:spec.keeper] map[field:deputy path:spec.backupRef] map[field:users path:spec.users] map[field:maker path:spec.parts.madeBy]]]" +
		" map[apiVersion:v1 group: name:Person references:[]]]" +
		" lock:map[deputy:map[metadata:map[name:ada]] keeper:map[spec:map[age:36]] spec:map[keeper:ada parts:[map[maker:map[spec:map[age:36]]] map[maker:<nil>]]] users:map[nodes:[map[metadata:map[name:ada]]] totalCount:1]]" +
		" person:map[keeps:map[nodes:[map[metadata:map[name:door]]]]]]"
	if got := fmt.Sprint(a.Data); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for _, format := range []string{"yaml", "json"} {
		text, stderr, code := g.cli("", "get", "-o", format, "lock", "door")
		if says := strings.ReplaceAll(text, `"`, ""); code != 0 || !strings.Contains(says, "apiVersion: v1beta1\n") && !strings.Contains(says, "apiVersion: v1beta1,") {
			t.Errorf("-o %s, exit code %d: %s\n%s", format, code, text, stderr)
		}
		if stdout, stderr, code := g.cli(text, "apply", "-f", "-"); code != 0 || !strings.Contains(stdout, "UNCHANGED") {
			t.Errorf("-o %s is not applied unchanged: exit code %d\n%s\n%s", format, code, stdout, stderr)
		}
	}
	for _, apiVersion := range []string{"/v1", "v1", "example.org/v1beta1"} {
		writeFile(t, manifests, "apiVersion: "+apiVersion+"\nkind: Lock\nmetadata: {name: door}\nspec: {}\n")
		if _, stderr, code := g.cli("", "apply", "-f", manifests); code == 0 || !strings.Contains(stderr, "kind Lock has apiVersion v1beta1") {
			t.Errorf("apiVersion %s: exit code %d\n%s", apiVersion, code, stderr)
		}
	}
}

func TestFieldsOfASpecStandAtTheTopOfAManifest(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "credential.graphqls"), `
type Credential @resource(plural: "credentials", group: "", version: "v1", scope: NAMESPACED) { spec: CredentialSpec! }
type CredentialSpec @rule(cel: "!has(self.text) || size(self.text) == 1", message: "one text is enough") {
  variety: String @constraint(maxLength: 63) @manifest(at: "type") @filterable
  text: [MapEntry!] @writeOnly @manifest(at: "stringData") @map @constraint(maxProperties: 100, maxLength: 10000, keyMaxLength: 253)
  data: [MapEntry!] @manifest(at: "data") @map @constraint(maxProperties: 100, maxLength: 10000, keyMaxLength: 253)
  note: String @constraint(maxLength: 200)
}
`)
	g := start(t, "", "--catalogue", dir)
	apply := func(text, says string) {
		t.Helper()
		stdout, stderr, _ := g.cli(text, "apply", "-f", "-")
		if !strings.Contains(stdout+stderr, says) {
			t.Errorf("%s\nwant %q, got %s%s", text, says, stdout, stderr)
		}
	}
	const head = "apiVersion: v1\nkind: Credential\nmetadata:\n  name: c\n  namespace: default\n"
	apply(head+"type: login\nstringData: {user: ada}\ndata: {\"<a>\": \"1\"}\n", "CREATED")
	a := g.must(`{ credentials(filter: {spec: {variety: {eq: "login"}}}) { nodes { spec { variety data { key value } note } } } kinds { name fields { name manifestAt } } }`)
	kinds, _ := a.Data["kinds"].([]any)
	a.Data["kinds"] = kinds[2:] // without those of the product
	if got := fmt.Sprint(a.Data); got != "map[credentials:map[nodes:[map[spec:map[data:[map[key:<a> value:1]] note:<nil> variety:login]]]]"+
		" kinds:[map[fields:[map[manifestAt:type name:variety] map[manifestAt:stringData name:text] map[manifestAt:data name:data] map[manifestAt:<nil> name:note]] name:Credential]]]" {
		t.Errorf("got %s", got)
	}
	text, _, _ := g.cli("", "get", "credential", "c", "-o", "manifest")
	if want := "apiVersion: v1\ndata:\n  \"<a>\": \"1\"\nkind: Credential\nmetadata:\n  name: c\n  namespace: default\ntype: login\n"; text != want {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
	apply(text, "UNCHANGED")
	text, _, _ = g.cli("", "get", "credential", "c", "-o", "yaml")
	apply(text, "UNCHANGED")
	text, _, _ = g.cli("", "get", "credential", "c", "-o", "json")
	apply(text, "UNCHANGED")
	apply(head+"type: login\nstringData: {user: bob}\ndata: {\"<a>\": \"1\"}\nspec: {note: hello}\n", "UPDATED")
	editor(t, `sed -i 's/type: login/type: other/' "$1"`)
	if stdout, stderr, code := g.cli("", "edit", "credential", "c"); code != 0 || !strings.Contains(stdout, "UPDATED") {
		t.Errorf("exit %d %s%s", code, stdout, stderr)
	}
	if text, _, _ = g.cli("", "get", "credential", "c", "-o", "manifest"); !strings.HasSuffix(text, "spec:\n  note: hello\ntype: other\n") {
		t.Errorf("got\n%s", text)
	}
	apply(head+"stringData: {a: b, c: d}\n", "spec: one text is enough")
	apply(head+"data: {a: b}\n", "UPDATED") // and the text is kept
	apply(head+"data: null\nstringData: null\n", "UPDATED")
	apply(head+"data: [a]\n", "data: must be a mapping of strings to strings")
	apply(head+"spec: {variety: x}\n", "spec.variety stands at the top of a manifest of kind Credential, as type")
	apply(head+"spec: [1]\n", "spec is not acceptable")
	apply(head+"text: {a: b}\n", "text is not a field of a manifest; accepted are apiVersion, version, kind, subKind, metadata, spec, data, stringData, type")
	apply(head+"labels: {a: b}\n", "labels is not a field of a manifest")
	apply(strings.Replace(head, "apiVersion: v1", "apiVersion: v2", 1)+"type: x\n", "kind Credential has apiVersion v1")
	apply("type: x\nkindd: Credential\n", "kindd is not a field of a manifest")
}
