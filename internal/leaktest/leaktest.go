// Package leaktest fails the tests of a package that leave goroutines behind.
package leaktest

import (
	"fmt"
	"net/http"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// rounds is the maximum number of checks for goroutines that are about to end. Each check waits for up to two seconds.
const rounds = 5

// Main runs the tests of a package and exits. A TestMain needs to call nothing else. Main calls the functions cleanup
// after the tests. If the tests pass and goroutines are still running ten seconds later, Main prints their stacks and
// exits with 1.
//
// Before it looks for goroutines, Main closes idle connections of [http.DefaultClient], because they do not belong to a
// test.
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
