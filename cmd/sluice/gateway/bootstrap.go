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
	// file is the path of the file; empty if there is none.
	file string
	keys *keyring.Keyring
	log  *zap.Logger
	// open opens the file, converted to an export if necessary. Required if there is a file.
	open func() (io.ReadCloser, error)
	// checked is the result of an earlier check of the file; nil if there was none.
	checked *state.Checked
	// confirm is called when a new embedded store has been filled, before its file gets its final name. If it returns
	// an error, the file does not get that name. Default: no call.
	confirm func() error
	// progress is called with the number of lines stored so far and the number of all lines; nil for no calls.
	progress func(done, of int)
	// filled is called with the number of resources when a store is filled; nil for no call.
	filled func(resources int)
}

// openBootstrap returns the function that opens the file of a bootstrap as an export. Manifests are converted at the
// first call: to an export of a store that has their resources.
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

// fill fills an open store, and reports whether it has done so. It does not change a store that was filled before. If
// there is no file, it returns an error for a store whose filling was not completed.
func (f filler) fill(ctx context.Context, store backend.Store) (filled bool, err error) {
	if f.file == "" {
		return false, whole(ctx, store)
	}
	_, shared := store.(*redis.Store)
	filled, err = state.Bootstrap(ctx, state.BootstrapConfig{
		Store: store, Open: f.open, Checked: f.checked, Shared: shared, Keys: f.keys, Logger: f.log, Progress: f.progress,
		Filled: f.filled,
	})
	if err == nil || ctx.Err() != nil {
		return filled, err
	}
	return false, f.explain(err)
}

// whole returns an error if filling the store was begun and not completed.
func whole(ctx context.Context, store backend.Store) error {
	err := state.Whole(ctx, store)
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("bootstrap: %w", err)
	}
	return err
}

// watchPause is the time between two checks by watchBootstrap.
const watchPause = time.Second

// watchBootstrap runs until ctx ends. It returns an error when another gateway begins to fill the store. That can
// happen only if someone has emptied the store while this gateway serves it, because a store with a record of
// catalogues is never filled.
func watchBootstrap(ctx context.Context, store backend.Store) error {
	for wait.For(ctx, watchPause) {
		err := state.Whole(ctx, store)
		if errors.Is(err, state.ErrBegun) {
			return errors.New("bootstrap: the store was emptied, and another gateway fills it now: start again when it is filled, or with the same --bootstrap file")
		}
	}
	return nil
}

// explain returns an error that gives the user the reason why the file cannot fill a store. It has one line, or one
// line for each problem with manifests.
func (f filler) explain(err error) error {
	switch {
	case errors.As(err, new(exit.LinesError)):
		return err
	case errors.Is(err, state.ErrNotEmpty), errors.Is(err, state.ErrServed), errors.Is(err, state.ErrBegun):
		return fmt.Errorf("bootstrap: %w", err)
	}
	return fmt.Errorf("bootstrap: %s: %s", f.file, exit.OneLine(err))
}

// checkFirst checks the file before a store is created on Redis, so that nothing is created if the file is invalid. It
// returns the result of the check. If there is no file, or the store exists already, it returns nil.
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

// fillingSuffix is the suffix of the file of an embedded store while it is being filled.
const fillingSuffix = ".bootstrap"

// fillEmbedded creates and fills the embedded store in a folder without one, and reports whether it has done so. The
// file gets its final name when it is complete, so an incomplete store is never found.
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
	if errors.Is(err, state.ErrBegun) { // it was begun with another file
		if err = os.Remove(filling); err == nil {
			err = f.fillFile(ctx, filling)
		}
	}
	if err == nil && f.confirm != nil {
		err = f.confirm()
	}
	if err != nil {
		if ctx.Err() == nil && !errors.Is(err, bolt.ErrLocked) { // else a later start continues, or another process
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

// giveName renames a file. It returns an error if the new name exists.
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
