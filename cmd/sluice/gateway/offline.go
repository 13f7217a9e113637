package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend/state"
	"github.com/sluicegw/sluice/cmd/sluice/config"
	"github.com/sluicegw/sluice/cmd/sluice/exit"
	"github.com/sluicegw/sluice/cmd/sluice/version"
)

// Offline is a store that a command opens by itself, without a gateway.
type Offline struct {
	// At is the folder of an embedded store, or the URL of Redis.
	At string
	// Settings of Redis, and of the log.
	Settings config.Store
}

// storeFile is the name of the file of an embedded store in its folder.
const storeFile = "sluice.db"

// redisPatience says that a command does not wait for a Redis that does not answer.
const redisPatience = 0

// embedded reports whether the store is one.
func (o Offline) embedded() bool { return !strings.Contains(o.At, "://") }

// open opens a store that is there.
func (o Offline) open(ctx context.Context, log *zap.Logger) (gatewayStore, error) {
	settings := storeSettings{Store: o.Settings, patience: redisPatience}
	if o.embedded() {
		if _, err := os.Stat(filepath.Join(o.At, storeFile)); err != nil {
			return nil, exit.Usage(fmt.Errorf("%s: there is no store: a folder that has a file %s is accepted, or the URL of a Redis", o.At, storeFile))
		}
		settings.Data = o.At
	} else {
		settings.URL = o.At
	}
	store, _, err := settings.open(ctx, log)
	return store, err
}

// nothing returns the error of a store that no gateway has ever served: it is probably another one that was meant.
func (o Offline) nothing() error {
	where := o.At
	if !o.embedded() {
		where = fmt.Sprintf("%s, with keys that begin with %q (redis-prefix)", o.At, o.Settings.Prefix)
	}
	return exit.Usage(fmt.Errorf("%s: nothing is stored there", where))
}

// OfflineExport is an export of a store by a command.
type OfflineExport struct {
	Store    Offline
	KeysFile string
	Secrets  state.Secrecy
}

// Run writes the export.
func (e OfflineExport) Run(ctx context.Context, w io.Writer, log *zap.Logger) (err error) {
	keys, err := encryptionKeys(ctx, e.KeysFile)
	if err != nil {
		return exit.Usage(err)
	}
	store, err := e.Store.open(ctx, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if err := state.Whole(ctx, store); err != nil {
		return errors.New(exit.OneLine(err))
	}
	end, err := state.Export(ctx, state.ExportConfig{Store: store, Keys: keys, Secrets: e.Secrets, Release: version.Text()}, w)
	if err == nil && end.Records == 0 {
		return e.Store.nothing()
	}
	if errors.Is(err, state.ErrNoKeys) {
		return exit.Usage(fmt.Errorf("there are secrets, and no key that encrypts them: give %s, leave them out with --no-secrets, or take them in plain form with --plain-secrets", keysSetting))
	}
	return err
}
