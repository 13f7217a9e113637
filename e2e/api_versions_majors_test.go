package e2e_test

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestAPIVersions_TwoMajorsOnOneRedis rolls a new major version out to one of two gateways, and back.
func TestAPIVersions_TwoMajorsOnOneRedis(t *testing.T) {
	t.Parallel()
	sameOnEachStore(t)
	redis := []string{"--redis", server.Server(t).URL(), "--redis-prefix", prefix(t.TempDir())}
	callers := newCallers(t)
	older := openShopBy(t, callers.start, racks, redis...)
	release := func(number, folder string) {
		t.Helper()
		if out, errOut, code := sluice(t, "", "catalogue", "release", number, folder); code != 0 {
			t.Fatalf("exit %d %s%s", code, out, errOut)
		}
	}
	release("1.0", older.kinds)
	if out, errOut, code := older.catalogue("reload"); code != 0 {
		t.Fatalf("exit %d %s%s", code, out, errOut)
	}
	next := older.write("next", strings.Replace(racks, "  height: Int\n", "  units: Int @stored(as: \"height\")\n  depth: Int\n", 1))
	if err := os.CopyFS(filepath.Join(next, "versions"), os.DirFS(filepath.Join(older.kinds, "versions"))); err != nil {
		t.Fatal(err)
	}
	release("2.0", next)
	newer := callers.start(t, "", append([]string{"--catalogue", next}, redis...)...)
	ask := func(g *gateway, path, query string) string {
		t.Helper()
		_, text := g.do(http.MethodPost, path, `{"query":"`+query+`"}`, "Content-Type", "application/json")
		return text
	}
	revision := func(g *gateway, path string) string {
		t.Helper()
		text := ask(g, path, `{ rack(name: \"a\") { metadata { revision } } }`)
		found := regexp.MustCompile(`"revision":"([^"]+)"`).FindStringSubmatch(text)
		if found == nil {
			t.Fatal(text)
		}
		return found[1]
	}
	ask(older.gateway, "/v1/graphql", `mutation { createRack(input: {name: \"a\", spec: {height: 1, label: \"l\"}}) { rack { id } } }`)
	for i, turn := range []struct {
		gateway     *gateway
		path, spec  string
		old, recent string
	}{
		{newer, "/v2/graphql", "{units: 2, depth: 7}", `{"height":2,"label":"l"}`, `{"units":2,"depth":7,"label":"l"}`},
		{older.gateway, "/v1/graphql", "{height: 3}", `{"height":3,"label":"l"}`, `{"units":3,"depth":7,"label":"l"}`},
		{newer, "/v1.0/graphql", `{height: 4, label: null}`, `{"height":4,"label":null}`, `{"units":4,"depth":7,"label":null}`},
		{newer, "/graphql", "{units: 5}", `{"height":5,"label":null}`, `{"units":5,"depth":7,"label":null}`},
	} {
		before := revision(older.gateway, "/v1.0/graphql")
		if other := revision(newer, "/v2.0/graphql"); other != before {
			t.Errorf("%d: revisions %s and %s", i, before, other)
		}
		write := `mutation { patchRack(input: {name: \"a\", expectedRevision: \"` + before + `\", spec: ` + turn.spec + `}) { rack { id } } }`
		if got := ask(turn.gateway, turn.path, write); strings.Contains(got, `"errors"`) {
			t.Fatalf("%d: %s", i, got)
		}
		for _, g := range []*gateway{older.gateway, newer} {
			stale := `mutation { patchRack(input: {name: \"a\", expectedRevision: \"` + before + `\", spec: {height: 9}}) { rack { id } } }`
			if got := ask(g, "/v1/graphql", stale); !strings.Contains(got, `"CONFLICT"`) {
				t.Errorf("%d: a stale write: %s", i, got)
			}
			if got := ask(g, "/v1/graphql", `{ rack(name: \"a\") { spec { height label } } }`); !strings.Contains(got, turn.old) {
				t.Errorf("%d: wanted %s, v1 has %s", i, turn.old, got)
			}
		}
		if got := ask(newer, "/v2/graphql", `{ rack(name: \"a\") { spec { units depth label } } }`); !strings.Contains(got, turn.recent) {
			t.Errorf("%d: wanted %s, v2 has %s", i, turn.recent, got)
		}
	}
	if code := newer.stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	back := callers.start(t, "", append([]string{"--catalogue", older.kinds}, redis...)...)
	for path, want := range map[string]string{"/v1/graphql": `{"height":5}`, "/graphql": `{"height":5}`, "/v2/graphql": `"supported":["v1.0"]`} {
		if got := ask(back, path, `{ rack(name: \"a\") { spec { height } } }`); !strings.Contains(got, want) {
			t.Errorf("after the roll-back, %s: %s", path, got)
		}
	}
}
