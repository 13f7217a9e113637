package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/sluicegw/sluice/backend"
)

// DefaultSize is the default of File.Size.
const DefaultSize = 128 << 20

// maxLine is the maximum length of a line that can be read, in bytes.
const maxLine = 1 << 20

// File is the file of the audit log. Each line has a position in the store's log. After a crash the gateway continues
// at the position of the last whole line, so no change is missing or written twice.
type File struct {
	// Path is the path of the file, which is created with the mode 0600. If it is empty, lines are written to Out,
	// beginning at the present position.
	Path string
	// Size is the size in bytes from which the file is renamed, and another one begun. Default: [DefaultSize].
	Size int64
	// MaxAge is how long renamed files are kept; 0 means for ever. Files that other programs have renamed are neither
	// removed nor compressed.
	MaxAge time.Duration
	// MaxFiles is the maximum number of renamed files; 0 for no limit.
	MaxFiles int
	// Compress compresses renamed files (gzip).
	Compress bool
	// Out receives the lines if Path is empty.
	Out io.Writer

	file *os.File
	// lock prevents other processes from writing the file.
	lock *flock.Flock
	size int64
	// renameAt is the size from which the file is renamed, which grows if the renaming fails.
	renameAt int64
	// cut is set while the last line may be incomplete. The incomplete part is removed before the next line is written.
	cut bool
	// untidy is set while there may be a file to compress or to remove, and [File.tidy] was not requested yet.
	untidy bool
	// crowded is set when tidying was requested because the first lines of a new file could not be written: the disk
	// may be full of renamed files. It prevents a request for each line that fails.
	crowded bool
	// removed is set from when the open file was found to be removed until this was counted and logged.
	removed bool
}

// open opens the file and returns the position of its last line. If it has no line, open returns the position of the
// last line of the newest renamed file, or zero if there is none.
func (f *File) open() (last lastWritten, err error) {
	if f.Size == 0 {
		f.Size = DefaultSize
	}
	if f.Path == "" {
		return last, nil
	}
	if err := f.reopen(); err != nil {
		return last, err
	}
	var whole int64
	if last, whole, err = lastLine(f.file, f.size); err == nil && whole < f.size {
		err = f.file.Truncate(whole)
	}
	if err != nil {
		f.close()
		return last, fmt.Errorf("%s: %w", f.Path, err)
	}
	f.size = whole
	f.untidy = true
	if whole == 0 {
		last = f.renamed()
	}
	return last, nil
}

// ErrInUse means that another process writes the file.
var ErrInUse = errors.New("another process writes it")

// CheckFile returns an error if the file at a path cannot be continued as an audit log: [fs.ErrNotExist] if there is no
// file, [ErrInUse] if another process writes it. It changes nothing.
func CheckFile(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return notRegular(path)
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	if _, _, err := lastLine(file, info.Size()); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	lock := flock.New(path, flock.SetFlag(os.O_RDONLY))
	free, err := lock.TryRLock()
	if err == nil && !free {
		err = fmt.Errorf("%s: %w", path, ErrInUse)
	}
	return errors.Join(err, lock.Close())
}

func notRegular(path string) error { return fmt.Errorf("%s is no regular file", path) }

// lastWritten is the position and the time in the last line of a file. It is zero if there is no line.
type lastWritten struct {
	at   backend.Position
	time time.Time
}

// lastLine returns the position and the time in the last whole line of a file, and the offset of the end of that line.
func lastLine(file io.ReaderAt, size int64) (last lastWritten, whole int64, err error) {
	size, err = sizeWithoutZeros(file, size)
	if err != nil {
		return last, 0, err
	}
	tail, from, err := readTail(file, size)
	if err != nil {
		return last, 0, err
	}
	end := bytes.LastIndexByte(tail, '\n') + 1
	if end == 0 {
		if from > 0 {
			err = errors.New("its end is no audit log")
		}
		return last, 0, err
	}
	var line Line
	begin := bytes.LastIndexByte(tail[:end-1], '\n') + 1
	if err := json.Unmarshal(tail[begin:end], &line); err != nil {
		return last, 0, errors.New("its last line is no line of an audit log")
	}
	last.time = line.Time
	if line.Position != "" {
		last.at, err = backend.ParsePosition(line.Position)
	}
	return last, from + int64(end), err
}

// readTail returns the last part of a file, at most maxLine bytes, and its offset. size is the size of the file.
func readTail(file io.ReaderAt, size int64) (tail []byte, from int64, err error) {
	from = max(size-maxLine, 0)
	tail = make([]byte, size-from)
	if _, err := file.ReadAt(tail, from); err != nil && !errors.Is(err, io.EOF) {
		return nil, 0, err
	}
	return tail, from, nil
}

// sizeWithoutZeros returns the size of a file without NUL bytes at its end, which some file systems
// leave after a crash.
func sizeWithoutZeros(file io.ReaderAt, size int64) (int64, error) {
	for size > 0 {
		tail, from, err := readTail(file, size)
		if err != nil {
			return 0, err
		}
		size = from
		if n := len(bytes.TrimRight(tail, "\x00")); n > 0 {
			return from + int64(n), nil
		}
	}
	return 0, nil
}

