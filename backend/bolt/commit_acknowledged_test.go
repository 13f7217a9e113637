package bolt_test

import (
	"errors"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/bolt"
)

// A commit can be seen in the file before it is synced and its callers are told.
func TestCommit_AReadShowsACommitOnceItIsAcknowledged(t *testing.T) {
	for what, fails := range map[string]error{"a commit that is acknowledged": nil, "a commit that fails after it could be seen": errors.New("no sync")} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := backend.Key{Kind: "Net", Namespace: "ns", Name: "a"}
				var s *bolt.Store
				read := make(chan struct{})
				commits := 0
				s, err := bolt.Open(bolt.Config{Path: filepath.Join(t.TempDir(), "sluice.db")}.WithCommit(func(commit func() error) error {
					err := commit()
					if commits++; commits != 2 { // the first one has opened the file
						return err
					}
					go func() {
						defer close(read)
						got, err := s.Get(t.Context(), k)
						if err != nil {
							t.Error(err)
							return
						}
						head, err := s.Head(t.Context())
						if err != nil {
							t.Error(err)
							return
						}
						if got[0] != nil && head.Shard(0).Compare(got[0].Revision) < 0 {
							t.Errorf("revision %s was read before the head was there, at %s", got[0].Revision, head)
						}
					}()
					synctest.Wait() // until it has read, or waits
					return errors.Join(err, fails)
				}))
				if err != nil {
					t.Fatal(err)
				}
				_, err = s.Apply(t.Context(), backend.Batch{
					RequestID: "r", Deadline: s.Now().Add(time.Second),
					Actions: []backend.Action{{Key: k, Op: backend.OpPut, Put: backend.Put{UID: "u", Body: backend.EncodeBody([]byte("x"))}}},
				})
				if (err == nil) != (fails == nil) {
					t.Errorf("apply: %v", err)
				}
				<-read
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
