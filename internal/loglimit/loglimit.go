// Package loglimit bounds how often what is tried again and again says that it failed.
package loglimit

import (
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// Interval is how long a message that was logged is not logged again.
const Interval = 5 * time.Second

// Once returns a logger that writes each message once in every [Interval], whatever its
// fields are, and drops the others.
func Once(l *zap.Logger) *zap.Logger {
	return l.WithOptions(zap.WrapCore(func(core zapcore.Core) zapcore.Core {
		return zapcore.NewSamplerWithOptions(core, Interval, 1, 0)
	}))
}
