package service

import (
	"context"
	"errors"

	"github.com/sluicegw/sluice/backend"
)

// stepNamed is the next step of all scans whose queries name their resources:
// one call of the store. Scans that name the same resource read it once.
func (s *Service) stepNamed(ctx context.Context, scans []*scan, named []int, errs []error) {
	var keys []backend.Key
	place := map[backend.Key]int{}
	for _, i := range named {
		for _, key := range scans[i].keys {
			if _, known := place[key]; !known && len(keys) < backend.MaxKeys {
				place[key] = len(keys)
				keys = append(keys, key)
			}
		}
	}
	var got []*backend.Resource
	if len(keys) > 0 {
		var err error
		got, err = s.cfg.Store.Get(ctx, keys...)
		switch {
		case len(keys) == 1 && errors.Is(err, backend.ErrUnreadable):
			got = []*backend.Resource{nil}
		case err != nil:
			for _, i := range named {
				errs[i] = translate(err, backend.Key{Kind: scans[i].query.kind.Name})
			}
			return
		}
	}
	objects := map[*backend.Resource]backend.Object{}
	for _, i := range named {
		sc := scans[i]
		var page backend.Page
		page.Resources, sc.keys = answered(sc.keys, place, got)
		page.More = len(sc.keys) > 0
		sc.objects = objects
		errs[i] = sc.take(s, page)
		sc.objects = nil
	}
}

// answered are the resources of the first keys, and the keys that are still to be read.
func answered(keys []backend.Key, place map[backend.Key]int, got []*backend.Resource) (found []*backend.Resource, rest []backend.Key) {
	for i, key := range keys {
		at, asked := place[key]
		if !asked || at >= len(got) {
			return found, keys[i:]
		}
		if got[at] != nil {
			found = append(found, got[at])
		}
	}
	return found, nil
}
