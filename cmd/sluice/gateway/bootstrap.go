package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/bolt"
	"github.com/sluicegw/sluice/backend/keyring"
	"github.com/sluicegw/sluice/backend/state"
	"github.com/sluicegw/sluice/cmd/sluice/config"
	"github.com/sluicegw/sluice/cmd/sluice/exit"
)

// filler fills stores with a file.
type filler struct {
	// file is the path of the file; empty for none.
	file string
	keys *keyring.Keyring
	log  *zap.Logger
	// open opens the file. Default: the one at its path.
	open func() (io.ReadCloser, error)
	// confirm is called before an embedded store that was filled gets its name, which it then does not get after an error.
	// Default: it gets it.
	confirm func() error
	// progress is called with the number of lines that were stored, and of all; nil for no calls.
	progress func(done, of int)
}

// fill fills an open store that has no resources, and reports whether it has: one that was filled before stays as it
// is. Without a file it refuses a store that was not filled to the end.
func (f filler) fill(ctx context.Context, store backend.Store) (filled bool, err error) {
	if f.file == "" {
		err = state.Whole(ctx, store)
	} else {
		filled, err = state.Bootstrap(ctx, state.BootstrapConfig{
			Store: store, Open: f.source(), Keys: f.keys, Logger: f.log, Progress: f.progress,
		})
	}
	switch {
	case err == nil, ctx.Err() != nil:
		return filled, err
	case f.file == "" || errors.Is(err, state.ErrNotEmpty) || errors.Is(err, state.ErrBegun):
		return false, fmt.Errorf("bootstrap: %w", err)
	}
	return false, fmt.Errorf("bootstrap: %s: %s", f.file, exit.OneLine(err))
}

func (f filler) source() func() (io.ReadCloser, error) {
	if f.open != nil {
		return f.open
	}
	return func() (io.ReadCloser, error) { return os.Open(f.file) }
}

// fillingSuffix ends the name of the file of an embedded store until it is filled.
const fillingSuffix = ".bootstrap"

// fillEmbedded makes the embedded store in a folder that has none, and fills it; it reports whether it has. The file
// gets its name once it is filled: whatever happens meanwhile, there is either no store or the whole one.
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

// fillFile makes and fills the store in a file.
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

// giveName gives a file a name that is free.
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
