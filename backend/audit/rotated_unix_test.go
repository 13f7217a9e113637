//go:build unix

package audit_test

import (
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"

	"github.com/sluicegw/sluice/backend/audit"
	"github.com/sluicegw/sluice/backend/memory"
)

// noRoomVariable is set in the process in which no file can be written.
const noRoomVariable = "SLUICE_TEST_AUDIT_NO_ROOM"

// TestFile_MakesRoomOnADiskThatIsFullOfRenamedFiles has no full disk, but a limit by which every write to a file fails.
// The limit is for a whole process, so the test runs in one of its own.
func TestFile_MakesRoomOnADiskThatIsFullOfRenamedFiles(t *testing.T) {
	if os.Getenv(noRoomVariable) == "" {
		again := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
		again.Env = append(os.Environ(), noRoomVariable+"=1")
		if out, err := again.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
		return
	}
	w := newWorld(t, memory.Config{})
	_, stop := w.run(&audit.File{Path: w.path, Size: 1})
	w.changes(4)
	stop()
	before := w.rotated()
	limitFiles(t, 0)
	l, stop := w.run(&audit.File{Path: w.path, Size: 1, MaxFiles: 2})
	defer stop()
	w.until(func() bool { return len(w.rotated()) == 2 })
	if len(before) < 3 || l.Failed(audit.FailedWrite) == 0 {
		t.Errorf("there were %d files, and %d writes failed", len(before), l.Failed(audit.FailedWrite))
	}
	limitFiles(t, 1<<20)
	w.put("Network", "later", "")
	w.until(func() bool { lines := w.linesOf(w.path); return len(lines) > 0 && lines[len(lines)-1].Name == "later" })
}

// limitFiles sets the size that files of this process may have, in bytes.
func limitFiles(t *testing.T, size uint64) {
	t.Helper()
	signal.Ignore(syscall.SIGXFSZ) // it would end the process
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}
	limit.Cur = size
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}
}
