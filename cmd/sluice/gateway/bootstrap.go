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

// filler fills stores with a file.
type filler struct {
	// file is the path of the file; empty for none.
	file string
	keys *keyring.Keyring
	log  *zap.Logger
	// open opens the file in the form of an export. It is required if there is a file.
	open func() (io.ReadCloser, error)
	// checked is what is known of the file already; nil for nothing.
	checked *state.Checked
	// confirm is called before an embedded store that was filled gets its name, which it then does not get after an
	// error. Default: it gets it.
	confirm func() error
	// progress is called with the number of lines that were stored, and of all; nil for no calls.
	progress func(done, of int)
}

// openBootstrap returns the function that opens the file of a bootstrap: an export as it is, and manifests as the
// export of a store that has their resources, which is made when it is needed first.
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

// fill fills an open store that has no resources, and reports whether it has: one that was filled before stays as it
// is. Without a file it refuses a store that was not filled to the end.
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

// whole refuses a store that was not filled to the end.
func whole(ctx context.Context, store backend.Store) error {
	err := state.Whole(ctx, store)
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("bootstrap: %w", err)
	}
	return err
}

// watchPause is the pause between two looks for a bootstrap that another gateway has begun.
const watchPause = time.Second

// watchBootstrap ends with an error once another gateway has begun to fill the store, until ctx ends. It can only do so
// after the store was emptied while this gateway served it: one with a record of catalogues is not filled.
func watchBootstrap(ctx context.Context, store backend.Store) error {
	for wait.For(ctx, watchPause) {
		err := state.Whole(ctx, store)
		if errors.Is(err, state.ErrBegun) {
			return errors.New("bootstrap: the store was emptied, and another gateway fills it now: start again when it is filled, or with the same --bootstrap file")
		}
	}
	return nil
}

// explain returns why the file does not fill a store: in one line, or line by line for manifests.
func (f filler) explain(err error) error {
	switch {
	case errors.As(err, new(exit.LinesError)):
		return err
	case errors.Is(err, state.ErrNotEmpty), errors.Is(err, state.ErrServed), errors.Is(err, state.ErrBegun):
		return fmt.Errorf("bootstrap: %w", err)
	}
	return fmt.Errorf("bootstrap: %s: %s", f.file, exit.OneLine(err))
}

// checkFirst checks the file before a store on Redis is made: a file that is refused must leave nothing behind. It
// returns what is known of the file then; nil if the store exists, since one that was filled needs no file.
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
