// Package commandtest runs command lines in tests, against a gateway that has one kind.
package commandtest

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/sluicegw/sluice/cmd/sluice/command"
	"github.com/sluicegw/sluice/cmd/sluice/config"
	"github.com/sluicegw/sluice/cmd/sluice/remote"
	"github.com/sluicegw/sluice/cmd/sluice/terminal"
)

// NewRoot returns a root command with the given subcommands.
func NewRoot(commands ...*cobra.Command) *cobra.Command {
	root := &cobra.Command{Use: "sluice", SilenceErrors: true, SilenceUsage: true}
	root.AddCommand(commands...)
	remote.CompleteAll(root)
	return root
}

// Run runs a command line and returns what it has printed, and its exit code.
func Run(t *testing.T, newRoot func(terminal.Streams) *cobra.Command, args ...string) (out, errOut string, code int) {
	t.Helper()
	var o, e strings.Builder
	code = command.Run(t.Context(), newRoot, args, terminal.Streams{In: strings.NewReader(""), Out: &o, Err: &e})
	return o.String(), e.String(), code
}

// Must runs a command line and returns its output. It fails the test if the command fails.
func Must(t *testing.T, newRoot func(terminal.Streams) *cobra.Command, args ...string) string {
	t.Helper()
	out, errOut, code := Run(t, newRoot, args...)
	if code != 0 {
		t.Fatalf("sluice %v: exit %d %s", args, code, errOut)
	}
	return out
}

// FreshContexts gives a test an empty file of contexts and no keyring. It returns the folder of the file.
func FreshContexts(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	t.Setenv(config.ContextsVariable, filepath.Join(folder, "contexts.yaml"))
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path="+filepath.Join(folder, "no-bus"))
	return folder
}

// WriteFile writes a file and returns its path.
func WriteFile(t *testing.T, folder, name, text string) string {
	t.Helper()
	path := filepath.Join(folder, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// FullDisk is a writer that fails as if the disk had no space.
type FullDisk struct{}

// Write implements [io.Writer].
func (FullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left") }
