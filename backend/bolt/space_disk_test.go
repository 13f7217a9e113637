//go:build linux

package bolt_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/bolt"
)

// TestSpace_FullDisk runs TestSpace_FullDiskChild in a process whose files may not grow:
// the limit is per process, and this one has other files to write.
func TestSpace_FullDisk(t *testing.T) {
	cmd, out := child(t, "full disk", filepath.Join(t.TempDir(), "sluice.db"), "", "-test.run=^TestSpace_FullDiskChild$", "-test.v")
	var text strings.Builder
	_ = lines(bufio.NewReader(out), func(f []string) { fmt.Fprintln(&text, f) })
	if err := cmd.Wait(); err != nil || !strings.Contains(text.String(), "held") {
		t.Errorf("%v:\n%s", err, text.String())
	}
}

// TestSpace_FullDiskChild does nothing but in the process that TestSpace_FullDisk starts.
func TestSpace_FullDiskChild(t *testing.T) {
	if os.Getenv(childRole) != "full disk" {
		return
	}
	signal.Ignore(syscall.SIGXFSZ) // then a write over the limit fails with EFBIG
	path := os.Getenv(childPath)
	for _, limit := range []func(size int64) int64{
		func(size int64) int64 { return size + 100 }, // the file cannot grow
		func(int64) int64 { return 40 << 10 },        // not even its pages can be written
	} {
		synctest.Test(t, func(t *testing.T) { fillDisk(t, path, limit) })
	}
	if !t.Failed() {
		fmt.Println("held")
	}
}

func fillDisk(t *testing.T, path string, limit func(size int64) int64) {
	s := mustOpen(t, bolt.Config{Path: path})
	begin, err := s.Position(t.Context())
	wantErr(t, err, nil)
	acked := map[string]bool{}
	unknown := map[string]bool{}
	body := strings.Repeat("x", 300_000)
	write := func(i int) error {
		id := fmt.Sprint("r", i)
		_, err := s.Apply(t.Context(), batch(s, id, id, body))
		switch {
		case err == nil:
			acked[id] = true
		case errors.Is(err, backend.ErrUnknown):
			unknown[id] = true
		case !errors.Is(err, backend.ErrUnavailable):
			t.Fatalf("write %d: %v", i, err)
		}
		return err
	}
	i := 0
	for ; i < 20; i++ {
		wantErr(t, write(i), nil)
	}
	info, err := os.Stat(path)
	wantErr(t, err, nil)
	var before syscall.Rlimit
	wantErr(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before), nil)
	full := before
	full.Cur = uint64(limit(info.Size()))
	wantErr(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &full), nil)
	failed := 0
	for ; failed < 50 && i < 1000; i++ {
		if write(i) != nil {
			failed++
			<-time.After(5 * time.Millisecond)
		}
		if rs, err := s.Get(t.Context(), key("r0")); err == nil && rs[0] == nil {
			t.Fatal("an acknowledged resource is gone")
		}
	}
	wantErr(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &before), nil)
	if failed < 50 || len(unknown) != 0 {
		t.Fatalf("%d writes failed, %d of unknown outcome", failed, len(unknown))
	}
	<-time.After(10 * time.Second)
	wantErr(t, write(i), nil)
	applied := map[string]bool{}
	for _, e := range replay(t, s, begin) {
		if applied[e.RequestID] {
			t.Errorf("%s was applied twice", e.RequestID)
		}
		applied[e.RequestID] = true
	}
	for id := range acked {
		if rs, err := s.Get(t.Context(), key(id)); err != nil || rs[0] == nil || !applied[id] {
			t.Errorf("%s was acknowledged and is not there, error %v", id, err)
		}
	}
	for id := range applied {
		if !acked[id] && !unknown[id] {
			t.Errorf("%s was applied, its caller heard otherwise", id)
		}
	}
	wantErr(t, s.Check(t.Context()), nil)
	mustClose(t, s)
}
