package loader_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/sluicegw/sluice/backend/service/query"
	"github.com/sluicegw/sluice/graph/loader"
)

func TestWhatIsReadOnceIsReadByTheFirstWhoAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := loader.With(t.Context(), &fake{}, 0)
		var reads, wrong atomic.Int64
		together(50, func(i int) {
			key := []string{"a", "b", "bad"}[i%3]
			got, err := loader.From(ctx).Once(key, func() (any, error) {
				reads.Add(1)
				if key == "bad" {
					return nil, errStore
				}
				return key, nil
			})
			if key == "bad" && !errors.Is(err, errStore) || key != "bad" && (got != key || err != nil) {
				wrong.Add(1)
			}
		})
		if reads.Load() != 3 || wrong.Load() != 0 {
			t.Errorf("%d reads, %d wrong answers", reads.Load(), wrong.Load())
		}
	})
}

func TestPagesOfWhateverKindsAreAHundredInACall(t *testing.T) {
	f := &fake{}
	l := loader.New(f, 0)
	var requests []query.ListRequest
	for i := range 250 {
		requests = append(requests, query.ListRequest{Kind: []string{"A", "B"}[i%2], Parent: query.Parent{Key: key("C", i)}})
	}
	pages, err := l.Pages(t.Context(), requests)
	if err != nil || len(pages) != 250 || pages[249].Edges[0].Resource.Stored.Key != key("C", 249) || len(f.lists) != 3 {
		t.Errorf("%d pages, calls of %v, %v", len(pages), f.lists, err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.Pages(gone, requests); !errors.Is(err, context.Canceled) || len(f.lists) != 3 {
		t.Errorf("after the client has left: calls of %v, %v", f.lists, err)
	}
}
