package redis

import (
	"context"
	"fmt"

	goredis "github.com/redis/go-redis/v9"
	"go.uber.org/zap"
)

// clientLogger receives what the client library would write to standard error.
type clientLogger struct{ log *zap.Logger }

// Printf is part of the library's interface of a logger.
func (l clientLogger) Printf(_ context.Context, format string, args ...any) {
	l.log.Debug(fmt.Sprintf(format, args...))
}

// SetClientLogger makes the client library log to l, at debug level, in the
// whole process. It has one logger for all its clients.
func SetClientLogger(l *zap.Logger) { goredis.SetLogger(clientLogger{l.Named("redis")}) }
