package gateway

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/bolt"
	"github.com/sluicegw/sluice/backend/keyring"
	"github.com/sluicegw/sluice/backend/redis"
	"github.com/sluicegw/sluice/backend/state"
	"github.com/sluicegw/sluice/cmd/sluice/config"
	"github.com/sluicegw/sluice/cmd/sluice/exit"
	"github.com/sluicegw/sluice/cmd/sluice/sdl"
	"github.com/sluicegw/sluice/internal/wait"
)

// filler fills a store from a file.
type filler struct {
	// file is the path of the file; empty for none.
	file string
	keys *keyring.Keyring
	log  *zap.Logger
	// open opens the file in the form of an export. Required if there is a file.
	open func() (io.ReadCloser, error)
	// checked is what an earlier check has found out about the file; nil if there was
	// none.
	checked *state.Checked
	// confirm is called when a new embedded store has been filled, before its file gets its final
	// name. If it returns an error, the file does not get the name. Default: no call.
	confirm func() error
	// progress is called with the number of stored lines and of all lines; nil for no calls.
	progress func(done, of int)
}

// openBootstrap returns the function that opens the file of a bootstrap. An export is opened as it
// is. Manifests are converted, at the first call, to the export of a store that has their
// resources.
func openBootstrap(ctx context.Context, path string, c sdl.Catalogue) func() (io.ReadCloser, error) {
	convert := sync.OnceValues(func() ([]byte, error) {
		return manifestFile{path: path, catalogue: c}.export(ctx)
	})
	return func() (io.ReadCloser, error) {
		manifests, err := holdsManifests(path)
		if err != nil {
			return nil, err
		}
		if !manifests {
			return os.Open(path)
		}
		export, err := convert()
		if err != nil {
			return nil, err
		}
		return io.NopCloser(bytes.NewReader(export)), nil
	}
}

// fill fills an open store and reports whether it did. A store that was filled before is left as it
// is. Without a file, fill returns an error for a store whose filling did not complete.
func (f filler) fill(ctx context.Context, store backend.Store) (filled bool, err error) {
	if f.file == "" {
		return false, whole(ctx, store)
	}
	_, shared := store.(*redis.Store)
	filled, err = state.Bootstrap(ctx, state.BootstrapConfig{
		Store: store, Open: f.open, Checked: f.checked, Shared: shared, Keys: f.keys, Logger: f.log, Progress: f.progress,
	})
	if err == nil || ctx.Err() != nil {
		return filled, err
	}
	return false, f.explain(err)
}

// whole returns an error for a store whose filling did not complete.
func whole(ctx context.Context, store backend.Store) error {
	err := state.Whole(ctx, store)
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("bootstrap: %w", err)
	}
	return err
}

// watchPause is the interval at which watchBootstrap looks at the store.
const watchPause = time.Second

// watchBootstrap returns an error when another gateway has started to fill the store; otherwise it
// runs until ctx ends. That happens only if the store was emptied while this gateway served it,
// because a store with a record of catalogues is never filled.
func watchBootstrap(ctx context.Context, store backend.Store) error {
	for wait.For(ctx, watchPause) {
		err := state.Whole(ctx, store)
		if errors.Is(err, state.ErrBegun) {
			return errors.New("bootstrap: the store was emptied, and another gateway fills it now: start again when it is filled, or with the same --bootstrap file")
		}
	}
	return nil
}

// explain returns why the file cannot fill a store: one line, or one for each problem of
// manifests.
func (f filler) explain(err error) error {
	switch {
	case errors.As(err, new(exit.LinesError)):
		return err
	case errors.Is(err, state.ErrNotEmpty), errors.Is(err, state.ErrServed), errors.Is(err, state.ErrBegun):
		return fmt.Errorf("bootstrap: %w", err)
	}
	return fmt.Errorf("bootstrap: %s: %s", f.file, exit.OneLine(err))
}

// checkFirst checks the file before a store is created on Redis, so that an invalid file leaves
// nothing behind. It returns the findings for the filling; nil if the store exists already and
// needs no file.
func (f filler) checkFirst(ctx context.Context, settings storeSettings) (*state.Checked, error) {
	if f.file == "" || settings.URL == "" {
		return nil, nil
	}
	shards, there, err := settings.findRedis(ctx, f.log)
	if err != nil || there {
		return nil, err
	}
	checked, err := state.Check(f.open, f.keys, shards)
	if err != nil {
		return nil, f.explain(err)
	}
	return checked, nil
}

// fillingSuffix is the suffix of the file of an embedded store while it is being
// filled.
const fillingSuffix = ".bootstrap"

// fillEmbedded creates and fills the embedded store in a folder that has none, and reports whether
// it did. The file gets its final name when it is complete, so there is never an incomplete store.
func (f filler) fillEmbedded(ctx context.Context, folder string) (filled bool, err error) {
	path := filepath.Join(folder, StoreFile)
	filling := path + fillingSuffix
	switch {
	case exists(path): // filled before, or to be filled as it is
		_ = os.Remove(filling)
		return false, nil
	case f.file == "" && exists(filling):
		return false, fmt.Errorf("bootstrap: %w; or remove %s", state.ErrBegun, filling)
	case f.file == "":
		return false, nil
	}
	err = f.fillFile(ctx, filling)
	if errors.Is(err, state.ErrBegun) { // with another file
		if err = os.Remove(filling); err == nil {
			err = f.fillFile(ctx, filling)
		}
	}
	if err == nil && f.confirm != nil {
		err = f.confirm()
	}
	if err != nil {
		if ctx.Err() == nil && !errors.Is(err, bolt.ErrLocked) { // else it goes on later, or another process fills it
			_ = os.Remove(filling)
		}
		return false, err
	}
	return true, giveName(filling, path)
}

// exists reports whether there is a file at a path.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// fillFile creates and fills the store in a file.
func (f filler) fillFile(ctx context.Context, path string) (err error) {
	folder := filepath.Dir(path)
	store, err := bolt.Open(bolt.Config{Path: path, Logger: f.log})
	switch {
	case errors.Is(err, bolt.ErrLocked):
		return fmt.Errorf("bootstrap: another process fills the store in %s: %w", folder, bolt.ErrLocked)
	case err != nil:
		return storeSettings{Store: config.Store{Data: folder}}.explainBolt(err)
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	_, err = f.fill(ctx, store)
	return err
}

// giveName renames a file to a name that must be free.
func giveName(from, to string) error {
	err := os.Link(from, to)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		if _, absent := os.Lstat(to); errors.Is(absent, fs.ErrNotExist) { // a file system without links
			err = os.Rename(from, to)
		}
	}
	if err != nil {
		return fmt.Errorf("bootstrap: %w", err)
	}
	_ = os.Remove(from)
	folder, err := os.Open(filepath.Dir(to))
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
