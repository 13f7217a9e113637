package redis_test

import (
	"flag"
	"testing"

	"github.com/sluicegw/sluice/internal/leaktest"
)

// atOnce is how many parallel tests run at a time: they wait for Redis, and for real time, rather than for processors.
const atOnce = "4"

func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", atOnce); err != nil {
		panic(err)
	}
	leaktest.Main(m, server.Stop)
}
