package credential

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"go.yaml.in/yaml/v4"

	"github.com/sluicegw/sluice/internal/settings"
)

// ContextsPath returns the path of the file of contexts: the value of SLUICE_CONTEXTS, or else sluice/contexts.yaml in
// XDG_CONFIG_HOME or in the folder of the system for settings. It is empty if there is no such folder.
func ContextsPath() string {
	folder := os.Getenv("XDG_CONFIG_HOME")
	if folder == "" {
		folder, _ = os.UserConfigDir()
	}
	if folder == "" {
		return ""
	}
	return filepath.Join(folder, "sluice", "contexts.yaml")
}

// ReadContexts reads the file of contexts. If the file does not exist, there are no contexts. Paths in the file are
// relative to its folder. It returns an error if other users can read or write the file, because the file names
// programs that commands run.
func ReadContexts(path string) (*File, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) || path == "":
		return &File{}, nil
	case err != nil:
		return nil, err
	case info.Mode().Perm()&0o077 != 0 && runtime.GOOS != "windows":
		return nil, fmt.Errorf("%s: others can read or write it; chmod 600 %[1]s", path)
	}
	data, err := ReadPrivate(path)
	if err != nil {
		return nil, err
	}
	f, err := parseContexts(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for name, c := range f.Contexts {
		c.under(filepath.Dir(path))
		f.Contexts[name] = c
	}
	return f, nil
}

// UpdateContexts calls the function change with the contents of the file of contexts, and stores the result. It creates
// the file if it does not exist.
func UpdateContexts(ctx context.Context, path string, change func(*File) error) error {
	if path == "" {
		return errors.New("contexts: there is no folder for settings; SLUICE_CONTEXTS can name a file")
	}
	return UpdatePrivate(ctx, path, func(data []byte) ([]byte, error) {
		f, err := parseContexts(data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if err := errors.Join(change(f), f.validate()); err != nil {
			return nil, err
		}
		return yaml.Marshal(f)
	})
}

func parseContexts(data []byte) (*File, error) {
	f := &File{}
	if err := settings.Decode(data, f); err != nil {
		return nil, err
	}
	if f.Contexts == nil {
		f.Contexts = map[string]Context{}
	}
	return f, f.validate()
}
