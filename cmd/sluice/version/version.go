// Package version has the version of this build.
package version

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// release is the release of this build. It is set by the linker, and empty for other builds.
var release string

// Build describes this build.
type Build struct {
	// Release is the result of [Text].
	Release string `json:"release"`
	// Commit is the full hash of the commit, and CommittedAt its time. They are empty if the build was made outside of
	// a repository.
	Commit      string `json:"commit,omitempty"`
	CommittedAt string `json:"committedAt,omitempty"`
	// Modified reports whether files were changed after the commit.
	Modified bool `json:"modified,omitempty"`
	// Go is the version of Go. Platform is the system and the processor, such as linux/amd64.
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// Current returns the description of this build.
func Current() Build {
	out := Build{
		Release:  Text(),
		Go:       runtime.Version(),
		Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return out
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			out.Commit = s.Value
		case "vcs.time":
			out.CommittedAt = s.Value
		case "vcs.modified":
			out.Modified = s.Value == "true"
		}
	}
	return out
}

// Text returns the release of this build. If there is none, it returns the commit.
func Text() string {
	if release != "" {
		return release
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return unknown
	}
	return text(info)
}

// unknown is the text for a build whose release and commit are both unknown.
const unknown = "devel"

// text returns the commit of a build in a repository, or the release that `go install MODULE@RELEASE` has built.
func text(info *debug.BuildInfo) string {
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return unknown + "-" + s.Value[:12]
		}
	}
	if installed := info.Main.Version; installed != "" && installed != "(devel)" {
		return installed
	}
	return unknown
}

// Line returns the line that the command version and the flag --version print.
func Line() string {
	return fmt.Sprintf("sluice %s %s %s/%s\n", Text(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
