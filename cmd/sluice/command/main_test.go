package command_test

import (
	"os"
	"testing"

	"github.com/sluicegw/sluice/cmd/sluice/config"
	"github.com/sluicegw/sluice/internal/leaktest"
)

func TestMain(m *testing.M) {
	// The tests do not read the contexts of the person who runs them.
	_ = os.Setenv(config.ContextsVariable, "/nonexistent/contexts.yaml")
	leaktest.Main(m)
}
