package e2e_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/internal/redistest"
)

// TestDebugListen_ShowsWhatAGatewayDoes, which measures its store meanwhile, and ends with the gateway.
func TestDebugListen_ShowsWhatAGatewayDoes(t *testing.T) {
	t.Parallel()
	g := start(t, t.TempDir(), "--debug-listen", "127.0.0.1:0")
	g.must(`mutation { createSecret(input: {name: "a", spec: {}}) { secret { id } } }`)
	found := regexp.MustCompile(`"address":"(http://127\.0\.0\.1:\d+)/debug/state"`).FindStringSubmatch(g.log.String())
	if found == nil {
		t.Fatalf("the log has no address:\n%s", g.log)
	}
	get := func(path string) string {
		t.Helper()
		resp, err := http.Get(found[1] + path)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		body, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s, %v", path, resp.Status, err)
		}
		return string(body)
	}
	var state struct{ Store struct{ Kind string } }
	if err := json.Unmarshal([]byte(get("/debug/state")), &state); err != nil || state.Store.Kind == "" {
		t.Errorf("%+v, %v", state, err)
	}
	// A profile has what was allocated before the last collection.
	heap := get("/debug/pprof/heap?debug=1&gc=1")
	if !regexp.MustCompile(`^heap profile: \d+: \d+ \[[1-9]`).MatchString(heap) {
		t.Errorf("the heap profile has no samples: %.200s", heap)
	}
	redistest.Await(t, "the write to be measured", func() error { // it is answered before
		_, metrics := g.do("GET", "/metrics", "")
		for _, name := range []string{
			`sluice_store_call_duration_seconds_count{operation="apply"}`,
			"sluice_store_write_group_size_count",
			"sluice_hub_lag_seconds_count",
		} {
			if !strings.Contains(metrics, "\n"+name+" ") || strings.Contains(metrics, "\n"+name+" 0\n") {
				return fmt.Errorf("%s is missing or 0", name)
			}
		}
		return nil
	})
	if code := g.stop(); code != 0 {
		t.Errorf("exit code %d\n%s", code, g.log)
	}
}
