package exit

import (
	"testing"

	"github.com/sluicegw/sluice/graph/client"
)

func TestAnErrorSaysOnceThatItIsWorthTryingAgain(t *testing.T) {
	for message, want := range map[string]string{
		"the store is not available; try again": " (UNAVAILABLE)",
		"the store is not available":            " (UNAVAILABLE; try again)",
	} {
		e := &client.Error{Message: message}
		e.Extensions.Code, e.Extensions.Retryable = "UNAVAILABLE", true
		if got := Hint(e); got != want {
			t.Errorf("%s%s, want %s", message, got, want)
		}
	}
}
