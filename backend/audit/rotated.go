package audit

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"
)

// The form of the names of rotated files, for example audit.log.20261127T160000.000000, or
// audit.log.20261127T160000.000000.gz if it is compressed. While a file is being compressed, the new file is named
// .audit.log.20261127T160000.000000.gz.part.
const (
	rotatedTime      = "20060102T150405.000000"
	compressedSuffix = ".gz"
	partSuffix       = compressedSuffix + ".part"
)

// copyAtOnce is the number of bytes that are compressed before the context is checked.
const copyAtOnce = 1 << 20

// rotatedName returns an unused name for the file at a path, with the present time or a little later. The name is later
// than the names of all files that were rotated before, even if the clock was set back.
func rotatedName(path string) (string, error) {
	at := time.Now().UTC()
	rotated, _, err := rotatedFiles(path)
	if err != nil {
		return "", err
	}
	if len(rotated) > 0 && !at.After(rotated[0].at) {
		at = rotated[0].at.Add(time.Microsecond)
	}
	for ; ; at = at.Add(time.Microsecond) {
		name := path + "." + at.Format(rotatedTime)
		_, plain := os.Lstat(name)
		_, compressed := os.Lstat(name + compressedSuffix)
		if plain != nil && compressed != nil {
			return name, nil
		}
	}
}

// rotatedFile is a file that was renamed because of its size.
type rotatedFile struct {
	// path is the path without the suffix of compressed files.
	path string
	// at is when it was renamed.
	at time.Time
	// plain reports whether the uncompressed file exists. If the compressed one exists too, its compression was
	// interrupted.
	plain bool
}

// rotatedFiles returns the rotated files of the audit log at a path, the newest first. left are the paths of incomplete
// files of interrupted compressions.
func rotatedFiles(path string) (rotated []*rotatedFile, left []string, err error) {
	folder := filepath.Dir(path)
	prefix := filepath.Base(path) + "."
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, nil, err
	}
	known := map[string]*rotatedFile{}
	for _, entry := range entries {
		name := entry.Name()
		hidden := strings.HasPrefix(name, "."+prefix) && strings.HasSuffix(name, partSuffix)
		name = strings.TrimPrefix(name, ".")
		name = strings.TrimSuffix(strings.TrimSuffix(name, ".part"), compressedSuffix)
		text, ours := strings.CutPrefix(name, prefix)
		at, notTime := time.Parse(rotatedTime, text)
		switch {
		case !ours || notTime != nil || !entry.Type().IsRegular():
			continue
		case hidden:
			left = append(left, filepath.Join(folder, entry.Name()))
			continue
		case entry.Name() != name && entry.Name() != name+compressedSuffix:
			continue
		}
		one := known[name]
		if one == nil {
			one = &rotatedFile{path: filepath.Join(folder, name), at: at}
			known[name] = one
		}
		one.plain = one.plain || entry.Name() == name
	}
	rotated = slices.SortedFunc(maps.Values(known), func(a, b *rotatedFile) int { return b.at.Compare(a.at) })
	return rotated, left, nil
}

