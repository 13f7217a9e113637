package version

import (
	"runtime/debug"
	"testing"
)

func TestText_OfABuildWithoutARelease(t *testing.T) {
	commit := []debug.BuildSetting{{Key: "vcs.revision", Value: "73f631fd3048568efd3c7b2eaa7bf71855fe4612"}}
	later := debug.Module{Version: "v0.0.0-20261128003239-73f631fd3048"}
	for _, c := range []struct {
		built string
		info  debug.BuildInfo
		want  string
	}{
		{"in a repository", debug.BuildInfo{Main: later, Settings: commit}, "devel-73f631fd3048"},
		{"by go install", debug.BuildInfo{Main: debug.Module{Version: "v1.2.3"}}, "v1.2.3"},
		{"outside of a repository", debug.BuildInfo{Main: debug.Module{Version: "(devel)"}}, "devel"},
		{"by a test", debug.BuildInfo{}, "devel"},
	} {
		if got := text(&c.info); got != c.want {
			t.Errorf("%s: %q, want %q", c.built, got, c.want)
		}
	}
}
