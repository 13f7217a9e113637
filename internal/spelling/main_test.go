package spelling_test

import (
	"testing"

	"github.com/sluicegw/sluice/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }
