package e2e_test

import (
	"fmt"
	"strings"
	"testing"
)

const purgedSafes = `type Safe @resource(plural: "safes", group: "", version: "v1", scope: NAMESPACED, sensitive: true) { spec: SafeSpec! }
type SafeSpec {
  note: String @constraint(maxLength: 20)
  pin: String @writeOnly @constraint(maxLength: 20)
  token: String @writeOnly @constraint(maxLength: 20)
  login: Login
}
type Login { user: String @constraint(maxLength: 20), word: String @writeOnly @constraint(maxLength: 20) }
type Room @resource(plural: "rooms", group: "", version: "v1", scope: NAMESPACED) { spec: RoomSpec! }
type RoomSpec { floor: Int }
`

// TestPurge_RemovesSensitiveValues, which lie in a record of their own, encrypted or not, on both stores: those of a
// field that is gone, and all of a kind that is gone.
func TestPurge_RemovesSensitiveValues(t *testing.T) {
	sameOnEachStore(t)
	for _, on := range []string{"", "redis"} {
		for _, encrypted := range []bool{false, true} {
			t.Run(fmt.Sprintf("%q, encrypted %v", on, encrypted), func(t *testing.T) {
				t.Setenv(storeVariable, on)
				var flags []string
				if encrypted {
					flags = []string{"--encryption-keys-file", keysFile(t, "a")}
				}
				callers := newCallers(t)
				s := openShopBy(t, callers.start, purgedSafes, flags...)
				callers.bind(s.gateway, "admin") // who may reveal
				s.purgesSensitiveValues()
			})
		}
	}
}

func (s *shop) purgesSensitiveValues() {
	s.t.Helper()
	purge := func(what, says string, want int, flags ...string) {
		s.t.Helper()
		out, errOut, code := s.catalogue(append([]string{"purge", what}, flags...)...)
		if out+errOut != says || code != want {
			s.t.Errorf("purge %s %v: exit %d, want %d: %s%s", what, flags, code, want, out, errOut)
		}
	}
	serve := func(sdl string) {
		s.t.Helper()
		if out, errOut, code := s.catalogue("apply", s.write("next", sdl), "--allow-breaking"); code != 0 {
			s.t.Fatal(out, errOut)
		}
	}
	revealed := func(name string) (values string) {
		s.t.Helper()
		out, errOut, code := s.cli("", "reveal", "safe", name)
		if code != 0 {
			s.t.Fatal(errOut)
		}
		return out
	}
	s.must(`mutation { createSafe(input: {name: "full", spec: {note: "n", pin: "p1", token: "t1", login: {user: "u", word: "w1"}}}) { safe { id } } }`)
	s.must(`mutation { createSafe(input: {name: "less", spec: {note: "n", pin: "p2"}}) { safe { id } } }`)

	serve(strings.NewReplacer(
		"  token: String @writeOnly @constraint(maxLength: 20)\n", "",
		", word: String @writeOnly @constraint(maxLength: 20)", "",
	).Replace(purgedSafes))
	purge("Safe.spec.token", "Safe.spec.token: 1 resource would be purged, 0 kept\n", 0, "--dry-run")
	purge("Safe.spec.token", "Safe.spec.token: 1 resource purged, 0 kept\n", 0)
	purge("Safe.spec.token", "sluice: no resource has a value at Safe.spec.token\n", 1)
	purge("Safe.spec.login.word", "Safe.spec.login.word: 1 resource purged, 0 kept\n", 0)
	serve(purgedSafes)
	if got := revealed("full"); !strings.Contains(got, "p1") || strings.Contains(got, "t1") || strings.Contains(got, "w1") {
		s.t.Errorf("after the purge of two fields: %s", got)
	}
	if got := revealed("less"); !strings.Contains(got, "p2") {
		s.t.Errorf("another resource: %s", got)
	}

	serve(purgedSafes[strings.Index(purgedSafes, "type Room @"):])
	purge("Safe", "Safe: 2 resources would be purged, 0 kept\n", 0, "--dry-run")
	purge("Safe", "Safe: 2 resources purged, 0 kept\n", 0)
	purge("Safe", "sluice: nothing is stored of a kind Safe\n", 1)
	purge("Sfae", "sluice: nothing is stored of a kind Sfae\n", 1)
	serve(purgedSafes)
	s.must(`mutation { createSafe(input: {name: "full", spec: {note: "n"}}) { safe { id } } }`)
	if got := revealed("full"); strings.Contains(got, "p1") {
		s.t.Errorf("a namesake has values of the one that was purged: %s", got)
	}
}
