package backendtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicegw/sluice/backend"
)

// The benchmarks store BenchResources resources of about 1 KiB each.
const (
	BenchResources = 10_000
	benchBody      = 900
)

// BenchKey returns the key of the i-th resource of the benchmarks.
func BenchKey(i int) backend.Key {
	return backend.Key{Kind: "Network", Namespace: "default", Name: fmt.Sprintf("network-%06d", i)}
}

// BenchPut returns a put of the i-th resource, whose body is different in each
// round.
func BenchPut(i, round int) backend.Action {
	body := make([]byte, benchBody)
	for j := range body {
		body[j] = 'a' + byte((i+j+round)%26)
	}
	return backend.Action{Key: BenchKey(i), Op: backend.OpPut, Put: backend.Put{
		UID: "0190163d-8694-739b-aea5-966c26f8ad90", Caller: true, Body: backend.EncodeBody(body),
	}}
}

// Bench runs the benchmarks of a driver as sub-benchmarks of b, such as "get".
func Bench(b *testing.B, open Opener) {
	in := open(b, Options{Clock: time.Now})
	s, err := in.Open()
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close() })
	revisions := fill(b, s)
	b.Run("get", func(b *testing.B) {
		for i := range b.N {
			if rs, err := s.Get(b.Context(), BenchKey(i*7919%BenchResources)); err != nil || rs[0] == nil {
				b.Fatal(rs, err)
			}
		}
	})
	b.Run("page of 100 by name", func(b *testing.B) {
		for i := range b.N {
			k := BenchKey(i * 7919 % (BenchResources - 100))
			r := backend.Range{Kind: "Network", Start: backend.OrderTuple(k.Namespace, k.Name), Limit: 100}
			if page, err := s.Range(b.Context(), r); err != nil || len(page.Resources) != 100 {
				b.Fatal(len(page.Resources), err)
			}
		}
	})
	for _, writers := range []int{1, 64} {
		b.Run(
			fmt.Sprintf("conditional write with %d writers", writers),
			func(b *testing.B) { benchWrite(b, s, revisions, writers) },
		)
	}
	b.Run("watch delivery", func(b *testing.B) { benchWatch(b, s) })
}

// fill stores the resources and returns their revisions.
func fill(b *testing.B, s Store) []backend.Revision {
	revisions := make([]backend.Revision, BenchResources)
	for i := 0; i < BenchResources; i += 50 {
		batch := backend.Batch{RequestID: fmt.Sprint("fill-", i), Deadline: time.Now().Add(time.Minute)}
		for j := range 50 {
			batch.Actions = append(batch.Actions, BenchPut(i+j, 0))
		}
		res, err := s.Apply(context.Background(), batch)
		if err != nil {
			b.Fatal(err)
		}
		copy(revisions[i:], res.Revisions)
	}
	return revisions
}

// benchWrite splits b.N conditional updates among writers. Each writer changes
// different resources.
func benchWrite(b *testing.B, s Store, revisions []backend.Revision, writers int) {
	var next atomic.Int64
	var wg sync.WaitGroup
	change := make([]byte, 100)
	for w := range writers {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(w), 0))
			for next.Add(1) <= int64(b.N) {
				i := rnd.IntN(BenchResources/writers)*writers + w
				a := BenchPut(i, b.N)
				a = changed(a, revisions[i], change)
				res, err := s.Apply(
					b.Context(),
					backend.Batch{
						RequestID: "bench",
						Actor:     "someone@example.com",
						Deadline:  time.Now().Add(time.Minute),
						Actions:   []backend.Action{a},
					},
				)
				if err != nil {
					b.Error(err)
					return
				}
				revisions[i] = res.Revisions[0]
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "writes/s")
}

// benchWatch replays the log, again and again, until b.N events were delivered.
func benchWatch(b *testing.B, s Store) {
	head, err := s.Position(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	const back = 2000
	from := head.Shard(0)
	if from.Seq < back {
		b.Fatal("the log is too short")
	}
	from.Seq -= back
	for n := 0; n < b.N; {
		w, err := s.Watch(b.Context(), backend.Watch{From: backend.NewPosition(from)})
		if err != nil {
			b.Fatal(err)
		}
		for caughtUp := false; !caughtUp; {
			d, err := w.Next(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			n += len(d.Events)
			caughtUp = d.CaughtUp
		}
		w.Close()
	}
}
