package operate

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/sluicegw/sluice/cmd/sluice/exit"
	"github.com/sluicegw/sluice/cmd/sluice/gateway"
	"github.com/sluicegw/sluice/cmd/sluice/output"
)

// partSuffix is the suffix of an incomplete file.
const partSuffix = ".part"

// partFile is a file that gets its final name when it is complete and synced.
type partFile struct {
	*os.File
	// path is the final name. Until [partFile.name] is called, the file has this name with the suffix partSuffix.
	path string
	// flag is the name of the flag with the path, for errors.
	flag string
	info os.FileInfo
}

// createPart creates the file. It replaces an incomplete file that an earlier command has left. flag is the name of the
// flag with the path.
func createPart(flag, path string) (*partFile, error) {
	_ = os.Remove(path + partSuffix)
	file, err := os.OpenFile(path+partSuffix, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, exit.Usage(fmt.Errorf("%s: %w", flag, err))
	}
	info, err := file.Stat()
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &partFile{File: file, path: path, flag: flag, info: info}, nil
}

// here returns an error if another command has replaced the file.
func (p *partFile) here() error {
	now, err := os.Lstat(p.path + partSuffix)
	if err != nil || !os.SameFile(now, p.info) {
		return fmt.Errorf("%s: another command writes %s meanwhile; wait for it, or choose another file", p.flag, p.path)
	}
	return nil
}

// complete syncs and closes the file. The file still has its temporary name.
func (p *partFile) complete() error {
	if err := errors.Join(p.Sync(), p.Close()); err != nil {
		return fmt.Errorf("%s: %w", p.flag, err)
	}
	return p.here()
}

func (p *partFile) name() error {
	if err := p.here(); err != nil {
		return err
	}
	if err := os.Rename(p.path+partSuffix, p.path); err != nil {
		return fmt.Errorf("%s: %w", p.flag, err)
	}
	return syncFolder(filepath.Dir(p.path))
}

// discard removes the file, unless another command has replaced it.
func (p *partFile) discard() {
	_ = p.Close()
	if p.here() == nil {
		_ = os.Remove(p.path + partSuffix)
	}
}

// syncFolder syncs the entries of a folder to the disk.
func syncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// checkTarget returns an error if writing the file would replace a folder or the embedded store. to is the path of the
// file. flag is the name of the flag with the folder of the store. A gateway would continue to write to the replaced
// store, and these writes would be lost.
func checkTarget(cmd *cobra.Command, to, flag string) error {
	target, err := os.Stat(to)
	if err != nil {
		return nil //nolint:nilerr // there is nothing to be replaced
	}
	if target.IsDir() {
		return exit.Usage(fmt.Errorf("to: %s is a folder; name a file in it", output.Printable(to)))
	}
	store, err := os.Stat(filepath.Join(cmd.Flag(flag).Value.String(), gateway.StoreFile))
	if err == nil && os.SameFile(target, store) {
		return exit.Usage(fmt.Errorf("to: %s is the store itself; choose another file", output.Printable(to)))
	}
	return nil
}
