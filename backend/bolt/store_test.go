package bolt_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/sluicegw/sluice/backend/backendtest"
	"github.com/sluicegw/sluice/backend/bolt"
)

func open(t testing.TB, o backendtest.Options) backendtest.Instance {
	path := filepath.Join(t.TempDir(), "sluice.db")
	return backendtest.Instance{
		Open: func() (backendtest.Store, error) {
			return bolt.Open(bolt.Config{
				Path: path, Clock: o.Clock, Rand: o.Rand,
				LogEntries: o.LogEntries, LogAge: o.LogAge, LogBytes: o.LogBytes, PurgeInterval: o.PurgeInterval,
			})
		},
		Handle: func(s backendtest.Store) backendtest.Store { return s.(*bolt.Store).Handle() },
		Check:  func(s backendtest.Store) error { return s.(*bolt.Store).Check(context.Background()) },
	}
}

func TestStore(t *testing.T) { backendtest.Run(t, open) }

func TestStore_Idle(t *testing.T) { backendtest.RunIdle(t, open) }

func TestStore_Model(t *testing.T) { backendtest.RunModel(t, open, 1, 2, 3) }
