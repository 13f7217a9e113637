package gateway

import (
	"context"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"go.uber.org/zap"
)

// serviceManager reports the state of the gateway to systemd, see sd_notify(3). Without systemd it does nothing.
type serviceManager struct {
	log *zap.Logger
	// alive returns when the parts of the gateway that every request needs have responded.
	alive func()
}

// Run reports that the gateway serves, with its address. When ctx ends, it reports that the gateway stops.
func (m serviceManager) Run(ctx context.Context, address string) error {
	m.notify(daemon.SdNotifyReady + "\nSTATUS=serves " + address)
	<-ctx.Done()
	m.notify(daemon.SdNotifyStopping + "\nSTATUS=stops; running requests are answered")
	return nil
}

// Watch reports to systemd that the gateway is alive, twice in each WatchdogSec of the unit, until ctx ends.
func (m serviceManager) Watch(ctx context.Context) error {
	interval, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		m.log.Warn("systemd's watchdog is not told that the gateway is alive", zap.Error(err))
	}
	if interval <= 0 {
		<-ctx.Done()
		return nil
	}
	ticker := time.NewTicker(max(interval/2, time.Millisecond))
	defer ticker.Stop()
	for {
		m.alive()
		m.notify(daemon.SdNotifyWatchdog)
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

func (m serviceManager) notify(state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		m.log.Warn("systemd cannot be told how the gateway is", zap.Error(err))
	}
}
