package kit

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/owner"
)

// fullPage is the page size for tests to which the page size does not matter.
const fullPage = 500

func readPromises() []promise {
	return []promise{
		{name: "get-absent", says: "Get shows nothing under a key that has no resource", test: getAbsent},
		{
			name: "get-many", says: "Get answers 100 keys in their order, also absent ones and one that is there twice",
			needs: []capability{writes}, test: getMany,
		},
		{name: "list-agrees", says: "List and Get show the same once nothing changes any more", test: listAgrees},
		{
			name: "list-pages", says: "List shows each resource once, in pages of at most the size that was asked for",
			needs: []capability{writes}, test: listPages,
		},
		{
			name: "list-under-writes", says: "List shows what stays once, whatever is created and deleted between its pages",
			needs: []capability{writes}, test: listUnderWrites,
		},
		{
			name: "list-token", says: "an unknown page token is refused, or answered by pages that end",
			test: listToken,
		},
		{name: "unreadable", says: "what List names as unreadable has a key, and Get says the same", test: unreadable},
	}
}

func getAbsent(ctx context.Context, t *trial) error {
	r, err := t.get(ctx, t.key())
	if err == nil && r != nil {
		err = fmt.Errorf("Get shows %s, which nobody has created", r.Key)
	}
	return err
}

func getMany(ctx context.Context, t *trial) error {
	const there = 7 // one of so many keys is there
	keys := make([]backend.Key, owner.MaxKeys)
	wanted := map[int]*owner.Resource{}
	for i := range keys {
		keys[i] = t.key()
		if i%there != 0 {
			continue
		}
		r, err := t.create(ctx, keys[i])
		if err != nil {
			return err
		}
		wanted[i] = r
	}
	last := len(keys) - 1
	keys[last] = keys[0]
	wanted[last] = wanted[0]
	got, err := t.Service.Get(ctx, keys)
	if err != nil {
		return fmt.Errorf("Get of %d keys: %w", len(keys), err)
	}
	if len(got) != len(keys) {
		return fmt.Errorf("Get of %d keys answered %d", len(keys), len(got))
	}
	for i, g := range got {
		want := wanted[i]
		switch {
		case want == nil && (g.Resource != nil || g.Unreadable != ""):
			return fmt.Errorf("Get answered something for key %d, which is absent", i)
		case want != nil && g.Resource == nil:
			return fmt.Errorf("Get answered nothing for key %d, which is there", i)
		case want != nil:
			if what := difference(want, g.Resource); what != "" {
				return fmt.Errorf("Get answered another resource for key %d: %s", i, what)
			}
		}
	}
	return nil
}

func listAgrees(ctx context.Context, t *trial) error {
	if t.kind.Writes {
		if _, err := t.fresh(ctx); err != nil {
			return err
		}
	}
	return t.eventually(ctx, func() error {
		page, err := t.Service.List(ctx, t.kind.Name, "", owner.MaxKeys)
		if err != nil {
			return fmt.Errorf("List: %w", err)
		}
		listed := page.Resources[:min(len(page.Resources), owner.MaxKeys)]
		if len(listed) == 0 {
			return skip("the kind has no resources")
		}
		var keys []backend.Key
		for _, r := range listed {
			keys = append(keys, r.Key)
		}
		got, err := t.Service.Get(ctx, keys)
		if err != nil {
			return fmt.Errorf("Get: %w", err)
		}
		if len(got) != len(keys) {
			return fmt.Errorf("Get of %d keys answered %d", len(keys), len(got))
		}
		for i, g := range got {
			if g.Resource == nil {
				return fmt.Errorf("List shows %s, and Get does not", keys[i])
			}
			if what := difference(&listed[i], g.Resource); what != "" {
				return fmt.Errorf("List and Get show %s differently: %s", keys[i], what)
			}
		}
		return nil
	})
}

// pageSize returns a page size for which the list has several pages, but not too many.
func (t *trial) pageSize(ctx context.Context) (int, error) {
	const pages = 20
	all, err := t.list(ctx, fullPage)
	return max(2, (len(all.Resources)+len(all.Unreadable))/pages), err
}

// listedOnce returns an error unless a list has each key exactly once.
func listedOnce(page owner.Page, keys []backend.Key) error {
	times := map[backend.Key]int{}
	for _, r := range page.Resources {
		times[r.Key]++
	}
	for _, u := range page.Unreadable {
		times[u.Key]++
	}
	for _, key := range keys {
		if times[key] != 1 {
			return fmt.Errorf("List shows %s %d times", key, times[key])
		}
	}
	return nil
}

