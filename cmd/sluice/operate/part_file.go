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

// partSuffix ends the name of a file until it is complete.
const partSuffix = ".part"

// partFile is a file that a command writes, which gets its name once it is complete and durable.
type partFile struct {
	*os.File
	// path is its name once it is complete; until then it ends with partSuffix.
	path string
	info os.FileInfo
}

// createPart creates the file in the place of one that an earlier command has left.
func createPart(path string) (*partFile, error) {
	_ = os.Remove(path + partSuffix)
	file, err := os.OpenFile(path+partSuffix, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, exit.Usage(fmt.Errorf("to: %w", err))
	}
	info, err := file.Stat()
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &partFile{File: file, path: path, info: info}, nil
}

// here returns an error if another command has put its own file in the place of this one.
func (p *partFile) here() error {
	now, err := os.Lstat(p.path + partSuffix)
	if err != nil || !os.SameFile(now, p.info) {
		return fmt.Errorf("to: another command writes %s meanwhile; wait for it, or choose another file", p.path)
	}
	return nil
}

// complete makes what was written durable. The file still has no name.
func (p *partFile) complete() error {
	if err := errors.Join(p.Sync(), p.Close()); err != nil {
		return fmt.Errorf("to: %w", err)
	}
	return p.here()
}

// name gives the file its name.
func (p *partFile) name() error {
	if err := p.here(); err != nil {
		return err
	}
	if err := os.Rename(p.path+partSuffix, p.path); err != nil {
		return fmt.Errorf("to: %w", err)
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

// syncFolder makes the names in a folder durable.
func syncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// checkTarget refuses to write a file in the place of a folder, or in that of the store in a folder that a flag of the
// command names: a gateway would go on in a file without a name, and lose what is written from then on.
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