// renamed returns the position and the time of the last line in the newest renamed file, zero if there is none. A
// renamed file is one whose name begins with the name of this file, so this package or logrotate may have renamed it.
// This position is needed if the process was killed after a renaming, before the new file had a line. If the newest
// file of this package cannot be read, an older one is used: then some lines are written twice, but none is missing.
func (f *File) renamed() (last lastWritten) {
	path, err := filepath.EvalSymlinks(f.Path)
	if err != nil {
		return last
	}
	for _, candidate := range renamedFiles(path) {
		last, err := lastOfRenamed(candidate)
		if err == nil && !last.at.IsZero() {
			return last
		}
	}
	return last
}

// renamedFiles returns the paths of the renamed files whose last line the audit log at a path may continue, the newest
// first. These are the files that this package has renamed, ordered by the times in their names, and the newest file
// that another program has renamed, ordered by its modification time. They may be compressed.
func renamedFiles(path string) (out []string) {
	rotated, _, _ := rotatedFiles(path)
	ours := map[string]bool{}
	for _, one := range rotated {
		newest := one.path
		if !one.plain {
			newest += compressedSuffix
		}
		out = append(out, newest)
		ours[one.path] = true
		ours[one.path+compressedSuffix] = true
	}
	there, _ := os.ReadDir(filepath.Dir(path))
	var foreign string
	var foreignAt time.Time
	for _, entry := range there {
		more, ok := strings.CutPrefix(entry.Name(), filepath.Base(path))
		other := filepath.Join(filepath.Dir(path), entry.Name())
		if !ok || !strings.HasPrefix(more, ".") && !strings.HasPrefix(more, "-") || ours[other] {
			continue
		}
		if !entry.Type().IsRegular() || inUse(other) {
			continue
		}
		if info, err := entry.Info(); err == nil && info.ModTime().After(foreignAt) {
			foreign = other
			foreignAt = info.ModTime()
		}
	}
	if foreign == "" {
		return out
	}
	if len(out) > 0 {
		if info, err := os.Stat(out[0]); err == nil && info.ModTime().After(foreignAt) {
			return append(out, foreign)
		}
	}
	return append([]string{foreign}, out...)
}

// lastOfRenamed returns the position and the time of the last line of a renamed file. The error may mean that the file
// is compressed in another way than this package compresses.
func lastOfRenamed(path string) (last lastWritten, err error) {
	file, err := os.Open(path)
	if err != nil {
		return last, err
	}
	defer func() { _ = file.Close() }()
	if strings.HasSuffix(path, compressedSuffix) {
		return lastCompressedLine(file)
	}
	info, err := file.Stat()
	if err != nil {
		return last, err
	}
	last, _, err = lastLine(file, info.Size())
	return last, err
}

// reopen opens the file at Path, unless that file is open already.
func (f *File) reopen() error {
	if f.Path == "" || f.isOpen() {
		return nil
	}
	file, err := os.OpenFile(f.Path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = notRegular(f.Path)
	}
	if err != nil {
		return errors.Join(err, file.Close())
	}
	lock := flock.New(f.Path)
	locked, err := lock.TryLock()
	if err == nil && !locked {
		err = fmt.Errorf("%s: %w", f.Path, ErrInUse)
	}
	if err != nil {
		return errors.Join(err, lock.Close(), file.Close())
	}
	f.close()
	f.file = file
	f.lock = lock
	f.size = info.Size()
	f.renameAt = f.Size
	f.cut = false
	return nil
}

// isOpen reports whether the open file is still the file at Path.
func (f *File) isOpen() bool {
	if f.file == nil {
		return false
	}
	ours, err := f.file.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(f.Path)
	return err == nil && os.SameFile(ours, there)
}

func (f *File) close() {
	if f.file != nil {
		_, _ = f.file.Close(), f.lock.Close()
		f.file, f.lock = nil, nil
	}
}

// rotate renames the file if it is large enough, and begins another. If it fails, the file is continued, and the next
// attempt follows when it has grown by Size bytes.
func (f *File) rotate() error {
	if f.file == nil || f.size < f.renameAt {
		return nil
	}
	f.renameAt = f.size + f.Size
	if f.isOpen() { // otherwise another program has renamed or removed it
		path, err := filepath.EvalSymlinks(f.Path)
		if err != nil {
			return err
		}
		name, err := rotatedName(path)
		if err != nil {
			return err
		}
		if err := os.Rename(path, name); err != nil {
			return err
		}
		f.untidy = true
	}
	return f.reopen()
}

// prepare truncates the file after its last whole line. If somebody has removed the file, it begins another.
func (f *File) prepare() error {
	if f.Path == "" {
		return nil
	}
	if f.file == nil {
		return f.reopen()
	}
	info, err := f.file.Stat()
	if err != nil {
		return err
	}
	if unlinked(info) {
		f.removed = true
		return f.reopen()
	}
	f.size = min(f.size, info.Size()) // another program may have truncated it
	if f.cut {
		if err := f.file.Truncate(f.size); err != nil {
			return err
		}
		f.cut = false
	}
	return nil
}

func (f *File) write(lines []byte) error {
	to := f.Out
	if f.Path != "" {
		to = f.file
	}
	if _, err := to.Write(lines); err != nil {
		f.cut = true
		return err
	}
	f.size += int64(len(lines))
	return nil
}
