package e2e_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/internal/redistest"
)

const unguardedKinds = `type Team @resource(plural: "teams", group: "example.org", version: "v1", scope: NAMESPACED) { spec: TeamSpec! }
type TeamSpec { title: String @constraint(maxLength: 20) }
type App @resource(plural: "apps", group: "example.org", version: "v1", scope: NAMESPACED) { spec: AppSpec! }
type AppSpec { ownerRef: String! @ref(kind: "Team", inverse: "apps") @constraint(maxLength: 20) }
`

// TestRebinding_ADeleteWaitsForTheGuardsOfANewCatalogue: as soon as a catalogue that guards a reference was applied,
// nothing that it guards can be deleted; until the store guards it, no answer says that it does.
func TestRebinding_ADeleteWaitsForTheGuardsOfANewCatalogue(t *testing.T) {
	t.Parallel()
	s := openJudgedShop(t, unguardedKinds)
	const apps = 300
	var manifests strings.Builder
	for i := range apps {
		fmt.Fprintf(&manifests, "apiVersion: example.org/v1\nkind: Team\nmetadata: {name: t%d}\nspec: {}\n---\napiVersion: example.org/v1\nkind: App\nmetadata: {name: a%d}\nspec: {ownerRef: t%d}\n---\n", i, i, i)
	}
	if _, errOut, code := s.cli(manifests.String(), "apply", "-f", "-"); code != 0 {
		t.Fatal(errOut)
	}
	next := s.write("next", strings.Replace(unguardedKinds, `inverse: "apps"`, `inverse: "apps", guarded: true`, 1))
	out, errOut, code := s.catalogue("apply", next, "--allow-breaking")
	if code != 0 || !strings.Contains(out, "rebinding: the gateway is taking over the references of App;") {
		t.Fatalf("exit %d: %s%s", code, out, errOut)
	}
	id := func(team string) string {
		return s.must(`{ team(name: "`+team+`") { id } }`).get("team", "id").(string)
	}
	ids := []string{id("t7"), id("t299")}
	for guarded := false; !guarded; {
		got := s.must(fmt.Sprintf(`{
			app(name: "a299") { dependencies { nodes { guarded state } } }
			team(name: "t299") { blockedBy { totalCount } dependents { nodes { guarded } } }
			tree: dependencyTree(id: %q, direction: DEPENDENTS) { dependents { guarded } }
		}`, ids[1]))
		raw, _ := json.Marshal(got.Data)
		var a struct {
			App struct {
				Dependencies struct{ Nodes []struct{ Guarded bool } }
			}
			Team struct {
				BlockedBy  struct{ TotalCount int }
				Dependents struct{ Nodes []struct{ Guarded bool } }
			}
			Tree struct{ Dependents []struct{ Guarded bool } }
		}
		if err := json.Unmarshal(raw, &a); err != nil {
			t.Fatal(err)
		}
		guarded = a.Team.BlockedBy.TotalCount == 1
		said := []bool{a.App.Dependencies.Nodes[0].Guarded, a.Team.Dependents.Nodes[0].Guarded, a.Tree.Dependents[0].Guarded}
		for i, yes := range said {
			// The binding may come between the reads of one answer, but not go.
			if yes && !guarded {
				again := s.must(`{ team(name: "t299") { blockedBy { totalCount } } }`).get("team", "blockedBy", "totalCount")
				if again != 1.0 {
					t.Errorf("answer %d says that the reference guards, and nothing holds the team: %s", i, raw)
				}
			}
		}
	}
	redistest.Await(t, "the references to be taken", func() error {
		for _, k := range s.must(`{ kinds { name rebinding } }`).get("kinds").([]any) {
			if k.(map[string]any)["rebinding"] == true {
				return fmt.Errorf("%v", k)
			}
		}
		return nil
	})
	if got := s.must(`mutation { deleteTeam(input: {name: "t7"}) { state } }`).get("deleteTeam", "state"); got != "PENDING" {
		t.Errorf("the deletion is %v", got)
	}
}

// TestRebinding_ADeleteAtOnceIsHeld deletes right after the answer of apply.
func TestRebinding_ADeleteAtOnceIsHeld(t *testing.T) {
	t.Parallel()
	s := openJudgedShop(t, unguardedKinds)
	manifests := "apiVersion: example.org/v1\nkind: Team\nmetadata: {name: t}\nspec: {}\n---\napiVersion: example.org/v1\nkind: App\nmetadata: {name: a}\nspec: {ownerRef: t}\n"
	if _, errOut, code := s.cli(manifests, "apply", "-f", "-"); code != 0 {
		t.Fatal(errOut)
	}
	next := s.write("next", strings.Replace(unguardedKinds, `inverse: "apps"`, `inverse: "apps", guarded: true`, 1))
	if out, errOut, code := s.catalogue("apply", next, "--allow-breaking"); code != 0 {
		t.Fatalf("exit %d: %s%s", code, out, errOut)
	}
	if got := s.must(`mutation { deleteTeam(input: {name: "t"}) { state } }`).get("deleteTeam", "state"); got != "PENDING" {
		t.Errorf("the deletion is %v", got)
	}
}

// TestRebinding_OfACatalogueThatComesBackAtOnce: what another catalogue has written in the second for which it was served
// is guarded as the one that comes back declares, at once and for good.
func TestRebinding_OfACatalogueThatComesBackAtOnce(t *testing.T) {
	t.Parallel()
	sameOnEachStore(t)
	stores := map[string][]string{
		"embedded": {"--data", t.TempDir()},
		"redis":    {"--redis", server.Server(t).URL(), "--redis-prefix", prefix(t.TempDir())},
	}
	for on, flags := range stores {
		t.Run(on, func(t *testing.T) {
			t.Parallel()
			guarded := strings.Replace(unguardedKinds, `inverse: "apps"`, `inverse: "apps", guarded: true`, 1)
			s := openJudgedShop(t, guarded, flags...)
			apply := func(sdl string) {
				t.Helper()
				if out, errOut, code := s.catalogue("apply", s.write("next", sdl), "--allow-breaking"); code != 0 {
					t.Fatal(out, errOut)
				}
			}
			apply(unguardedKinds)
			apply(guarded)
			rebound := func() error {
				for _, k := range s.must(`{ kinds { name rebinding } }`).get("kinds").([]any) {
					if k.(map[string]any)["rebinding"] == true {
						return fmt.Errorf("%v", k)
					}
				}
				return nil
			}
			redistest.Await(t, "the references to be taken", rebound)

			apply(unguardedKinds)
			for _, name := range []string{"now", "later"} {
				s.must(fmt.Sprintf(`mutation { createTeam(input: {name: %q, spec: {}}) { team { id } } createApp(input: {name: %q, spec: {ownerRef: %q}}) { app { id } } }`, name, name, name))
			}
			apply(guarded)
			if rebound() == nil {
				t.Error("no kind is said to be rebinding")
			}
			if got := s.must(`mutation { deleteTeam(input: {name: "now"}) { state } }`).get("deleteTeam", "state"); got != "PENDING" {
				t.Errorf("the deletion at once is %v", got)
			}
			redistest.Await(t, "the references to be taken", rebound)
			got := s.must(`{ app(name: "later") { dependencies { nodes { guarded } } } team(name: "later") { blockedBy { totalCount } } }`)
			if text := fmt.Sprint(got.get("app", "dependencies", "nodes"), got.get("team", "blockedBy", "totalCount")); text != "[map[guarded:true]] 1" {
				t.Errorf("afterwards %s", text)
			}
		})
	}
}
