// Package version has the version of this build.
package version

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// release is the release, set by the linker; a build without it names its commit.
var release string

// Text returns the release; of a build without one, its commit.
func Text() string {
	if release != "" {
		return release
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" && len(s.Value) >= 12 {
				return "devel-" + s.Value[:12]
			}
		}
	}
	return "devel"
}

// Line is what version and --version print.
func Line() string {
	return fmt.Sprintf("sluice %s %s %s/%s\n", Text(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
