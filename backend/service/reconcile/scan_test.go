package reconcile_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/hub"
	"github.com/sluicegw/sluice/backend/memory"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/reconcile"
)

// superseded is a judge whose catalogue is not the newest any more when it comes to the
// resources of a page, until it is told otherwise.
type superseded struct {
	newest  atomic.Bool
	settled atomic.Int64
}

func (j *superseded) Settle(_ context.Context, resources, _ []*backend.Resource) ([]*backend.Resource, error) {
	if !j.newest.Load() {
		return nil, reconcile.ErrNotNewest
	}
	j.settled.Add(int64(len(resources)))
	return nil, nil
}

func (*superseded) Finish(context.Context, backend.Key) error            { return nil }
func (*superseded) Conclude(context.Context, []*backend.Resource) error  { return nil }
func (*superseded) JudgedBy(context.Context, *kind.Kind) (string, error) { return "these", nil }
func (*superseded) Newest(context.Context) (bool, error)                 { return true, nil }

func TestAPageThatWasLeftDoesNotCountAsScanned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, err := memory.Open(memory.Config{})
		if err != nil {
			t.Fatal(err)
		}
		kinds, err := kind.Compile([]descriptor.Kind{{Name: "Widget", Singular: "widget", Plural: "widgets", Scope: descriptor.Namespaced, Spec: &descriptor.Shape{Name: "WidgetSpec"}}})
		if err != nil {
			t.Fatal(err)
		}
		const widgets = 600 // two pages
		for i := range widgets {
			if _, err := store.Apply(t.Context(), backend.Batch{RequestID: fmt.Sprint(i), Deadline: time.Now().Add(time.Minute), Actions: []backend.Action{{
				Key: backend.Key{Kind: "Widget", Namespace: "n", Name: fmt.Sprint(i)}, Op: backend.OpPut, Put: backend.Put{UID: "u", Body: []byte(`j{"spec":{}}`)},
			}}}); err != nil {
				t.Fatal(err)
			}
		}
		changes, err := hub.New(hub.Config{Store: store})
		if err != nil {
			t.Fatal(err)
		}
		judge := &superseded{}
		ids := 0
		r := reconcile.New(reconcile.Config{
			Store: store, Hub: changes, Kinds: kinds, Judge: judge, Logger: zap.NewNop(), Clock: time.Now, WriteTimeout: time.Second, Tag: "mine-", Delay: time.Second,
			NewID: func() string { ids++; return fmt.Sprint("id-", ids) },
		})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- r.Run(ctx) }()
		scanned := func() bool {
			got, err := store.Get(t.Context(), backend.Key{Kind: "_reconcile", Name: "shard-0"})
			return err == nil && got[0] != nil && strings.Contains(string(got[0].Body), `"Widget":"these"`)
		}
		time.Sleep(10 * time.Second) // of the bubble
		if scanned() {
			t.Error("the kind counts as scanned, of which nothing was settled")
		}
		judge.newest.Store(true)
		time.Sleep(10 * time.Second)
		if n := judge.settled.Load(); n != widgets || !scanned() {
			t.Errorf("%d widgets are settled, scanned: %v", n, scanned())
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
