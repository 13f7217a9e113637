package e2e_test

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
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
type Service @resource(plural: "services", group: "example.org", version: "v1", scope: NAMESPACED) {
  spec: ServiceSpec!
  status: ServiceStatus
}

type ServiceSpec {
  "Who runs it."
  ownerRef: String! @ref(kind: "Team", inverse: "services")
  "Who is called when the owner sleeps."
  backupRef: String @ref(kind: "Team", inverse: "backedServices")
  tier: Int! @constraint(min: 1, max: 5) @index @sortable
}

type ServiceStatus {
  healthy: Boolean
}
`

// copyModule copies the sources of the module, as a user's clone has them.
func copyModule(t *testing.T, to string) {
	t.Helper()
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel("..", path)
		if d.IsDir() {
			if rel != "." && (strings.HasPrefix(d.Name(), ".") || rel == "bin" || rel == "sluice-data") {
				return filepath.SkipDir
			}
			return os.MkdirAll(filepath.Join(to, rel), 0o755)
		}
		if !d.Type().IsRegular() {
			return nil
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, rel), raw, 0o644)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestAKindIsOneFileAndMakeGenerate(t *testing.T) {
	dir := t.TempDir()
	copyModule(t, dir)
	if err := os.WriteFile(filepath.Join(dir, "schema", "v1", "service.graphqls"), []byte(newKinds), 0o600); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "sluice")
	for _, command := range [][]string{{"make", "generate"}, {"go", "build", "-o", path, "./cmd/sluice"}} {
		cmd := exec.Command(command[0], command[1:]...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", command, err, out)
		}
	}
	g := startBinary(t, path, "")
	s := g.dial()
	defer s.close()
	s.subscribe("1", `subscription { serviceChanges(filter: {spec: {tier: {lte: 2}}}) { type service { metadata { name } } } }`, nil)
	s.next("1")

	must := func(query string) answer {
		t.Helper()
		a := g.post(query, nil)
		if a.codes() != "" {
			t.Fatalf("%s: %+v", query, a)
		}
		return a
	}
	must(`mutation { createTeam(input: {name: "web", spec: {email: "web@example.org"}}) { team { id } } }`)
	a := must(`mutation { createService(input: {name: "shop", spec: {ownerRef: "web", backupRef: "nobody", tier: 1}}) { service { metadata { revision } } } }`)
	revision := a.get("createService", "service", "metadata", "revision").(string)
	a = must(fmt.Sprintf(`mutation { updateService(input: {name: "shop", expectedRevision: %q, spec: {ownerRef: "web", tier: 2}}) { service { metadata { revision } } } }`, revision))
	revision = a.get("updateService", "service", "metadata", "revision").(string)
	a = must(fmt.Sprintf(`mutation { patchService(input: {name: "shop", expectedRevision: %q, spec: {tier: 3}}) { service { metadata { revision } } } }`, revision))
	revision = a.get("patchService", "service", "metadata", "revision").(string)
	must(fmt.Sprintf(`mutation { updateServiceStatus(input: {name: "shop", expectedRevision: %q, status: {healthy: true}}) { service { status { healthy } } } }`, revision))
	must(`mutation { upsertService(input: {name: "blog", spec: {ownerRef: "web", tier: 1}}) { created } }`)
	a = must(`{
		services(orderBy: [{field: SPEC_TIER, direction: DESC}]) { totalCount nodes { metadata { name } owner { spec { email } } backup { id } } }
		team(name: "web") { services(filter: {spec: {tier: {eq: 1}}}) { nodes { metadata { name } } } backedServices { totalCount } }
	}`)
	if got := fmt.Sprint(a.Data); got != "map[services:map[nodes:[map[backup:<nil> metadata:map[name:shop] owner:map[spec:map[email:web@example.org]]] map[backup:<nil> metadata:map[name:blog] owner:map[spec:map[email:web@example.org]]]] totalCount:2] team:map[backedServices:map[totalCount:0] services:map[nodes:[map[metadata:map[name:blog]]]]]]" {
		t.Errorf("got %s", got)
	}
	must(`mutation { deleteService(input: {name: "blog"}) { state } }`)
	for _, want := range []string{"ADDED shop", "MODIFIED shop", "DELETED shop", "ADDED blog", "DELETED blog"} {
		a := s.next("1")
		if got := fmt.Sprintf("%v %v", a.get("serviceChanges", "type"), a.get("serviceChanges", "service", "metadata", "name")); got != want {
			t.Errorf("event %q, want %q", got, want)
		}
	}
	if a := g.post(`mutation { createTeam(input: {name: "x", spec: {email: "nowhere"}}) { team { id } } }`, nil); a.codes() != "VALIDATION_FAILED" {
		t.Errorf("%+v", a)
	}
}
