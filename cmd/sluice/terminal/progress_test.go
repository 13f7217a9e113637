package terminal

import (
	"os"
	"testing"
)

func TestProgressWriter_IsNilWithoutATerminalThatMovesItsCursor(t *testing.T) {
	file, err := os.Create(t.TempDir() + "/file")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	if progressWriter(file) != nil {
		t.Error("progress is written to a file")
	}
	device, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("no pseudo terminal: %v", err)
	}
	defer func() { _ = device.Close() }()
	t.Setenv("TERM", "xterm")
	if progressWriter(device) == nil {
		t.Error("no progress is written to a terminal")
	}
	t.Setenv("TERM", "dumb")
	if progressWriter(device) != nil {
		t.Error("progress is written to a terminal that has no control characters")
	}
}
