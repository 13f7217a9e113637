package bolt

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"go.etcd.io/bbolt"
)

// newSuffix precedes the random end in the name of a file in which a store is being created.
const newSuffix = ".new-"

// create creates the file of a store. The file gets its final name only when the store in it is complete, so that a
// crash leaves no file that the next start would refuse. If the file exists, because another process has created it,
// the error is [fs.ErrExist].
func (c *core) create() (db *bbolt.DB, log logRecord, err error) {
	dir, base := filepath.Split(c.cfg.Path)
	f, err := os.CreateTemp(dir, base+newSuffix+"*")
	if err != nil {
		return nil, logRecord{}, pathCause(err)
	}
	name := f.Name()
	defer func() {
		if err != nil && db != nil {
			err, db = errors.Join(err, db.Close()), nil
		}
		_ = os.Remove(name) // the file has its final name by now, unless there was an error
	}()
	if err := f.Close(); err != nil {
		return nil, logRecord{}, pathCause(err)
	}
	if db, _, err = openBolt(name, c.options(os.OpenFile)); err != nil {
		return nil, logRecord{}, openCause(err)
	}
	if log, err = c.begin(db); err != nil {
		return db, logRecord{}, err
	}
	// A link never replaces a file. On a file system without links the file is renamed, after checking that the name is
	// not in use.
	if err = os.Link(name, c.cfg.Path); err != nil && !errors.Is(err, fs.ErrExist) {
		if _, absent := os.Lstat(c.cfg.Path); !errors.Is(absent, fs.ErrNotExist) {
			return db, logRecord{}, fs.ErrExist
		}
		err = os.Rename(name, c.cfg.Path)
	}
	if err == nil {
		err = syncFolder(filepath.Dir(c.cfg.Path))
	}
	if err != nil {
		return db, logRecord{}, pathCause(err)
	}
	unfinished, _ := filepath.Glob(c.cfg.Path + newSuffix + "*") // left by processes that have crashed
	for _, name := range unfinished {
		_ = os.Remove(name)
	}
	return db, log, nil
}

// syncFolder makes changes of the names in a folder durable.
func syncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
