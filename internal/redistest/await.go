package redistest

import (
	"fmt"
	"testing"
	"time"
)

// awaitLimit is how long [Await] waits; a starved machine needs most of it.
const awaitLimit = 30 * time.Second

// Await asks cond again and again until it returns nil, and fails the test with
// its last error if that takes too long. It is for what happens in other
// processes and tells nobody.
func Await(t testing.TB, what string, cond func() error) {
	t.Helper()
	if err := await(cond); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

func await(cond func() error) error {
	deadline := time.Now().Add(awaitLimit)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		err := cond()
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("not within %v: %w", awaitLimit, err)
		}
		<-tick.C
	}
}
