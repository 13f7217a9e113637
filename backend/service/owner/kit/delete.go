package kit

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/sluicegw/sluice/backend/service/owner"
)

func deletePromises() []promise {
	return []promise{
		{
			name: "delete", says: "a delete is DONE and nothing is there, or WAITS and it says so until it is gone",
			needs: []capability{writes}, test: deletes,
		},
		{
			name: "delete-absent", says: "a delete of what is not there is ABSENT",
			needs: []capability{writes}, test: deleteAbsent,
		},
		{
			name: "delete-if-tag", says: "a delete with the tag of an older version is CONFLICT and deletes nothing",
			needs: []capability{writes, conditional}, test: deleteIfTag,
		},
		{
			name: "delete-once", says: "of deletes of one resource at once, exactly one is DONE",
			needs: []capability{writes}, test: deleteOnce,
		},
	}
}

// remove deletes a resource and waits until it does not exist any more.
func (t *trial) remove(ctx context.Context, r *owner.Resource) error {
	a, err := t.Service.Delete(ctx, owner.Delete{Key: r.Key})
	if err := outcome(a, err, owner.Done, owner.Waits); err != nil {
		return fmt.Errorf("a delete: %w", err)
	}
	if a.Outcome == owner.Done {
		return nil
	}
	return t.eventually(ctx, func() error {
		now, err := t.get(ctx, r.Key)
		if err == nil && now != nil {
			err = skip(fmt.Sprintf("the delete of %s WAITS longer than %v", r.Key, t.Patience))
		}
		return err
	})
}

func deletes(ctx context.Context, t *trial) error {
	r, err := t.fresh(ctx)
	if err != nil {
		return err
	}
	a, err := t.Service.Delete(ctx, owner.Delete{Key: r.Key})
	if err := outcome(a, err, owner.Done, owner.Waits); err != nil {
		return err
	}
	if a.Outcome == owner.Waits {
		now, err := t.get(ctx, r.Key)
		if err != nil {
			return err
		}
		if now != nil && now.DeletionRequestedAt.IsZero() {
			return errors.New("a delete WAITS, and the resource does not say that it is being deleted")
		}
		if err := t.remove(ctx, r); err != nil {
			return err
		}
	}
	now, err := t.get(ctx, r.Key)
	if err != nil {
		return err
	}
	if now != nil {
		return fmt.Errorf("Get shows %s after its delete was DONE", r.Key)
	}
	return t.eventually(ctx, func() error {
		all, err := t.list(ctx, fullPage)
		if err != nil {
			return err
		}
		for i := range all.Resources {
			if all.Resources[i].Key == r.Key {
				return fmt.Errorf("List shows %s after its delete was DONE", r.Key)
			}
		}
		return nil
	})
}

func deleteAbsent(ctx context.Context, t *trial) error {
	a, err := t.Service.Delete(ctx, owner.Delete{Key: t.key()})
	return outcome(a, err, owner.Absent)
}

func deleteIfTag(ctx context.Context, t *trial) error {
	old, err := t.fresh(ctx)
	if err != nil {
		return err
	}
	r, err := t.update(ctx, old, 2)
	if err != nil {
		return err
	}
	a, err := t.Service.Delete(ctx, owner.Delete{Key: r.Key, IfTag: old.Tag})
	if err := outcome(a, err, owner.Conflict); err != nil {
		return err
	}
	if err := shows(a, r); err != nil {
		return err
	}
	if err := t.stays(ctx, r, "a delete that was refused"); err != nil {
		return err
	}
	a, err = t.Service.Delete(ctx, owner.Delete{Key: r.Key, IfTag: r.Tag})
	return outcome(a, err, owner.Done, owner.Waits)
}

func deleteOnce(ctx context.Context, t *trial) error {
	for range rounds {
		r, err := t.fresh(ctx)
		if err != nil {
			return err
		}
		var gone, waits atomic.Int32
		err = parallel(writers, func(int) error {
			a, err := t.Service.Delete(ctx, owner.Delete{Key: r.Key})
			switch a.Outcome {
			case owner.Done:
				gone.Add(1)
			case owner.Waits:
				waits.Add(1)
			}
			return outcome(a, err, owner.Done, owner.Waits, owner.Absent)
		})
		if err != nil {
			return err
		}
		if gone.Load() > 1 || gone.Load() == 0 && waits.Load() == 0 {
			return fmt.Errorf("%d of %d deletes at once are DONE", gone.Load(), writers)
		}
	}
	return nil
}
