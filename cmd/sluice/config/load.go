package config

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
	"github.com/spf13/pflag"

	"github.com/sluicegw/sluice/backend/manifest"
	"github.com/sluicegw/sluice/internal/certificate"
	"github.com/sluicegw/sluice/internal/wait"
)

// EnvPrefix is the prefix of the environment variables of settings.
const EnvPrefix = "SLUICE_"

// EnvName returns the environment variable for a flag, such as SLUICE_LISTEN for listen.
func EnvName(flag string) string {
	return EnvPrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// maxFile is the maximum size of a file of settings, in bytes.
const maxFile = 1 << 20

// ReadFile reads a file of settings, a password or a certificate. It returns early if ctx ends, because the file may be
// a pipe to which nobody writes. It returns an error for a file of more than 1 MiB, because a device may have no end.
func ReadFile(ctx context.Context, path string) ([]byte, error) {
	return wait.Until(ctx, func() ([]byte, error) { return ReadAtMost(path, maxFile) })
}

// ReadAtMost reads a file. most is the maximum size in bytes; it returns an error for a larger file.
func ReadAtMost(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(data)) > most {
		err = fmt.Errorf("%s has more than the %d bytes that are accepted", path, most)
	}
	return data, err
}

// RefuseNamedPipe returns an error if there is a named pipe at a path. It does not open the pipe. The pipes of a shell,
// such as /dev/fd/63 of <(command), are accepted.
func RefuseNamedPipe(path string) error {
	info, err := os.Stat(path)
	if err != nil || info.Mode()&os.ModeNamedPipe == 0 {
		return nil //nolint:nilerr // reading the file reports the error
	}
	for _, place := range []string{"/dev/fd/", "/dev/stdin", "/proc/"} {
		if strings.HasPrefix(filepath.Clean(path), place) {
			return nil
		}
	}
	return fmt.Errorf("%s is a named pipe; a check does not read it, because the gateway could not read it afterwards",
		path)
}

// AddAuthorities adds the certificates in the PEM file at path to a pool.
func AddAuthorities(ctx context.Context, to *x509.CertPool, path string) error {
	content, err := ReadFile(ctx, path)
	if err != nil {
		return err
	}
	return certificate.AddAuthorities(to, certificate.File{Path: path, Content: content})
}

// ReadKeyPair reads the PEM files of a certificate and its key.
func ReadKeyPair(ctx context.Context, cert, key string) (tls.Certificate, error) {
	certPEM, err1 := ReadFile(ctx, cert)
	keyPEM, err2 := ReadFile(ctx, key)
	if err := errors.Join(err1, err2); err != nil {
		return tls.Certificate{}, err
	}
	certFile := certificate.File{Path: cert, Content: certPEM}
	return certificate.Pair(certFile, certificate.File{Path: key, Content: keyPEM})
}

// Variables has the names of the known environment variables.
type Variables struct {
	// Own are the variables of the command that is running. Others are the variables of other commands.
	Own, Others []string
}

// The annotations of flags.
const (
	// loadedFrom is the environment variable or the file from which a flag was set.
	loadedFrom = "loaded-from"
	// commandLineOnly marks a flag that can only be set on the command line.
	commandLineOnly = "command-line-only"
)

// Named reports whether a flag was set on the command line.
func Named(flags *pflag.FlagSet, name string) bool {
	f := flags.Lookup(name)
	return f != nil && f.Changed && f.Annotations[loadedFrom] == nil
}

// Source returns where the value of a flag comes from: "default", "flag", or the environment variable or file from
// which [Load] has set it.
func Source(f *pflag.Flag) string {
	from := f.Annotations[loadedFrom]
	switch {
	case !f.Changed:
		return "default"
	case len(from) > 0:
		return from[0]
	}
	return "flag"
}

// OnlyOnCommandLine marks a flag that can only be set on the command line.
func OnlyOnCommandLine(flags *pflag.FlagSet, name string) error {
	return flags.SetAnnotation(name, commandLineOnly, []string{})
}

// FromEnvironment reports whether a flag can be set by an environment variable.
func FromEnvironment(f *pflag.Flag) bool {
	_, only := f.Annotations[commandLineOnly]
	return f.Name != "help" && !only
}

// FileError means that the configuration file cannot be read.
type FileError struct {
	// Err is the cause.
	Err error
}

