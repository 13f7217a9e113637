package bolt

import (
	"errors"
	"fmt"
	"runtime/debug"

	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend"
)

// guarded calls f. bbolt has no checksums: on a damaged page it may panic, or read memory that is not mapped. Both
// become [backend.ErrDamaged].
func guarded(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = &damage{cause: fmt.Sprint(r), stack: debug.Stack()}
		}
	}()
	return f()
}

// damage is the error for a panic that a damaged page has caused.
type damage struct {
	cause string
	stack []byte
}

// Error implements error.
func (d *damage) Error() string { return "the file is damaged: " + d.cause }

// Is reports whether target is [backend.ErrDamaged].
func (d *damage) Is(target error) bool { return target == backend.ErrDamaged }

// noteDamage logs the first damage that a call has found. From then on, the store is not ready.
func (c *core) noteDamage(err error) {
	var d *damage
	if errors.As(err, &d) && c.damaged.CompareAndSwap(nil, d) {
		c.cfg.Logger.Error(
			"the store file is damaged: restore a copy", zap.String("file", c.cfg.Path), zap.String("cause", d.cause),
			zap.ByteString("stack", d.stack),
		)
	}
}

// stopWriting makes the store refuse all changes after a transaction has found damage, because bbolt may still
// hold its lock.
func (c *core) stopWriting(err error) {
	c.noteDamage(err)
	c.unwritable.Store(&err)
}

// writable returns the reason why the store accepts no changes; nil if it accepts them.
func (c *core) writable() error {
	if err := c.unwritable.Load(); err != nil {
		return *err
	}
	return nil
}
