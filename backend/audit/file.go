package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/gofrs/flock"

	"github.com/sluicegw/sluice/backend"
)

// DefaultSize is the default of File.Size.
const DefaultSize = 128 << 20

// maxLine is the most bytes of a line that is read.
const maxLine = 1 << 20

// File is where lines go. Each line has a position in the log, so a file that a crash has cut short is taken up after its last
// whole line: no change is missing, and none stands in it twice.
type File struct {
	// Path of the file; it is made with the mode 0600. Empty writes to Out, which begins at the present position.
	Path string
	// Size is from how many bytes on the file is renamed, to its name with the time, and a new one begins. Default
	// [DefaultSize].
	Size int64
	// Out is used if there is no Path.
	Out io.Writer

	file *os.File
	// lock keeps other processes from writing the file.
	lock *flock.Flock
	size int64
	// cut is set while a line may be incomplete: what was written of it is removed before the next.
	cut bool
}

// open opens the file and returns the position of its last line; zero if it has none.
func (f *File) open() (at backend.Position, err error) {
	if f.Size == 0 {
		f.Size = DefaultSize
	}
	if f.Path == "" {
		return at, nil
	}
	if err := f.reopen(); err != nil {
		return at, err
	}
	at, err = f.last()
	if err != nil {
		f.close()
		return at, fmt.Errorf("%s: %w", f.Path, err)
	}
	return at, nil
}

// last cuts off an incomplete line, and returns the position of the last one.
func (f *File) last() (at backend.Position, err error) {
	from := max(f.size-maxLine, 0)
	tail := make([]byte, f.size-from)
	if _, err := f.file.ReadAt(tail, from); err != nil && !errors.Is(err, io.EOF) {
		return at, err
	}
	end := bytes.LastIndexByte(tail, '\n') + 1
	if end == 0 && len(tail) > 0 && from > 0 {
		return at, errors.New("its end is no audit log")
	}
	if f.size = from + int64(end); end < len(tail) {
		if err := f.file.Truncate(f.size); err != nil {
			return at, err
		}
	}
	if end == 0 {
		return at, nil
	}
	var line Line
	begin := bytes.LastIndexByte(tail[:end-1], '\n') + 1
	if err := json.Unmarshal(tail[begin:end], &line); err != nil {
		return at, errors.New("its last line is no line of an audit log")
	}
	if line.Position == "" {
		return at, nil
	}
	return backend.ParsePosition(line.Position)
}

// reopen opens the file at its path, unless it is open.
func (f *File) reopen() error {
	if f.Path == "" || f.isOpen() {
		return nil
	}
	file, err := os.OpenFile(f.Path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err != nil {
		return errors.Join(err, file.Close())
	}
	lock := flock.New(f.Path)
	locked, err := lock.TryLock()
	if err == nil && !locked {
		err = fmt.Errorf("%s: another process writes it", f.Path)
	}
	if err != nil {
		return errors.Join(err, lock.Close(), file.Close())
	}
	f.close()
	f.file, f.lock, f.size, f.cut = file, lock, info.Size(), false
	return nil
}

// isOpen reports whether the file at its path is the one that is open.
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

// append writes lines, after first if the file is empty.
func (f *File) append(first, lines []byte) error {
	if f.Path == "" {
		_, err := f.Out.Write(lines)
		return err
	}
	if f.size >= f.Size {
		if err := f.rotate(); err != nil {
			return err
		}
	}
	if f.file == nil {
		if err := f.reopen(); err != nil {
			return err
		}
	}
	if f.cut {
		if err := f.file.Truncate(f.size); err != nil {
			return err
		}
		f.cut = false
	}
	if f.size == 0 {
		lines = append(first, lines...)
	}
	if _, err := f.file.Write(lines); err != nil {
		f.cut = true
		return err
	}
	f.size += int64(len(lines))
	return nil
}

// rotate renames the file and begins another.
func (f *File) rotate() error {
	if err := os.Rename(f.Path, f.Path+"."+time.Now().UTC().Format("20060102T150405.000000")); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return f.reopen()
}