// series creates n resources whose names have the same prefix.
func (t *trial) series(ctx context.Context, name string, n int) ([]backend.Key, error) {
	var keys []backend.Key
	for i := range n {
		r, err := t.create(ctx, t.named(t.prefix+name+strconv.Itoa(i)))
		if err != nil {
			return nil, err
		}
		keys = append(keys, r.Key)
	}
	return keys, nil
}

func listPages(ctx context.Context, t *trial) error {
	keys, err := t.series(ctx, "p", 9)
	if err != nil {
		return err
	}
	size, err := t.pageSize(ctx)
	if err != nil {
		return err
	}
	return t.eventually(ctx, func() error {
		page, err := t.list(ctx, size)
		if err != nil {
			return err
		}
		return listedOnce(page, keys)
	})
}

// listUnderWrites deletes resources of early pages while later pages are read. Then it creates resources that belong to
// early pages. It finds services whose page token is a number of resources. Such services leave out resources, or
// return them twice.
func listUnderWrites(ctx context.Context, t *trial) error {
	const early = 12
	before, err := t.series(ctx, "a", early)
	if err != nil {
		return err
	}
	keys, err := t.series(ctx, "m", 9)
	if err != nil {
		return err
	}
	err = t.eventually(ctx, func() error {
		page, err := t.list(ctx, fullPage)
		if err != nil {
			return err
		}
		return listedOnce(page, append(keys, before...))
	})
	if err != nil {
		return err
	}
	err = t.listBetween(ctx, keys, func(i int) error {
		if i >= len(before) {
			return nil
		}
		a, err := t.Service.Delete(ctx, owner.Delete{Key: before[i]})
		return outcome(a, err, owner.Done, owner.Waits)
	})
	if err != nil {
		return fmt.Errorf("while others are deleted: %w", err)
	}
	err = t.listBetween(ctx, keys, func(i int) error {
		if i >= early {
			return nil
		}
		_, err := t.create(ctx, t.named(t.prefix+"b"+strconv.Itoa(i)))
		return err // in the order of names it is before all that stay
	})
	if err != nil {
		return fmt.Errorf("while others are created: %w", err)
	}
	return nil
}

// listBetween reads the list and calls do between its pages. It returns an error unless each key occurs exactly once.
func (t *trial) listBetween(ctx context.Context, keys []backend.Key, do func(i int) error) error {
	size, err := t.pageSize(ctx)
	if err != nil {
		return err
	}
	var all owner.Page
	token := ""
	for i := 0; ; i++ {
		page, err := t.Service.List(ctx, t.kind.Name, token, size)
		if err != nil {
			return fmt.Errorf("List: %w", err)
		}
		all.Resources = append(all.Resources, page.Resources...)
		all.Unreadable = append(all.Unreadable, page.Unreadable...)
		if page.Next == "" {
			return listedOnce(all, keys)
		}
		token = page.Next
		if err := do(i); err != nil {
			return err
		}
	}
}

func listToken(ctx context.Context, t *trial) error {
	all, err := t.list(ctx, fullPage)
	if err != nil {
		return err
	}
	most := 2*(len(all.Resources)+len(all.Unreadable)) + fullPage
	for _, token := range []string{"sluice-test", "\uffff", "-1", "999999999"} {
		shown := 0
		for next := token; next != ""; {
			page, err := t.Service.List(ctx, t.kind.Name, next, fullPage)
			if err != nil {
				break // it is refused
			}
			shown += 1 + len(page.Resources) + len(page.Unreadable)
			next = page.Next
			if shown > most {
				return fmt.Errorf("the pages after the unknown token %q do not end", token)
			}
		}
	}
	return nil
}

func unreadable(ctx context.Context, t *trial) error {
	all, err := t.list(ctx, fullPage)
	if err != nil {
		return err
	}
	if len(all.Unreadable) == 0 {
		return skip("no resource is unreadable")
	}
	for _, u := range all.Unreadable[:min(len(all.Unreadable), owner.MaxKeys)] {
		if u.Kind != t.kind.Name || u.Name == "" {
			return fmt.Errorf("List has an unreadable resource without a key: %q", u.Message)
		}
		got, err := t.Service.Get(ctx, []backend.Key{u.Key})
		if err != nil {
			return fmt.Errorf("Get of %s, which is unreadable: %w", u.Key, err)
		}
		if len(got) != 1 {
			return errors.New("Get of one key has not one answer")
		}
		if got[0].Resource == nil && got[0].Unreadable == "" {
			return fmt.Errorf("List says that %s is unreadable, and Get that there is none", u.Key)
		}
	}
	return nil
}
