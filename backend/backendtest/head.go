package backendtest

import (
	"errors"
	"fmt"
	"sync"

	"github.com/sluicegw/sluice/backend"
)

func headStatements() []statement {
	return []statement{
		{"the head has all that was acknowledged before it was asked for, through any handle", func(f *fixture) {
			f.start()
			other := f.in.Handle(f.Store)
			defer func() { _ = other.Close() }()
			var wg sync.WaitGroup
			for w := range 4 {
				wg.Go(func() {
					for i := range 25 {
						res, err := f.applyAs(other, w, i, put(key(fmt.Sprint("n", w, "-", i)), "1"))
						if err != nil {
							f.Error(err)
							return
						}
						head, err := backend.HeadOf(f.ctx(), f.Store)
						if err != nil {
							f.Error(err)
							return
						}
						if at := f.own(head); at.Compare(res.Revisions[0]) < 0 {
							f.Errorf("the head is %s after %s was acknowledged", at, res.Revisions[0])
						}
					}
				})
			}
			wg.Wait()
			head, err := backend.HeadOf(f.ctx(), f.Store)
			if err != nil || !head.Equal(f.position()) {
				f.Errorf("the head of a store at rest is %v, %v and its position %v", head, err, f.position())
			}
		}},
		{"a closed store has no head", func(f *fixture) {
			f.start()
			other := f.in.Handle(f.Store)
			if err := other.Close(); err != nil {
				f.Fatal(err)
			}
			if _, err := backend.HeadOf(f.ctx(), other); !errors.Is(err, backend.ErrClosed) {
				f.Errorf("its head is %v", err)
			}
		}},
	}
}
