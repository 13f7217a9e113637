package e2e_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// campus is a catalogue with a GLOBAL kind, to which resources of all namespaces refer.
const campus = `type Site @resource(plural: "sites", group: "example.org", version: "v1", scope: GLOBAL) {
  spec: SiteSpec!
  status: SiteStatus
}
type SiteSpec { title: String @constraint(maxLength: 20) }
type SiteStatus { conditions: [Condition!] }

type Room @resource(plural: "rooms", group: "example.org", version: "v1", scope: NAMESPACED) {
  spec: RoomSpec!
  status: RoomStatus
}
type RoomSpec {
  siteRef: String @ref(kind: "Site", inverse: "rooms")
}
type RoomStatus { conditions: [Condition!] }
`

// guardedCampus is campus with a guard.
func guardedCampus() string {
	return strings.Replace(campus, `inverse: "rooms"`, `inverse: "rooms", guarded: true`, 1)
}

// siteManifest and roomManifest are resources of a campus.
func siteManifest(name string) string {
	return fmt.Sprintf("apiVersion: example.org/v1\nkind: Site\nmetadata: {name: %s}\nspec: {}\n---\n", name)
}

func roomManifest(namespace, name, site string) string {
	return fmt.Sprintf("apiVersion: example.org/v1\nkind: Room\nmetadata: {namespace: %s, name: %s}\nspec: {siteRef: %s}\n---\n", namespace, name, site)
}

// campuses starts a gateway on the embedded store, and one on Redis with four shards.
func campuses(t *testing.T, test func(t *testing.T, s *shop, shards int)) {
	t.Run("embedded store", func(t *testing.T) { test(t, openShop(t, campus), 1) })
	t.Run("redis with four shards", func(t *testing.T) {
		sameOnEachStore(t)
		test(t, openShop(t, campus, "--redis", server.Server(t).URL(), "--redis-prefix", prefix(t.TempDir()), "--redis-shards", "4"), 4)
	})
}

// sameData compares an answer with JSON whose members are sorted.
func sameData(t *testing.T, got answer, want string) {
	t.Helper()
	if raw, err := json.Marshal(got.Data); err != nil || string(raw) != want {
		t.Errorf("got  %s\nwant %s, error %v", raw, want, err)
	}
}

func TestResourcesOfNamespacesReferToAGlobalKind(t *testing.T) {
	t.Parallel()
	campuses(t, func(t *testing.T, s *shop, shards int) {
		floors := []string{"f1", "f2", "f3", "f4", "f5", "f6"}
		rooms := ""
		for _, floor := range floors {
			rooms += roomManifest(floor, "a", "hq")
		}
		if out, errOut, code := s.cli(rooms, "apply", "-f", "-"); code != 0 || !strings.Contains(errOut, "Waiting for Site/hq to be created") {
			t.Fatal(out, errOut, code)
		}
		if out, errOut, code := s.cli(siteManifest("hq"), "apply", "-f", "-"); code != 0 {
			t.Fatal(out, errOut)
		}
		for _, floor := range floors {
			if out, errOut, code := s.cli("", "wait", "room", "a", "-n", floor, "--for=condition=Available"); code != 0 {
				t.Fatal(out, errOut)
			}
		}
		s.expect(0, `RESOURCE      STATE   GUARDED   BY
room/a
refers to
└── site/hq   BOUND   no        spec.siteRef
`, "", "tree", "room", "a", "-n", "f3", "--direction", "dependencies")
		s.expect(0, `RESOURCE           STATE   GUARDED   BY
site/hq
referred to by
├── room/a -n f1   BOUND   no        spec.siteRef
├── room/a -n f2   BOUND   no        spec.siteRef
├── room/a -n f3   BOUND   no        spec.siteRef
├── room/a -n f4   BOUND   no        spec.siteRef
├── room/a -n f5   BOUND   no        spec.siteRef
└── room/a -n f6   BOUND   no        spec.siteRef
`, "", "tree", "site", "hq", "--direction", "dependents")
		if out, errOut, code := s.cli("", "describe", "room", "a", "-n", "f2"); code != 0 || !strings.Contains(out, "hq") {
			t.Errorf("exit %d\n%s%s", code, out, errOut)
		}
		got := s.must(`{ site(name: "hq") { rooms(first: 2) { totalCount nodes { metadata { namespace } site { metadata { name } } } } one: rooms(namespace: "f5") { nodes { metadata { namespace } } } } }`)
		sameData(t, got, `{"site":{"one":{"nodes":[{"metadata":{"namespace":"f5"}}]},"rooms":{"nodes":[{"metadata":{"namespace":"f1"},"site":{"metadata":{"name":"hq"}}},{"metadata":{"namespace":"f2"},"site":{"metadata":{"name":"hq"}}}],"totalCount":6}}}`)
		if out, errOut, code := s.cli("", "delete", "site", "hq"); code != 0 || !strings.Contains(out, "DELETED") {
			t.Errorf("a site that nothing holds: exit %d\n%s%s", code, out, errOut)
		}
		s.cli(roomManifest("f1", "late", "hq"), "apply", "-f", "-")
		if out, _, _ := s.cli("", "get", "room", "late", "-n", "f1", "-o", "yaml"); !strings.Contains(out, "Waiting for Site/hq to be created") {
			t.Errorf("the late room says\n%s", out)
		}
	})
}

