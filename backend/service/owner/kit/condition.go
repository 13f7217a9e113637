package kit

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"

	"github.com/sluicegw/sluice/backend/service/owner"
)

func conditionPromises() []promise {
	return []promise{
		{
			name: "if-absent", says: "a create of what is there is EXISTS, shows it and changes nothing",
			needs: []capability{writes}, test: ifAbsent,
		},
		{
			name: "if-absent-once", says: "of creates of one name at once, exactly one is DONE",
			needs: []capability{writes}, test: ifAbsentOnce,
		},
		{
			name: "write-absent", says: "an update of what is not there is ABSENT and creates nothing",
			needs: []capability{writes, conditional}, test: writeAbsent,
		},
		{
			name: "if-tag", says: "a write with the tag of an older version is CONFLICT, shows the present one and changes nothing",
			needs: []capability{writes, conditional}, test: ifTag,
		},
		{
			name: "if-tag-once", says: "of writes with one tag at once, exactly one is DONE",
			needs: []capability{writes, conditional}, test: ifTagOnce,
		},
		{
			name: "if-uid", says: "a write and a delete with the uid of another resource are CONFLICT and change nothing",
			needs: []capability{writes}, test: ifUID,
		},
	}
}

// shows returns an error unless the answer has the resource in its current state.
func shows(a owner.Answer, is *owner.Resource) error {
	if a.Resource == nil {
		return fmt.Errorf("the answer %s does not show the resource", a.Outcome)
	}
	if what := difference(is, a.Resource); what != "" {
		return fmt.Errorf("the answer %s does not show the resource as it is: %s", a.Outcome, what)
	}
	return nil
}

func ifAbsent(ctx context.Context, t *trial) error {
	r, err := t.fresh(ctx)
	if err != nil {
		return err
	}
	a, err := t.Service.Write(ctx, owner.Write{Resource: t.desired(r.Key, 2), IfAbsent: true})
	if err := outcome(a, err, owner.Exists); err != nil {
		return err
	}
	if err := shows(a, r); err != nil {
		return err
	}
	return t.stays(ctx, r, "a create that was refused")
}

// onlyOne sends writes at the same time. It returns an error unless exactly one of them has the outcome DONE, all
// others have the outcome other, and Get returns the result of the successful one.
func (t *trial) onlyOne(ctx context.Context, other owner.Outcome, write func(i int) owner.Write) error {
	var winners atomic.Int32
	var winner atomic.Pointer[owner.Resource]
	err := parallel(writers, func(i int) error {
		a, err := t.Service.Write(ctx, write(i))
		if err := outcome(a, err, owner.Done, other); err != nil {
			return err
		}
		if a.Outcome == owner.Done {
			winners.Add(1)
			winner.Store(a.Resource)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if n := winners.Load(); n != 1 {
		return fmt.Errorf("%d of %d writes at once are DONE", n, writers)
	}
	if winner.Load() == nil {
		return errors.New("the answer DONE shows no resource")
	}
	return t.stays(ctx, winner.Load(), "the write that was DONE")
}

func ifAbsentOnce(ctx context.Context, t *trial) error {
	for range rounds {
		key := t.key()
		err := t.onlyOne(ctx, owner.Exists, func(i int) owner.Write {
			return owner.Write{Resource: t.desired(key, 1+i), IfAbsent: true}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func ifTagOnce(ctx context.Context, t *trial) error {
	r, err := t.fresh(ctx)
	if err != nil {
		return err
	}
	for round := range rounds {
		err := t.onlyOne(ctx, owner.Conflict, func(i int) owner.Write {
			return t.replacing(r, 2+round*writers+i)
		})
		if err != nil {
			return err
		}
		r, err = t.mustGet(ctx, r.Key)
		if err != nil {
			return err
		}
	}
	return nil
}

func writeAbsent(ctx context.Context, t *trial) error {
	r, err := t.fresh(ctx)
	if err != nil {
		return err
	}
	key := t.key()
	a, err := t.Service.Write(ctx, owner.Write{Resource: t.desired(key, 1), IfTag: r.Tag})
	if err := outcome(a, err, owner.Absent); err != nil {
		return err
	}
	now, err := t.get(ctx, key)
	if err == nil && now != nil {
		err = fmt.Errorf("%s is there after an update of it, though it was absent", key)
	}
	return err
}

func ifTag(ctx context.Context, t *trial) error {
	old, err := t.fresh(ctx)
	if err != nil {
		return err
	}
	r, err := t.update(ctx, old, 2)
	if err != nil {
		return err
	}
	for _, tag := range []string{old.Tag, r.Tag + "x", "sluice-test"} {
		a, err := t.Service.Write(ctx, owner.Write{Resource: t.desired(r.Key, 3), IfTag: tag})
		if err := outcome(a, err, owner.Conflict); err != nil {
			return fmt.Errorf("a write with the tag %q where %q holds: %w", tag, r.Tag, err)
		}
		if err := shows(a, r); err != nil {
			return err
		}
	}
	return t.stays(ctx, r, "a write that was refused")
}

func ifUID(ctx context.Context, t *trial) error {
	r, err := t.fresh(ctx)
	if err != nil {
		return err
	}
	if r.UID == "" {
		return skip("the service has no uids")
	}
	w := t.replacing(r, 2)
	w.IfUID = r.UID + strconv.Itoa(0)
	a, err := t.Service.Write(ctx, w)
	if err := outcome(a, err, owner.Conflict); err != nil {
		return fmt.Errorf("a write: %w", err)
	}
	a, err = t.Service.Delete(ctx, owner.Delete{Key: r.Key, IfUID: w.IfUID})
	if err := outcome(a, err, owner.Conflict); err != nil {
		return fmt.Errorf("a delete: %w", err)
	}
	if err := t.stays(ctx, r, "a write and a delete with another uid"); err != nil {
		return err
	}
	w.IfUID = r.UID
	_, err = done(t.Service.Write(ctx, w))
	if err != nil {
		err = fmt.Errorf("a write with the uid that holds: %w", err)
	}
	return err
}
