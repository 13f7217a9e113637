package gateway

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// writableFolder returns an error if this process cannot create files in a folder.
func writableFolder(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s is no folder", path)
	}
	return writable(path)
}

// creatableFolder is like writableFolder. If the folder does not exist, it checks the nearest parent that exists.
func creatableFolder(path string) error {
	for {
		_, err := os.Stat(path)
		parent := filepath.Dir(path)
		if !errors.Is(err, fs.ErrNotExist) || parent == path {
			return writableFolder(path)
		}
		path = parent
	}
}
