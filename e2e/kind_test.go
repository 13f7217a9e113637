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
  email: String! @constraint(minLength: 3, maxLength: 100, pattern: "@") @index @sortable
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
  tier: Int! @constraint(min: 1, max: 5) @index @sortable
}

type AppStatus {
  healthy: Boolean
}
`

// catalogue makes a folder of the kinds of this release and one more file.
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
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "app.graphqls"), newKinds)
	g := start(t, "", "--schema", dir)
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

func TestACatalogueIsRefusedWholeByFileAndLine(t *testing.T) {
	dir := t.TempDir()
	team, app := filepath.Join(dir, "team.graphqls"), filepath.Join(dir, "app.graphqls")
	writeFile(t, team, "type Team @resource(plural: \"teams\", group: \"example.org\", version: \"v1\", scope: NAMESPACED) {\n  spec: TeamSpec!\n}\n\ntype TeamSpec {\n  email: Strin!\n  tier: Int @constraint(minLength: 3)\n}\n")
	writeFile(t, app, "type App @resource(plural: \"apps\", group: \"example.org\", version: \"v1\", scope: NAMESPACED) {\n  spec: AppSpec!\n}\n\ntype AppSpec {\n  ownerRef: String! @ref(kind: \"Taem\", inverse: \"apps\")\n}\n")
	data := filepath.Join(t.TempDir(), "data")
	said := refused(t, "--data", data, "--schema", dir)
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
	if _, stderr, code := sluice(t, "", "schema", "check", dir); code != 2 || stderr != said {
		t.Errorf("schema check: exit code %d\n%s", code, stderr)
	}
}

func TestAStoreIsNotServedWithLessThanItWasServedWith(t *testing.T) {
	dir := catalogue(t, newKinds)
	g := start(t, "")
	g.must(`mutation { createProject(input: {name: "p", spec: {cloudCredentialsRef: {secretName: "s", cloudName: "c"}, managementPolicy: MANAGED, resource: {}}}) { project { id } } }`)
	g.stop()
	g = start(t, g.data, "--schema", dir)
	g.must(`mutation { createTeam(input: {name: "web", spec: {email: "web@example.org"}}) { team { id } } }`)
	if a := g.must(`{ project(name: "p") { metadata { name } } }`); a.get("project", "metadata", "name") != "p" {
		t.Errorf("%+v", a)
	}
	g.stop()
	less := catalogue(t, strings.Replace(newKinds, "  backupRef: String", "  deputyRef: String", 1))
	said := refused(t, append(store(t, g.data), "--schema", less)...)
	for _, want := range []string{"App.spec.backupRef", "--allow-breaking"} {
		if !strings.Contains(said, want) {
			t.Errorf("%q is missing:\n%s", want, said)
		}
	}
	g = start(t, g.data, "--schema", less, "--allow-breaking")
	g.stop()
	// The catalogues of before were accepted once, so a release is taken back without a flag.
	g = start(t, g.data)
	if !g.log.await("resources of a kind that is not in the catalogue are kept and not served") {
		t.Errorf("nobody is told of the teams that are not served:\n%s", g.log)
	}
	g.stop()
	g = start(t, g.data, "--schema", dir)
	if a := g.must(`{ team(name: "web") { spec { email } } }`); a.get("team", "spec", "email") != "web@example.org" {
		t.Errorf("what was not served is lost: %+v", a)
	}
}

func TestGatewaysOfTwoCataloguesShareAStore(t *testing.T) {
	data := []string{"--redis", redistest.Start(t).URL()}
	older := start(t, "", append([]string{"--schema", catalogue(t, newKinds)}, data...)...)
	newer := start(t, "", append([]string{"--schema", catalogue(t, strings.Replace(newKinds, "  tier: Int!", "  motto: String @constraint(maxLength: 100)\n  tier: Int!", 1))}, data...)...)
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
