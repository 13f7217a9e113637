package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend/keyring"
	"github.com/sluicegw/sluice/backend/state"
	"github.com/sluicegw/sluice/cmd/sluice/exit"
	"github.com/sluicegw/sluice/cmd/sluice/version"
)

// StateCopy copies the contents of a store to another store. No gateway may serve either of them.
type StateCopy struct {
	From, To Offline
	Keys     KeySource
	// Progress is called with the number of lines copied so far and the number of all lines. Default: no calls.
	Progress func(done, of int)
}

// Copied is the result of a [StateCopy].
type Copied struct {
	// Resources is the number of resources in the copy.
	Resources int
	// Unreadable is the number of records that could not be read and were not copied.
	Unreadable int
}

// Run copies the contents.
func (c StateCopy) Run(ctx context.Context, log *zap.Logger) (out Copied, err error) {
	unlocked, err := c.Keys.read(ctx)
	if err != nil {
		return out, err
	}
	keys := unlocked.ring
	from, err := c.From.openReader(ctx, log)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	file, err := anonymousFile()
	if err != nil {
		return out, err
	}
	defer func() { _ = file.Close() }()
	cfg := state.ExportConfig{
		Store: from, Keys: keys, Secrets: state.Sealed, Repeatable: true, Release: version.Text(),
	}
	if keys.ID() == "" { // secrets stay as they are stored; the file has no name, so nobody else opens it
		cfg.Secrets = state.Plain
	}
	end, err := state.Export(ctx, cfg, file)
	if err != nil {
		return out, errors.New(exit.OneLine(err))
	}
	if end.Records == 0 {
		return out, c.From.nothing()
	}
	out.Unreadable = end.Unreadable
	out.Resources, err = c.fill(ctx, file, keys, func() error {
		now, err := from.Position(ctx)
		if err == nil && now.String() != end.Position {
			err = fmt.Errorf("%s was written while it was copied: stop its gateways, empty %s and copy again", c.From.At, c.To.At)
		}
		return err
	}, log)
	return out, err
}

// anonymousFile returns a temporary file that no longer exists when the process has ended.
func anonymousFile() (*os.File, error) {
	file, err := os.CreateTemp("", "sluice-state-")
	if err != nil {
		return nil, err
	}
	return file, os.Remove(file.Name())
}

// fill fills the target from a file, and returns the number of resources. Then it calls confirm, which returns an error
// if the target is incomplete.
func (c StateCopy) fill(
	ctx context.Context, file *os.File, keys *keyring.Keyring, confirm func() error, log *zap.Logger,
) (resources int, err error) {
	size, err := file.Seek(0, io.SeekCurrent)
	if err != nil {
		return 0, err
	}
	f := filler{
		file: c.From.At, keys: keys, log: log, progress: c.Progress,
		open: func() (io.ReadCloser, error) { return io.NopCloser(io.NewSectionReader(file, 0, size)), nil },
	}
	filledBefore := exit.Usage(fmt.Errorf("%s is a store already: choose an empty one", c.To.At))
	f.filled = func(n int) { resources = n }
	if c.To.embedded() {
		f.confirm = confirm
		filled, err := f.fillEmbedded(ctx, c.To.At)
		if err == nil && !filled {
			err = filledBefore
		}
		return resources, err
	}
	if f.checked, err = f.checkFirst(ctx, c.To.settings()); err != nil {
		return 0, err
	}
	to, err := c.To.openRedis(ctx, log)
	if err != nil {
		return 0, err
	}
	filled, err := f.fill(ctx, to)
	switch {
	case err == nil && filled:
		err = confirm()
	case err == nil:
		err = filledBefore
	}
	return resources, errors.Join(err, to.Close())
}
