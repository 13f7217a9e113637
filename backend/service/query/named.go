package query

import (
	"context"
	"errors"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/body"
	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/backend/service/failure"
)

// stepNamed is the next step of all scans whose queries name their resources:
// one call of the store. Scans that name the same resource read it once.
func (r *Reader) stepNamed(ctx context.Context, scans []*scan, named []int, errs []error) {
	spent := budget.From(ctx)
	keys, bare := r.ask(scans, named, min(spent.Left(budget.Rows), backend.MaxKeys))
	var got []*backend.Resource
	if len(keys) > 0 {
		get := r.store.Get
		if bare {
			get = func(ctx context.Context, keys ...backend.Key) ([]*backend.Resource, error) {
				return backend.GetBare(ctx, r.store, keys...)
			}
		}
		var err error
		expected := r.sizes.estimate(scans[named[0]].query.kind, len(keys))
		if err := spent.Expect(ctx, expected); err != nil {
			fail(errs, scans, held(err))
			return
		}
		spent.Leave()
		got, err = get(ctx, keys...)
		spent.Return(ctx)
		spent.Unexpect(expected)
		switch {
		case len(keys) == 1 && errors.Is(err, backend.ErrUnreadable):
			got = []*backend.Resource{nil}
		case err != nil:
			for _, i := range named {
				errs[i] = failure.Of(err, backend.Key{Kind: scans[i].query.kind.Name})
			}
			return
		}
	}
	looks := 0
	for _, i := range named {
		answered := len(scans[i].answered(got))
		scans[i].looked += answered
		looks += answered
	}
	err := spent.Spend(budget.Rows, looks)
	if err == nil {
		err = hold(ctx, got)
	}
	if err != nil {
		fail(errs, scans, held(err))
		return
	}
	bodies := make([]*body.Body, len(got)) // those that were read, by plain scans
	for _, i := range named {
		if sc := scans[i]; sc.plain() {
			sc.takePlain(r, got, bodies)
		} else {
			sc.takeNamed(r, got)
		}
	}
}

// ask notes in each scan where its keys stand among those that the step asks
// for, at most as many as are given, and says whether resources without rows will do.
func (r *Reader) ask(scans []*scan, named []int, most int) (keys []backend.Key, bare bool) {
	place := make(map[backend.Key]int, len(named))
	bare = true
	for _, i := range named {
		sc := scans[i]
		bare = bare && sc.plain()
		sc.places = sc.places[:0]
		for _, key := range sc.keys {
			at, known := place[key]
			if !known {
				if len(keys) == most {
					break // with all that follow: they keep their order
				}
				at = len(keys)
				place[key], keys = at, append(keys, key)
			}
			sc.places = append(sc.places, at)
		}
	}
	return keys, bare
}

// answered are the places of the keys that the store has answered, which are the
// first ones, at least one of a call; the others are asked for again.
func (sc *scan) answered(got []*backend.Resource) []int {
	for n, at := range sc.places {
		if at >= len(got) {
			return sc.places[:n]
		}
	}
	return sc.places
}

// takePlain takes what a step brought, with the bodies that others have read.
func (sc *scan) takePlain(r *Reader, got []*backend.Resource, bodies []*body.Body) {
	places := sc.answered(got)
	if sc.found == nil {
		sc.found = make([]Edge, 0, min(len(places), sc.size))
	}
	for _, at := range places {
		stored := got[at]
		if stored == nil {
			continue
		}
		if bodies[at] == nil {
			var err error
			if bodies[at], err = sc.arena.Read(sc.query.kind.Body, stored); err != nil {
				r.unreadable.Note(stored, err)
				got[at] = nil // for all who name it
				continue
			}
		}
		if sc.done = sc.keep(Edge{Resource: Resource{Stored: stored, Body: bodies[at]}}); sc.done {
			return
		}
	}
	sc.keys = sc.keys[len(places):]
	sc.done = len(sc.keys) == 0
}

// takeNamed takes what a step brought.
func (sc *scan) takeNamed(r *Reader, got []*backend.Resource) {
	places := sc.answered(got)
	for _, at := range places {
		if sc.done = got[at] != nil && sc.judge(r, got[at]); sc.done {
			return
		}
	}
	if sc.keys = sc.keys[len(places):]; len(sc.keys) == 0 {
		sc.end(r)
	}
}
