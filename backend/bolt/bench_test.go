package bolt_test

import (
	"bytes"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/backendtest"
	"github.com/sluicegw/sluice/backend/bolt"
)

func BenchmarkStore(b *testing.B) { backendtest.Bench(b, open) }

// BenchmarkPlain is bbolt alone with the same keys and bytes: what the store is measured against.
func BenchmarkPlain(b *testing.B) {
	db, err := bbolt.Open(filepath.Join(b.TempDir(), "plain.db"), 0o600, &bbolt.Options{FreelistType: bbolt.FreelistMapType, NoFreelistSync: true, InitialMmapSize: 1 << 30})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = db.Close() })
	bucket := []byte("resources")
	form := func(i, round int) []byte {
		a := backendtest.BenchPut(i, round)
		r := &backend.Resource{Key: a.Key, Envelope: backend.Envelope{UID: a.Put.UID, Revision: backend.Revision{Epoch: 1 << 50, Seq: 1}}, Body: a.Put.Body}
		_, form := bolt.EncodeEvent(&backend.Event{Type: backend.Added, Resource: r})
		return form
	}
	put := func(tx *bbolt.Tx, i, round int) error {
		return tx.Bucket(bucket).Put(backendtest.BenchKey(i).Append(nil), form(i, round))
	}
	for i := 0; i < backendtest.BenchResources; i += 50 {
		err := db.Update(func(tx *bbolt.Tx) error {
			if _, err := tx.CreateBucketIfNotExists(bucket); err != nil {
				return err
			}
			for j := range 50 {
				if err := put(tx, i+j, 0); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	b.Run("get", func(b *testing.B) {
		for i := range b.N {
			wantErr(b, db.View(func(tx *bbolt.Tx) error {
				bytes.Clone(tx.Bucket(bucket).Get(backendtest.BenchKey(i * 7919 % backendtest.BenchResources).Append(nil)))
				return nil
			}), nil)
		}
	})
	b.Run("page of 100 by name", func(b *testing.B) {
		for i := range b.N {
			wantErr(b, db.View(func(tx *bbolt.Tx) error {
				c := tx.Bucket(bucket).Cursor()
				n := 0
				for k, v := c.Seek(backendtest.BenchKey(i * 7919 % (backendtest.BenchResources - 100)).Append(nil)); k != nil && n < 100; k, v = c.Next() {
					bytes.Clone(v)
					n++
				}
				return nil
			}), nil)
		}
	})
	rnd := rand.New(rand.NewPCG(1, 1))
	for _, test := range []struct {
		name  string
		perTx int
	}{{"put with 1 writer, one to a transaction", 1}, {"put, 64 to a transaction", 64}} {
		b.Run(test.name, func(b *testing.B) {
			for n := 0; n < b.N; n += test.perTx {
				wantErr(b, db.Update(func(tx *bbolt.Tx) error {
					for range min(test.perTx, b.N-n) {
						if err := put(tx, rnd.IntN(backendtest.BenchResources), n); err != nil {
							return err
						}
					}
					return nil
				}), nil)
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "writes/s")
		})
	}
}
