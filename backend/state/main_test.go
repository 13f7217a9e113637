package state

import (
	"testing"

	"github.com/sluicegw/sluice/internal/leaktest"
	"github.com/sluicegw/sluice/internal/redistest"
)

var servers redistest.Shared

func TestMain(m *testing.M) { leaktest.Main(m, servers.Stop) }
