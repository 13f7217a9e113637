package reconcile

import (
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// LogInterval is how long a message that was logged is not logged again.
const LogInterval = 5 * time.Second

// LogOnce returns a logger that writes each message once in every [LogInterval], without regard to its
// fields, and drops the others.
func LogOnce(l *zap.Logger) *zap.Logger {
	return l.WithOptions(zap.WrapCore(func(core zapcore.Core) zapcore.Core {
		return zapcore.NewSamplerWithOptions(core, LogInterval, 1, 0)
	}))
}
