// Command sluicerelease builds the files of a release:
//   - for each system an archive with the binary, the manual pages and the completions
//   - packages for Debian and for systems with RPM
//   - a list of the modules in the binary (CycloneDX)
//   - the checksums of all these files
//
// The same commit and the same release of Go result in the same bytes. Run it in the root of the module, or by `make
// release`.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

func main() {
	r := release{}
	targets := ""
	flag.StringVar(&r.version, "version", "", "version of the release, such as v1.2.3 (required)")
	flag.StringVar(&r.out, "out", "dist", "folder for the files; it must not exist")
	flag.StringVar(&targets, "targets", strings.Join(allTargets(), ","), "systems and processors to build for, with commas")
	flag.BoolVar(&r.components, "components", true, "write the list of components")
	checks := flag.Bool("check", false, "build nothing: say whether the code is valid on the systems; -version is not needed")
	flag.Parse()
	r.targets = strings.Split(targets, ",")
	if *checks {
		r.version = "none"
	}
	err := r.validate()
	if err == nil && flag.NArg() > 0 {
		err = errors.New("there are no arguments; see -help")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "sluicerelease:", err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	if *checks {
		err = r.check(ctx)
	} else {
		err = r.build(ctx)
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "sluicerelease:", err)
		os.Exit(1)
	}
}
