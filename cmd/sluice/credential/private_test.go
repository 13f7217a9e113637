package credential_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/sluicegw/sluice/cmd/sluice/credential"
)

func TestChangesAtOnceLoseNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "file")
	var wg sync.WaitGroup
	const writers = 20
	for i := range writers {
		wg.Go(func() {
			if err := credential.UpdatePrivate(t.Context(), path, func(data []byte) ([]byte, error) { return fmt.Appendf(data, "%d\n", i), nil }); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	data, err := credential.ReadPrivate(path)
	if err != nil || strings.Count(string(data), "\n") != writers {
		t.Errorf("%q %v", data, err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 2 {
		t.Errorf("%v %v: the file and its lock are wanted", entries, err)
	}
}

func TestAFileThatOthersCouldReadIsPrivateAfterAChange(t *testing.T) {
	folder := t.TempDir()
	path, link := filepath.Join(folder, "file"), filepath.Join(folder, "link")
	if err := errors.Join(os.WriteFile(path, []byte("a"), 0o644), os.Symlink(path, link)); err != nil {
		t.Fatal(err)
	}
	if err := credential.UpdatePrivate(t.Context(), link, func([]byte) ([]byte, error) { return []byte("b"), nil }); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	data, _ := credential.ReadPrivate(path)
	if err != nil || info.Mode().Perm() != 0o600 || string(data) != "b" {
		t.Errorf("%v %q %v", info.Mode(), data, err)
	}
	if target, err := os.Readlink(link); err != nil || target != path {
		t.Errorf("the link leads to %s %v", target, err)
	}
}

func TestAChangeThatFailsLeavesTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte("a"), 0o600); err != nil {
		t.Fatal(err)
	}
	failure := errors.New("no")
	err := credential.UpdatePrivate(t.Context(), path, func([]byte) ([]byte, error) { return []byte("b"), failure })
	if data, _ := credential.ReadPrivate(path); !errors.Is(err, failure) || string(data) != "a" {
		t.Errorf("%q %v", data, err)
	}
}

func TestAFileThatIsTooLargeIsNotRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, make([]byte, credential.MaxPrivate+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := credential.ReadPrivate(path); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("%v", err)
	}
}

func TestWhoWaitsForAnotherProcessCanBeStopped(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	ctx, stop := context.WithCancel(t.Context())
	err := credential.UpdatePrivate(t.Context(), path, func([]byte) ([]byte, error) {
		stop()
		return nil, credential.UpdatePrivate(ctx, path, func(data []byte) ([]byte, error) { return data, nil })
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
