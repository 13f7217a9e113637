package release

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/sluicegw/sluice/graph/kinds"
)

// The names of files and folders below the folder of a catalogue.
const (
	// Folder is the folder with the folders of the released versions.
	Folder = "versions"
	// StatesFile is a file in Folder with the states of versions: deprecated, withdrawn, and others.
	StatesFile = "versions.yaml"
	// APIFile is a file in the folder of a version. It has the API that was derived when the version was released.
	APIFile = "api.graphql"
)

// MaxVersions is the maximum number of released versions of a catalogue. The files of all versions and of the catalogue
// together have at most [kinds.MaxBytes].
const MaxVersions = 100

// ReadDir reads the folder of a catalogue with its released versions. It returns texts by path, such as
// "network.graphqls" and "versions/v1.0/network.graphqls". If the folder is replaced in the meantime, it is read again.
func ReadDir(dir string) (texts map[string]string, err error) {
	err = kinds.ReadFolder(dir, func(files fs.FS) error {
		texts, err = Files(files, dir)
		return err
	})
	return texts, err
}

// Files is like [ReadDir] for a file system. dir is the name of the folder in errors.
func Files(files fs.FS, dir string) (map[string]string, error) {
	texts, err := kinds.Files(files, dir)
	if err != nil {
		return nil, err
	}
	var paths []string
	err = fs.WalkDir(files, Folder, func(name string, e fs.DirEntry, err error) error {
		switch {
		case name == Folder && errors.Is(err, fs.ErrNotExist):
			return fs.SkipAll
		case err != nil:
			return err
		case strings.HasPrefix(e.Name(), ".") && e.IsDir():
			return fs.SkipDir // of a release that was interrupted
		case !e.IsDir():
			paths = append(paths, name)
		}
		if len(paths) > MaxVersions*kinds.MaxFiles {
			return fmt.Errorf("more than %d files", MaxVersions*kinds.MaxFiles)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("catalogue: %s: %w", path.Join(dir, Folder), err)
	}
	total := 0
	for _, text := range texts {
		total += len(text)
	}
	for _, name := range paths {
		text, err := kinds.ReadFile(files, name)
		if err != nil {
			return nil, fmt.Errorf("catalogue: %s: %w", path.Join(dir, name), err)
		}
		total += len(text)
		if total > kinds.MaxBytes {
			return nil, fmt.Errorf("catalogue: the files of %s and its versions have more than %d bytes",
				dir, kinds.MaxBytes)
		}
		texts[name] = text
	}
	return texts, nil
}

// Split separates the texts of a catalogue from the texts of its versions. In the result, the paths of versions are
// relative to Folder.
func Split(texts map[string]string) (catalogue, versions map[string]string) {
	catalogue, versions = map[string]string{}, map[string]string{}
	for name, text := range texts {
		if below, ok := strings.CutPrefix(name, Folder+"/"); ok {
			versions[below] = text
		} else {
			catalogue[name] = text
		}
	}
	return catalogue, versions
}

// HasFile reports whether the folder of a catalogue may contain a file with this path. If the path ends with a slash,
// HasFile reports this for a folder.
func HasFile(name string) bool {
	below, inVersions := strings.CutPrefix(name, Folder+"/")
	switch {
	case !inVersions:
		return !strings.Contains(name, "/") && path.Ext(name) == ".graphqls"
	case below == "" || below == StatesFile:
		return true
	}
	folder, file, _ := strings.Cut(below, "/")
	if _, err := ParseNumber(folder); err != nil || strings.Contains(file, "/") {
		return false
	}
	return strings.HasSuffix(name, "/") || file == APIFile || path.Ext(file) == ".graphqls"
}

// grouped returns the texts of each version by the name of its folder. It adds findings for deeper folders, and for
// files beside the folders, except StatesFile.
func (r *reader) grouped(versions map[string]string) map[string]map[string]string {
	out := map[string]map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(versions)) {
		folder, file, below := strings.Cut(name, "/")
		switch {
		case name == StatesFile:
		case !below:
			r.report(name, 1, "only %s and a folder for each version may be here", StatesFile)
		case file != APIFile && (strings.Contains(file, "/") || path.Ext(file) != ".graphqls"):
			r.report(name, 1, "only %s and the sources of the version, which end in .graphqls, may be here", APIFile)
		default:
			if out[folder] == nil {
				out[folder] = map[string]string{}
			}
			out[folder][file] = versions[name]
		}
	}
	return out
}
