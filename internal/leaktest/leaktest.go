// Package leaktest fails the tests of a package that leave goroutines behind.
package leaktest

import (
	"fmt"
	"net/http"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// rounds is how often goroutines that are about to end are waited for, up to
// two seconds each.
const rounds = 5

// Main runs the tests of a package and exits. It is the whole of a TestMain.
// Cleanup runs after the tests. If they pass and goroutines are still running
// ten seconds later, it prints their stacks and exits with 1.
//
// Idle connections of [http.DefaultClient] are closed first: they belong to the
// process, not to a test.
func Main(m *testing.M, cleanup ...func()) {
	code := m.Run()
	for _, f := range cleanup {
		f()
	}
	http.DefaultClient.CloseIdleConnections()
	if code == 0 {
		if err := find(); err != nil {
			fmt.Fprintln(os.Stderr, "goroutines are left after the tests:", err)
			code = 1
		}
	}
	os.Exit(code)
}

func find() (err error) {
	for range rounds {
		if err = goleak.Find(); err == nil {
			return nil
		}
	}
	return err
}
