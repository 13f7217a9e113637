// Package folder replaces a folder of files by another one as a whole: whoever
// reads it, after a crash too, finds all files of the one or all of the other.
package folder

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// staleAfter is how old what an earlier replacement left behind must be to be removed.
const staleAfter = time.Hour

// Staged is a folder beside the one that it is to replace.
type Staged struct {
	target, dir string
}

// Stage writes files, by their names, into a new folder beside target, which may be
// a link to a folder. Nothing but files of these names' extension may be in target:
// other files would be lost.
func Stage(target string, files map[string]string, extension string) (*Staged, error) {
	target, err := filepath.EvalSymlinks(target)
	if err != nil {
		return nil, err
	}
	if target, err = filepath.Abs(target); err != nil {
		return nil, err
	}
	info, err := os.Stat(target)
	if err != nil {
		return nil, err
	}
	if err := onlyFiles(target, extension); err != nil {
		return nil, err
	}
	parent, prefix := filepath.Dir(target), "."+filepath.Base(target)+".next-"
	removeStale(parent, prefix)
	dir, err := os.MkdirTemp(parent, prefix)
	if err != nil {
		return nil, fmt.Errorf("beside %s no folder can be made: %w", target, err)
	}
	s := &Staged{target: target, dir: dir}
	if err := s.fill(files, extension, info.Mode().Perm()); err != nil {
		s.Discard()
		return nil, err
	}
	return s, nil
}

// fill writes the files, so that they are there after a crash.
func (s *Staged) fill(files map[string]string, extension string, mode os.FileMode) error {
	for name, text := range files {
		if filepath.Base(name) != name || filepath.Ext(name) != extension {
			return fmt.Errorf("%q is no name of a file that ends in %s", name, extension)
		}
		if err := writeSynced(filepath.Join(s.dir, name), text); err != nil {
			return err
		}
	}
	if err := os.Chmod(s.dir, mode); err != nil {
		return err
	}
	return syncDir(s.dir)
}

// onlyFiles refuses a folder that holds anything but plain files of an extension.
func onlyFiles(dir, extension string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !e.Type().IsRegular() || filepath.Ext(e.Name()) != extension {
			return fmt.Errorf("%s holds %s, which would be lost: only plain files that end in %s may be in a folder that is replaced", dir, e.Name(), extension)
		}
	}
	return nil
}

// removeStale removes what crashes have left behind.
func removeStale(parent, prefix string) {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && e.IsDir() && strings.HasPrefix(e.Name(), prefix) && time.Since(info.ModTime()) > staleAfter {
			_ = os.RemoveAll(filepath.Join(parent, e.Name()))
		}
	}
}

// Dir is the new folder.
func (s *Staged) Dir() string { return s.dir }

// Replace puts the new folder in the place of the other one, in one step, and
// removes that one. If it fails, everything is as it was.
func (s *Staged) Replace() error {
	if err := exchange(s.dir, s.target); err != nil {
		s.Discard()
		switch {
		case errors.Is(err, syscall.EBUSY), errors.Is(err, syscall.EXDEV):
			return fmt.Errorf("%s is a mount point and cannot be replaced: change its files where they come from", s.target)
		case errors.Is(err, syscall.EINVAL), errors.Is(err, errors.ErrUnsupported):
			return fmt.Errorf("%s cannot be replaced in one step on this file system (%w): change its files", s.target, err)
		}
		return fmt.Errorf("%s cannot be replaced: %w", s.target, err)
	}
	err := syncDir(filepath.Dir(s.target))
	s.Discard() // what was there before
	return err
}

// Discard removes the new folder.
func (s *Staged) Discard() { _ = os.RemoveAll(s.dir) }

// writeSynced writes a file that is there after a crash.
func writeSynced(path, text string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Sync(), f.Close())
}

func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
