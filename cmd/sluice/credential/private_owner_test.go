//go:build unix

package credential_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/sluicegw/sluice/cmd/sluice/credential"
)

// TestAFileKeepsItsOwner is of root, who revokes a token of a gateway that runs as somebody else: the gateway
// must be able to read that.
func TestAFileKeepsItsOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root may give a file to somebody")
	}
	path := filepath.Join(t.TempDir(), "file")
	if err := errors.Join(os.WriteFile(path, []byte("a"), 0o600), os.Chown(path, 65534, 65534)); err != nil {
		t.Fatal(err)
	}
	if err := credential.UpdatePrivate(t.Context(), path, func([]byte) ([]byte, error) { return []byte("b"), nil }); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if owner := info.Sys().(*syscall.Stat_t); owner.Uid != 65534 || owner.Gid != 65534 || info.Mode().Perm() != 0o600 {
		t.Errorf("it belongs to %d:%d, mode %v", owner.Uid, owner.Gid, info.Mode())
	}
}
