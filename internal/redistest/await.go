package redistest

import (
	"fmt"
	"testing"
	"time"
)

// awaitLimit is the maximum time for which [Await] waits. A busy machine may need most of it.
const awaitLimit = 30 * time.Second

// Await calls cond repeatedly until cond returns nil. If this takes too long, Await fails the test with the last error
// of cond. what names the condition in the message. Await is for changes in other processes, which send no event.
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