// Error returns the text of the cause.
func (e *FileError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *FileError) Unwrap() error { return e.Err }

// Load sets the flags that are not on the command line: from the environment, or else from the configuration file. It
// calls warn for each unknown environment variable that looks like a setting. The error joins all problems. One of them
// is a [*FileError] if the configuration file cannot be read.
func Load(ctx context.Context, flags *pflag.FlagSet, known Variables, warn func(string)) error {
	known.check(os.Environ(), warn)
	var errs []error
	set := func(f *pflag.Flag, value, place, source string) {
		_ = flags.SetAnnotation(f.Name, loadedFrom, []string{source}) // the flag exists
		if err := flags.Set(f.Name, value); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", place, refusedValue(f, value, err)))
		}
	}
	flags.VisitAll(func(f *pflag.Flag) {
		if value, ok := os.LookupEnv(EnvName(f.Name)); ok && !f.Changed && FromEnvironment(f) {
			set(f, value, EnvName(f.Name), EnvName(f.Name))
		}
	})
	path := ""
	if f := flags.Lookup(FileFlag); f != nil {
		path = f.Value.String()
	}
	if path == "" {
		return errors.Join(errs...)
	}
	values, err := readSettings(ctx, path)
	if err != nil {
		return errors.Join(append(errs, &FileError{Err: err})...)
	}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		f := flags.Lookup(key)
		switch {
		case f == nil || key == FileFlag || !FromEnvironment(f):
			errs = append(errs, fmt.Errorf("%s: unknown key %q%s", path, key, suggest(key, names(flags))))
		case values[key] == nil:
			errs = append(errs, fmt.Errorf("%s: %s: there is no value; leave the key out for the default", path, key))
		case !f.Changed:
			set(f, text(values[key]), path+": "+key, path)
		}
	}
	return errors.Join(errs...)
}

// readSettings reads a configuration file.
func readSettings(ctx context.Context, path string) (map[string]any, error) {
	raw, err := ReadFile(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("configuration file: %w", err)
	}
	asJSON, err := manifest.ToJSON(string(raw))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	dec := json.NewDecoder(bytes.NewReader(asJSON))
	dec.UseNumber()
	values := map[string]any{}
	if err := dec.Decode(&values); err != nil {
		return nil, fmt.Errorf("%s: there are no settings in it, written as key: value", path)
	}
	return values, nil
}

// foreign matches variables that begin with the prefix but are not settings: the variables of the project's tests, and
// those that Kubernetes sets in each container if there is a Service whose name begins with sluice.
var foreign = regexp.MustCompile(`^SLUICE_(TEST_.*|(.*_)?(SERVICE_HOST|SERVICE_PORT(_.*)?|PORT(_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?))$`)

// check warns about unknown variables that look like settings, and suggests known ones. An unknown variable is not an
// error, because another program or release may use it.
func (v Variables) check(environ []string, warn func(string)) {
	for _, one := range environ {
		name, _, _ := strings.Cut(one, "=")
		if strings.HasPrefix(name, EnvPrefix) && !slices.Contains(v.Own, name) && !slices.Contains(v.Others, name) &&
			!foreign.MatchString(name) {
			warn("unknown environment variable " + name + suggest(name, v.Own))
		}
	}
}

func text(value any) string {
	if list, ok := value.([]any); ok {
		parts := make([]string, len(list))
		for i, v := range list {
			parts[i] = fmt.Sprint(v)
		}
		return strings.Join(parts, ",")
	}
	if mapping, ok := value.(map[string]any); ok {
		if raw, err := json.Marshal(mapping); err == nil {
			return string(raw)
		}
	}
	return fmt.Sprint(value)
}

func names(flags *pflag.FlagSet) (out []string) {
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Name != FileFlag && FromEnvironment(f) {
			out = append(out, f.Name)
		}
	})
	return out
}

func suggest(wrong string, known []string) string {
	best := slices.MinFunc(known, func(a, b string) int {
		return levenshtein.ComputeDistance(a, wrong) - levenshtein.ComputeDistance(b, wrong)
	})
	if levenshtein.ComputeDistance(best, wrong) <= 3 {
		return fmt.Sprintf("; did you mean %q?", best)
	}
	return "; known are " + strings.Join(known, ", ")
}
