package service_test

import (
	"flag"
	"testing"

	"github.com/sluicegw/sluice/internal/leaktest"
)

// waiting is how many parallel tests run at a time: they wait for Redis, and for real time, rather than for processors.
const waiting = "8"

func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", waiting); err != nil {
		panic(err)
	}
	leaktest.Main(m)
}
