package identity

import (
	"testing"
	"time"
)

// RelearnEvery sets how often issuers are asked anew, until the test ends.
func RelearnEvery(t *testing.T, d time.Duration) {
	before := relearn
	relearn = d
	t.Cleanup(func() { relearn = before })
}