// tidy removes and compresses rotated files as configured. It also removes the incomplete files of interrupted
// compressions, even if Compress is no longer set. It removes first, because the disk may be full. No process writes
// these files, so tidy may run while lines are written. It does nothing while the present file is absent, in
// the middle of a rotation. While the present file is empty, it leaves the newest rotated file alone, because the
// gateway may need the last line of that file to continue.
func (f *File) tidy(ctx context.Context) error {
	if f.Path == "" {
		return nil
	}
	path, err := filepath.EvalSymlinks(f.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	rotated, left, err := rotatedFiles(path)
	if err != nil {
		return err
	}
	var errs []error
	for _, part := range left {
		errs = append(errs, os.Remove(part))
	}
	now := time.Now()
	var kept []*rotatedFile
	for i, one := range rotated {
		switch {
		case one.inUse(), i == 0 && info.Size() == 0:
		case f.MaxFiles > 0 && i >= f.MaxFiles, f.MaxAge > 0 && now.Sub(one.since(now)) > f.MaxAge:
			errs = append(errs, one.remove())
		default:
			kept = append(kept, one)
		}
	}
	for _, one := range kept {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if f.Compress && one.plain {
			errs = append(errs, one.compress(ctx))
		}
	}
	return errors.Join(errs...)
}

// since returns when the file was rotated. If the time in its name has not come yet, because the clock was wrong then,
// it is the modification time.
func (r *rotatedFile) since(now time.Time) time.Time {
	if !r.at.After(now) {
		return r.at
	}
	path := r.path
	if !r.plain {
		path += compressedSuffix
	}
	info, err := os.Stat(path)
	if err != nil {
		return r.at
	}
	return info.ModTime()
}

// inUse reports whether a process still writes the file, because it was renamed but no new file could be created.
func (r *rotatedFile) inUse() bool {
	return r.plain && inUse(r.path)
}

// inUse reports whether a process writes the file at a path as its audit log.
func inUse(path string) bool {
	lock := flock.New(path, flock.SetFlag(os.O_RDONLY))
	locked, err := lock.TryLock()
	_ = lock.Close()
	return err != nil || !locked
}

// remove removes the file, compressed and uncompressed.
func (r *rotatedFile) remove() error {
	var errs []error
	for _, path := range []string{r.path + compressedSuffix, r.path} {
		if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// compress replaces the file by a compressed one. At any time at least one of the two has all lines. If both exist
// because an earlier call was interrupted, it begins again from the uncompressed file. It is no error if somebody has
// removed the file.
func (r *rotatedFile) compress(ctx context.Context) error {
	folder, name := filepath.Split(r.path)
	part := filepath.Join(folder, "."+name+partSuffix)
	err := compressTo(ctx, part, r.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return errors.Join(err, os.Remove(part))
	}
	if err := os.Rename(part, r.path+compressedSuffix); err != nil {
		return errors.Join(err, os.Remove(part))
	}
	syncFolder(folder)
	if err := os.Remove(r.path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// compressTo writes a compressed copy of the file from to a new file, which gets the same modification time.
func compressTo(ctx context.Context, to, from string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, out.Close())
		if err == nil {
			err = os.Chtimes(to, info.ModTime(), info.ModTime())
		}
	}()
	packed, err := gzip.NewWriterLevel(out, gzip.BestSpeed)
	if err != nil {
		return err
	}
	for err == nil {
		if err := ctx.Err(); err != nil {
			return err
		}
		_, err = io.CopyN(packed, in, copyAtOnce)
	}
	if !errors.Is(err, io.EOF) {
		return err
	}
	if err := packed.Close(); err != nil {
		return err
	}
	return out.Sync()
}

// syncFolder syncs the entries of a folder to the disk, if the system supports that.
func syncFolder(path string) {
	folder, err := os.Open(path)
	if err != nil {
		return
	}
	_ = folder.Sync()
	_ = folder.Close()
}

// tailWriter keeps the last bytes that were written to it: at least maxLine bytes, or all if there were fewer.
type tailWriter struct{ tail []byte }

// Write implements [io.Writer].
func (w *tailWriter) Write(p []byte) (int, error) {
	w.tail = append(w.tail, p...)
	if len(w.tail) > 2*maxLine {
		w.tail = append(w.tail[:0], w.tail[len(w.tail)-maxLine:]...)
	}
	return len(p), nil
}

func lastCompressedLine(file io.Reader) (last lastWritten, err error) {
	lines, err := gzip.NewReader(file)
	if err != nil {
		return last, err
	}
	var end tailWriter
	if _, err := io.Copy(&end, lines); err != nil {
		return last, err
	}
	last, _, err = lastLine(bytes.NewReader(end.tail), int64(len(end.tail)))
	return last, err
}
