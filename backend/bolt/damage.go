package bolt

import (
	"errors"
	"fmt"
	"runtime/debug"

	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend"
)

// guarded calls f. bbolt checks no sums: on a damaged page it panics, or reads memory that is not mapped. Both become
// [backend.ErrDamaged].
func guarded(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = &damage{cause: fmt.Sprint(r), stack: debug.Stack()}
		}
	}()
	return f()
}

// damage is a panic on a damaged page.
type damage struct {
	cause string
	stack []byte
}

// Error implements error.
func (d *damage) Error() string { return "the file is damaged: " + d.cause }

// Is makes the damage the error of the contract.
func (d *damage) Is(target error) bool { return target == backend.ErrDamaged }

// noteDamage logs the first damage that a call meets. The store is not ready from then on.
func (c *core) noteDamage(err error) {
	var d *damage
	if errors.As(err, &d) && c.damaged.CompareAndSwap(nil, d) {
		c.cfg.Logger.Error(
			"the store file is damaged: restore a copy", zap.String("file", c.cfg.Path), zap.String("cause", d.cause),
			zap.ByteString("stack", d.stack),
		)
	}
}

// stopWriting makes the store take no changes any more: a transaction met damage, and bbolt may still hold its lock.
func (c *core) stopWriting(err error) {
	c.noteDamage(err)
	c.unwritable.Store(&err)
}

// writable returns why the store takes no changes any more, nil if it does.
func (c *core) writable() error {
	if err := c.unwritable.Load(); err != nil {
		return *err
	}
	return nil
}
