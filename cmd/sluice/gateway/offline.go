package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend/state"
	"github.com/sluicegw/sluice/cmd/sluice/config"
	"github.com/sluicegw/sluice/cmd/sluice/exit"
	"github.com/sluicegw/sluice/cmd/sluice/version"
)

// Offline is a store that a command opens directly, without a gateway.
type Offline struct {
	// At is the folder of an embedded store, or a URL of Redis.
	At string
	// Settings are the settings for Redis and its log.
	Settings config.Store
}

// StoreFile is the name of the embedded store's file in its folder.
const StoreFile = "sluice.db"

// embedded reports whether the store is an embedded store.
func (o Offline) embedded() bool { return !strings.Contains(o.At, "://") }

// openRedis opens a store on Redis. If there is none, it creates one.
func (o Offline) openRedis(ctx context.Context, log *zap.Logger) (gatewayStore, error) {
	store, _, err := o.settings().openRedis(ctx, log)
	return store, err
}

// settings returns the settings of a store on Redis.
func (o Offline) settings() storeSettings {
	out := storeSettings{Store: o.Settings}
	out.URL = o.At
	return out
}

// openReader opens a store for reading.
func (o Offline) openReader(ctx context.Context, log *zap.Logger) (Reader, error) {
	return OpenReader(ctx, o.At, o.Settings, log)
}

// nothing returns the error for a store that was never served by a gateway. Probably the user meant another one.
func (o Offline) nothing() error {
	where := o.At
	if !o.embedded() {
		where = fmt.Sprintf("%s, with keys that begin with %q (redis-prefix)", o.At, o.Settings.Prefix)
	}
	return exit.Usage(fmt.Errorf("%s: nothing is stored there", where))
}

// OfflineExport is an export of a store without a gateway.
type OfflineExport struct {
	Store   Offline
	Keys    KeySource
	Secrets state.Secrecy
}

// Run writes the export.
func (e OfflineExport) Run(ctx context.Context, w io.Writer, log *zap.Logger) (err error) {
	keys, err := e.Keys.read(ctx)
	if err != nil {
		return err
	}
	store, err := e.Store.openReader(ctx, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	end, err := state.Export(ctx, state.ExportConfig{Store: store, Keys: keys.ring, Secrets: e.Secrets, Release: version.Text()}, w)
	if err == nil && end.Records == 0 {
		return e.Store.nothing()
	}
	if errors.Is(err, state.ErrNoKeys) {
		return exit.Usage(fmt.Errorf("there are secrets, and no key that encrypts them: give %s, leave them out with --no-secrets, or take them in plain form with --plain-secrets", keysSetting))
	}
	return err
}
