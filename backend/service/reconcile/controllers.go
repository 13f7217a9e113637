package reconcile

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/internal/wait"
)

const (
	// controllersFormat is the version of the format of the record.
	controllersFormat = 1
	// controllersPause is the pause between two reads of the record.
	controllersPause = 2 * time.Second
)

// controllersKey returns the key of the internal record that lists the kinds that controllers own.
func controllersKey() backend.Key { return backend.Key{Kind: "_controllers", Name: "kinds"} }

// controllersRecord is the content of the record with the key controllersKey.
type controllersRecord struct {
	Format int      `json:"format"`
	Kinds  []string `json:"kinds"`
}

// controllers are the kinds that controllers own, as this gateway last read them from the store. The controller of such
// a kind reports whether its resources are ready.
type controllers struct {
	kinds atomic.Pointer[map[string]bool] // nil until they were read

	mu sync.Mutex // held while kinds change
	// changes counts the changes of kinds. A record that was read is ignored if kinds has changed since the read began.
	changes uint64
}

// owns reports whether a controller owns a kind.
func (c *controllers) owns(kind string) bool {
	kinds := c.kinds.Load()
	return kinds != nil && (*kinds)[kind]
}

// known returns the sorted names of the kinds that were last read.
func (c *controllers) known() (out []string) {
	if kinds := c.kinds.Load(); kinds != nil {
		out = slices.Sorted(maps.Keys(*kinds))
	}
	return out
}

// set replaces the kinds. If they differ, it counts a change. The caller holds mu.
func (c *controllers) set(kinds []string) {
	if before := c.kinds.Load(); before != nil && len(*before) == len(kinds) &&
		!slices.ContainsFunc(kinds, func(kind string) bool { return !(*before)[kind] }) {
		return
	}
	set := make(map[string]bool, len(kinds))
	for _, kind := range kinds {
		set[kind] = true
	}
	c.changes++
	c.kinds.Store(&set)
}

// readControllers reads the record and calls set with its kinds, unless kinds has changed since the read began. current
// is the condition for replacing the record.
func (r *Reconciler) readControllers(
	ctx context.Context,
) (record controllersRecord, current backend.Condition, err error) {
	c := &r.controllers
	c.mu.Lock()
	since := c.changes
	c.mu.Unlock()
	record.Format = controllersFormat
	current, err = r.getRecord(ctx, controllersKey(), &record)
	if err == nil && record.Format != controllersFormat {
		err = fmt.Errorf(
			"record of controllers in format %d, %d wanted: %w: %w", record.Format, controllersFormat,
			backend.ErrFormat, backend.ErrUnreadable,
		)
	}
	if err != nil {
		return record, current, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.changes == since {
		c.set(record.Kinds)
	}
	return record, current, nil
}

// loadControllers reads the record, unless it was read before.
func (r *Reconciler) loadControllers(ctx context.Context) (err error) {
	if r.controllers.kinds.Load() == nil {
		_, _, err = r.readControllers(ctx)
	}
	return err
}

// followControllers reads the record repeatedly until ctx ends. It logs a damaged record once.
func (r *Reconciler) followControllers(ctx context.Context) {
	damaged := false
	for {
		_, _, err := r.readControllers(ctx)
		if ctx.Err() != nil || errors.Is(err, backend.ErrClosed) {
			return
		}
		before := damaged
		damaged = errors.Is(err, backend.ErrUnreadable)
		if err != nil && !(before && damaged) {
			r.log.Warn("the kinds that controllers own could not be read", zap.Error(err))
		}
		if !wait.For(ctx, controllersPause) {
			return
		}
	}
}

// Controlled reports whether a controller, not the gateway, sets the condition Available of a kind's resources.
func (r *Reconciler) Controlled(ctx context.Context, k *kind.Kind) (bool, error) {
	if err := r.loadControllers(ctx); err != nil {
		return false, err
	}
	return r.controllers.owns(k.Name), nil
}

// SetControlled hands the resources of a kind to a controller, or takes them back for the gateway. Other gateways of
// the same store apply this within seconds. A damaged record is replaced by a record of the kinds that this gateway
// last read.
func (r *Reconciler) SetControlled(ctx context.Context, k *kind.Kind, controlled bool) error {
	c := &r.controllers
	var record controllersRecord
	changed := false
	err := r.editRecord(ctx, controllersKey(), func() (any, backend.Condition, error) {
		read, current, err := r.readControllers(ctx)
		record, changed = read, true
		switch {
		case errors.Is(err, backend.ErrUnreadable) && !errors.Is(err, backend.ErrFormat):
			record = controllersRecord{Format: controllersFormat, Kinds: c.known()}
		case err != nil:
			return nil, current, err
		case slices.Contains(record.Kinds, k.Name) == controlled:
			changed = false
			return nil, current, nil
		}
		record.Kinds = slices.DeleteFunc(record.Kinds, func(o string) bool { return o == k.Name })
		if controlled {
			record.Kinds = append(record.Kinds, k.Name)
			slices.Sort(record.Kinds)
		}
		return record, current, nil
	})
	if err == nil && changed {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.changes++ // even if the kinds stay the same: a read that began before must be ignored
		c.set(record.Kinds)
	}
	return err
}
