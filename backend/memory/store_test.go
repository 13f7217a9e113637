package memory_test

import (
	"testing"

	"github.com/sluicegw/sluice/backend/backendtest"
	"github.com/sluicegw/sluice/backend/memory"
)

func open(_ testing.TB, o backendtest.Options) backendtest.Instance {
	data := &memory.Data{}
	return backendtest.Instance{
		Open: func() (backendtest.Store, error) {
			return memory.Open(memory.Config{
				Data: data, Clock: o.Clock, Rand: o.Rand,
				LogEntries: o.LogEntries, LogAge: o.LogAge, LogBytes: o.LogBytes, PurgeInterval: o.PurgeInterval,
			})
		},
		Handle: func(s backendtest.Store) backendtest.Store { return s.(*memory.Store).Handle() },
	}
}

func TestStore(t *testing.T) { backendtest.Run(t, open) }

func TestStore_Idle(t *testing.T) { backendtest.RunIdle(t, open) }

func TestStore_Model(t *testing.T) { backendtest.RunModel(t, open, 1, 2) }

func BenchmarkStore(b *testing.B) { backendtest.Bench(b, open) }
