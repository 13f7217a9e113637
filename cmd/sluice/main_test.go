package main

import (
	"os"
	"testing"

	"github.com/sluicegw/sluice/internal/leaktest"
)

func TestMain(m *testing.M) {
	_ = os.Setenv(contextsVariable, "/nonexistent/contexts.yaml") // not those of the person who runs the tests
	leaktest.Main(m)
}
