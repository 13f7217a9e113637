package reconcile_test

import (
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/sluicegw/sluice/backend/service/reconcile"
)

func TestReconcile_EachMessageIsWrittenOnceInAnInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zap.InfoLevel)
		l := reconcile.LogOnce(zap.New(core))
		for range 3 {
			for shard := range 16 {
				l.Warn("a shard failed", zap.Int("shard", shard))
				l.Warn("another thing failed")
			}
			time.Sleep(reconcile.LogInterval + time.Millisecond)
		}
		for _, message := range []string{"a shard failed", "another thing failed"} {
			if n := logs.FilterMessage(message).Len(); n != 3 {
				t.Errorf("%q was written %d times in three intervals", message, n)
			}
		}
	})
}
