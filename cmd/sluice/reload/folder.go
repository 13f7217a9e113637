package reload

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
)

// Staged is a new folder beside the folder that it will replace. The replacement is atomic: even after a crash, a
// reader finds either all files of the old folder or all files of the new one.
type Staged struct {
	target, dir string
}

// Stage writes files to a new folder beside target, which may be a symbolic link. The keys of files are paths with
// slashes.
//
// It returns an error for paths that are not known. It also returns an error if target has a file that is not known,
// because that file would be lost. It removes what an interrupted replacement has left. Only one process at a time may
// replace target.
func Stage(target string, files map[string]string, known func(path string) bool) (*Staged, error) {
	_ = Tidy(target) // an error does not matter here
	target, err := resolve(target)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(target)
	if err != nil {
		return nil, err
	}
	if err := onlyFiles(target, known); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(beside(target))
	if err != nil {
		return nil, fmt.Errorf("beside %s no folder can be made: %w", target, err)
	}
	s := &Staged{target: target, dir: dir}
	if err := s.fill(files, known, info.Mode().Perm()); err != nil {
		return nil, errors.Join(err, s.Discard())
	}
	return s, nil
}

// Tidy removes what an interrupted replacement of target has left.
func Tidy(target string) error {
	target, err := resolve(target)
	if err != nil {
		return err
	}
	parent, prefix := beside(target)
	entries, err := os.ReadDir(parent)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() && strings.HasPrefix(e.Name(), prefix) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(parent, e.Name())))
		}
	}
	return err
}

// resolve returns the folder at a path, with symbolic links resolved.
func resolve(target string) (string, error) {
	target, err := filepath.EvalSymlinks(target)
	if err != nil {
		return "", err
	}
	return filepath.Abs(target)
}

// beside returns the parent folder and the prefix of the names of staged folders.
func beside(target string) (parent, prefix string) {
	return filepath.Dir(target), "." + filepath.Base(target) + ".next-"
}

// fill writes and syncs the files.
func (s *Staged) fill(files map[string]string, known func(path string) bool, mode os.FileMode) error {
	folders := map[string]bool{}
	for name, text := range files {
		if !filepath.IsLocal(filepath.FromSlash(name)) || path.Clean(name) != name || !known(name) {
			return fmt.Errorf("%q is no name of a file of a catalogue", name)
		}
		for folder := path.Dir(name); folder != "."; folder = path.Dir(folder) {
			folders[folder] = true
		}
		at := filepath.Join(s.dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			return err
		}
		if err := writeSynced(at, text); err != nil {
			return err
		}
	}
	for folder := range folders {
		at := filepath.Join(s.dir, filepath.FromSlash(folder))
		if err := errors.Join(os.Chmod(at, mode), syncDir(at)); err != nil {
			return err
		}
	}
	if err := os.Chmod(s.dir, mode); err != nil {
		return err
	}
	return syncDir(s.dir)
}

// onlyFiles returns an error if a folder contains anything but regular files with known paths and the folders of these.
func onlyFiles(dir string, known func(path string) bool) error {
	lost := func(name string) error {
		return fmt.Errorf("%s holds %s, which would be lost: only the plain files of a catalogue may be in a folder "+
			"that is replaced", dir, name)
	}
	return fs.WalkDir(os.DirFS(dir), ".", func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case name == ".":
			return nil
		case e.IsDir() && !known(name+"/"):
			return lost(name)
		case !e.IsDir() && (!e.Type().IsRegular() || !known(name)):
			return lost(name)
		}
		return nil
	})
}

// Replace swaps the new folder and the old one atomically. If it fails, nothing has changed. Calling it again restores
// the old folder.
func (s *Staged) Replace() error {
	err := exchange(s.dir, s.target)
	switch {
	case err == nil:
		if err = syncDir(filepath.Dir(s.target)); err == nil {
			return nil
		}
		err = errors.Join(err, exchange(s.dir, s.target))
	case errors.Is(err, syscall.EBUSY), errors.Is(err, syscall.EXDEV):
		return fmt.Errorf("%s is a mount point and cannot be replaced: change its files where they come from", s.target)
	case errors.Is(err, syscall.EINVAL), errors.Is(err, errors.ErrUnsupported):
		return fmt.Errorf("%s cannot be replaced in one step on this file system (%w): change its files", s.target, err)
	}
	return fmt.Errorf("%s cannot be replaced: %w", s.target, err)
}

// Discard removes the new folder, or the old folder if the new one has replaced it.
func (s *Staged) Discard() error { return os.RemoveAll(s.dir) }

// writeSynced writes and syncs a file.
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
