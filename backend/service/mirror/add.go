package mirror

import (
	"context"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/dependency"
	"github.com/sluicegw/sluice/backend/service/owner"
)

// addition is a record to be added.
type addition struct {
	// at is the index of the key among the keys of the look. begin is a time before the store was found to have no
	// record.
	at     int
	begin  time.Time
	action backend.Action
}

// addAll adds records for resources that have none yet. It stores many records in one batch, which is faster than
// storing each. added reports which resources were added. The caller must pass the other resources to store. These are
// resources that have a record or refer to other resources. They are also all resources of a batch that was too small
// or has failed, for example because another gateway has added one of them.
func (l looker) addAll(ctx context.Context, records []record, got []owner.Got) (added []bool) {
	added = make([]bool, len(records))
	byNamespace := map[string][]addition{}
	size := map[string]int{}
	send := func(namespace string) {
		batch := byNamespace[namespace]
		delete(byNamespace, namespace)
		delete(size, namespace)
		if len(batch) < leastAdded || !l.add(ctx, batch) {
			return
		}
		for _, one := range batch {
			added[one.at] = true
		}
	}
	for i, rec := range records {
		action, ok := l.addition(ctx, rec, got[i])
		if !ok {
			continue
		}
		namespace := rec.key.Namespace
		byNamespace[namespace] = append(byNamespace[namespace], addition{i, rec.begin, action})
		size[namespace] += len(action.Put.Body)
		if len(byNamespace[namespace]) == maxAdded || size[namespace] > maxAddedBytes {
			send(namespace)
		}
	}
	for namespace := range byNamespace {
		send(namespace)
	}
	return added
}

// addition returns the action that adds the record of a resource. It returns false if store must handle the resource.
func (l looker) addition(ctx context.Context, rec record, got owner.Got) (backend.Action, bool) {
	r := got.Resource
	switch {
	case l.locked, rec.damaged, rec.stored != nil, r == nil, got.Unreadable != "":
		return backend.Action{}, false
	case r.Key != rec.key:
		return backend.Action{}, false
	}
	n, err := l.replacement(ctx, rec, r, l.edit, dependency.FromStore)
	if err != nil || len(n.relation.Refs) > 0 {
		return backend.Action{}, false
	}
	actions, err := l.actions(n)
	if err != nil || len(actions) != 1 {
		return backend.Action{}, false
	}
	return actions[0], true
}

// add sends a batch that adds records, and reports whether it succeeded. It sends nothing if a writer holds the lock of
// one of the keys. It also sends nothing if one of the records was deleted since it was found to be absent.
func (l looker) add(ctx context.Context, batch []addition) bool {
	actions := make([]backend.Action, len(batch))
	for i, one := range batch {
		key := one.action.Key
		if !l.cfg.Locks.TryLock(key) {
			return false
		}
		defer l.cfg.Locks.Unlock(key)
		if l.deleted.since(key, one.begin) {
			return false
		}
		actions[i] = one.action
	}
	_, err := l.sender.Apply(l.identity(ctx), actions...)
	return err == nil
}
