package e2e_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/sluicegw/sluice/internal/redistest"
)

// tenants are two kinds of which one waits for the other, and keeps it from being deleted.
const tenants = `
type Team @resource(plural: "teams", group: "example.org", version: "v1", scope: NAMESPACED) { spec: TeamSpec!, status: TenantStatus }
type TeamSpec { n: Int }
type App @resource(plural: "apps", group: "example.org", version: "v1", scope: NAMESPACED) { spec: AppSpec!, status: TenantStatus }
type AppSpec { ownerRef: String! @ref(kind: "Team", guarded: true) }
type TenantStatus { conditions: [Condition!] }
`

// TestWhatAKilledGatewayLeftIsConcluded kills a gateway while it answers the write that others
// wait for. Another one on the same store, or the same one once it is back, does what follows from it.
func TestWhatAKilledGatewayLeftIsConcluded(t *testing.T) {
	t.Parallel()
	rounds := 40
	if testing.Short() {
		rounds = 3
	}
	schema := filepath.Join(t.TempDir(), "kinds")
	if err := os.MkdirAll(schema, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(schema, "tenants.graphqls"), []byte(tenants), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, two := range map[string]bool{"by another gateway": true, "by the same one": false} {
		t.Run(name, func(t *testing.T) {
			var flags []string
			data, callers := t.TempDir(), newCallers(t)
			if two {
				sameOnEachStore(t)
				flags = []string{"--redis", redistest.Start(t).URL()}
			}
			open := func() *gateway { return callers.start(t, data, append([]string{"--catalogue", schema}, flags...)...) }
			dying, other := open(), (*gateway)(nil)
			if two {
				other = open()
			}
			worst := time.Duration(0)
			for round := range rounds {
				witness := dying
				if two {
					witness = other
				}
				witness.must(fmt.Sprintf(`mutation { createApp(input: {name: "a%d", spec: {ownerRef: "t%d"}}) { app { id } } }`, round, round))
				witness.must(fmt.Sprintf(`mutation { createTeam(input: {name: "held%d", spec: {}}) { team { id } } }`, round))
				witness.must(fmt.Sprintf(`mutation { createApp(input: {name: "holder%d", spec: {ownerRef: "held%d"}}) { app { id } } }`, round, round))
				witness.must(fmt.Sprintf(`mutation { deleteTeam(input: {name: "held%d"}) { state } }`, round))
				sent := make(chan struct{})
				go func() {
					defer close(sent)
					_, _ = dying.send(fmt.Sprintf(`mutation { createTeam(input: {name: "t%d", spec: {}}) { team { id } } deleteApp(input: {name: "holder%d"}) { state } }`, round, round), nil)
				}()
				select { // killed while it answers, or right after it
				case <-sent:
				case <-time.After(rand.N(6 * time.Millisecond)):
				}
				dying.kill()
				<-sent
				begin := time.Now()
				if dying = open(); !two {
					witness, begin = dying, time.Now()
				}
				// What was not written before the kill is written now, by the witness.
				_, _ = witness.send(fmt.Sprintf(`mutation { createTeam(input: {name: "t%d", spec: {}}) { team { id } } }`, round), nil)
				_, _ = witness.send(fmt.Sprintf(`mutation { deleteApp(input: {name: "holder%d"}) { state } }`, round), nil)
				redistest.Await(t, "everything is concluded", func() error {
					a := witness.must(fmt.Sprintf(`{ app(name: "a%d") { status { conditions { type status message } } } team(name: "held%d") { id } }`, round, round))
					for _, c := range a.get("app", "status", "conditions").([]any) {
						if c := c.(map[string]any); c["type"] == "Available" && c["status"] != "True" {
							return fmt.Errorf("the app says %q", c["message"])
						}
					}
					if team := a.get("team"); team != nil {
						return fmt.Errorf("the team is there")
					}
					return nil
				})
				worst = max(worst, time.Since(begin))
			}
			t.Logf("%d rounds, the slowest was concluded after %v", rounds, worst)
		})
	}
}
