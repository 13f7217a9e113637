package identity

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/sluicegw/sluice/internal/wait"
)

const (
	// pollInterval is how often files are checked for changes.
	pollInterval = time.Second
	// settleInterval is how long a file must be unchanged before it is read. Some programs write a file in several
	// steps. settleMost is the maximum number of times that this wait is repeated.
	settleInterval = 100 * time.Millisecond
	settleMost     = 5
)

// Files are files that are read together, and read again when one of them changes. If reading them again fails, the
// previous contents stay in use.
type Files struct {
	// Setting is the name of the setting that has the path of the first file. It is used in messages.
	Setting string
	Paths   []string
	// Most is the maximum size of one file in bytes.
	Most int64
	// Private makes a file invalid if users other than its owner may read or write it. The group may read a file that
	// belongs to root.
	Private bool
	// Load is called with the contents of the files, in the order of Paths. It returns an error if they are invalid.
	Load func(content [][]byte) error
	// Logger is the logger. Required.
	Logger *zap.Logger

	seen  []os.FileInfo // what was read last; used by Open and then by Run
	stale atomic.Bool
}

// Open reads the files for the first time.
func (f *Files) Open(ctx context.Context) error {
	if _, err := wait.Until(ctx, func() (struct{}, error) { return struct{}{}, f.read() }); err != nil {
		return fmt.Errorf("%s: %w", f.Setting, err)
	}
	return nil
}

// Stale reports whether a file has changed since it was last read, and the new contents could not be read.
func (f *Files) Stale() bool { return f.stale.Load() }

// Run reads the files again whenever one of them has changed, until ctx ends.
func (f *Files) Run(ctx context.Context) error {
	for wait.For(ctx, pollInterval) {
		before := f.stats()
		if !f.changed(before) {
			continue
		}
		for range settleMost {
			if !wait.For(ctx, settleInterval) {
				return nil
			}
			now := f.stats()
			if slices.EqualFunc(before, now, same) {
				break
			}
			before = now
		}
		switch err := f.read(); {
		case err == nil:
			f.stale.Store(false)
			f.Logger.Info("a file was read again", zap.String("setting", f.Setting))
		case !f.stale.Swap(true):
			f.Logger.Error(
				"a file cannot be read again; what was read before counts", zap.String("setting", f.Setting),
				zap.Error(err),
			)
		}
	}
	return nil
}

// stats returns the present state of each file; nil for a file that does not exist.
func (f *Files) stats() []os.FileInfo {
	out := make([]os.FileInfo, len(f.Paths))
	for i, path := range f.Paths {
		if info, err := os.Stat(path); err == nil {
			out[i] = info
		}
	}
	return out
}

// changed reports whether a file was replaced or written since it was read, or does not exist.
func (f *Files) changed(now []os.FileInfo) bool {
	return slices.Contains(now, nil) || !slices.EqualFunc(f.seen, now, same)
}

// same reports whether before and now describe the same file without any write between them.
func same(before, now os.FileInfo) bool {
	if before == nil || now == nil {
		return before == now
	}
	return os.SameFile(before, now) && before.Size() == now.Size() && before.ModTime().Equal(now.ModTime()) &&
		before.Mode() == now.Mode()
}

func (f *Files) read() error {
	f.seen = nil // until all are read
	var seen []os.FileInfo
	var content [][]byte
	for _, path := range f.Paths {
		data, info, err := f.readOne(path)
		if err != nil {
			return err
		}
		seen, content = append(seen, info), append(content, data)
	}
	if err := f.Load(content); err != nil {
		return err
	}
	f.seen = seen
	return nil
}

func (f *Files) readOne(path string) ([]byte, os.FileInfo, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	switch {
	case err != nil:
		return nil, nil, err
	case info.IsDir():
		return nil, nil, fmt.Errorf("%s is a folder; a file is accepted", path)
	case f.Private && !private(info):
		return nil, nil, fmt.Errorf("%s: others than its owner may read or write it (mode %04o); 0600 is accepted, "+
			"and 0640 if it belongs to root", path, info.Mode().Perm())
	}
	data, err := io.ReadAll(io.LimitReader(file, f.Most+1))
	if err == nil && int64(len(data)) > f.Most {
		err = fmt.Errorf("%s has more than the %d bytes that are accepted", path, f.Most)
	}
	return data, info, err
}

// private reports whether only the owner may read or write the file. A group may read it, if the file belongs to root:
// that is how Kubernetes mounts Secrets.
func private(file os.FileInfo) bool {
	others := file.Mode().Perm() & 0o077
	return others == 0 || others == 0o040 && ownedByRoot(file)
}