func TestAGuardFromANamespaceToAGlobalKindNeedsOneShard(t *testing.T) {
	t.Parallel()
	campuses(t, func(t *testing.T, s *shop, shards int) {
		guarded := s.write("guarded", guardedCampus())
		if out, errOut, code := sluice(t, "", "catalogue", "check", guarded); code != 0 {
			t.Errorf("check knows no store: exit %d\n%s%s", code, out, errOut)
		}
		const line = "racks.graphqls:13: Room.spec.siteRef: the guarded reference leads to kind Site, which is GLOBAL"
		out, errOut, code := s.catalogue("apply", guarded, "--allow-breaking")
		if shards > 1 {
			refused := func(what, errOut string, code int) {
				t.Helper()
				if code != 2 || !strings.Contains(errOut, "the store has 4 shards") || !strings.Contains(errOut, line) {
					t.Errorf("%s: exit %d\n%s", what, code, errOut)
				}
			}
			refused("apply", errOut, code)
			if s.sdl() != campus {
				t.Error("the gateway's folder has the catalogue that was refused")
			}
			s.write("kinds", guardedCampus())
			_, errOut, code = s.catalogue("reload")
			refused("reload", errOut, code)
			args := s.cmd.Args[1:]
			s.stop()
			_, errOut, code = sluice(t, "", args...)
			refused("serve", errOut, code)
			return
		}
		if code != 0 {
			t.Fatalf("exit %d\n%s%s", code, out, errOut)
		}
		if out, errOut, code := s.cli(siteManifest("hq")+roomManifest("f1", "a", "hq")+roomManifest("f2", "b", "hq"), "apply", "-f", "-"); code != 0 {
			t.Fatal(out, errOut)
		}
		got := s.must(`mutation { deleteSite(input: {name: "hq"}) { state blockedBy { nodes { namespace name } } } }`)
		sameData(t, got, `{"deleteSite":{"blockedBy":{"nodes":[{"name":"a","namespace":"f1"},{"name":"b","namespace":"f2"}]},"state":"PENDING"}}`)
		s.cli("", "delete", "room", "a", "-n", "f1")
		s.cli("", "delete", "room", "b", "-n", "f2")
		if out, errOut, code := s.cli("", "wait", "site", "hq", "--for=delete"); code != 0 {
			t.Errorf("exit %d\n%s%s", code, out, errOut)
		}
	})
}
