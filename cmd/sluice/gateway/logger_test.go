package gateway

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestNewLogger_HasNoColoursInAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	log, err := NewLogger(f, "info", "console")
	if err != nil {
		t.Fatal(err)
	}
	log.Info("hello")
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(raw), "INFO\thello") || strings.Contains(string(raw), "\x1b") {
		t.Errorf("%q %v", raw, err)
	}
}
