package redistest

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// AOFSize is the number of bytes of the append-only file.
func (s *Server) AOFSize() int64 {
	s.t.Helper()
	info, err := os.Stat(s.aof())
	if err != nil {
		s.t.Fatalf("redistest: %v", err)
	}
	return info.Size()
}

// TruncateAOF cuts the last n bytes off the append-only file, as a power loss
// does. The server must not run.
func (s *Server) TruncateAOF(n int64) {
	s.t.Helper()
	if err := os.Truncate(s.aof(), max(s.AOFSize()-n, 0)); err != nil {
		s.t.Fatalf("redistest: %v", err)
	}
}

// repairAOF takes a transaction off the end of the append-only file that a kill
// has cut in the middle. The server takes only the cut command off: the rest of
// the transaction is executed by the start after the next, together with what
// comes after it (https://github.com/valkey-io/valkey/pull/4342).
func (s *Server) repairAOF() {
	s.t.Helper()
	manifests, err := filepath.Glob(filepath.Join(s.Dir, "appendonlydir", "*.manifest"))
	if err != nil || len(manifests) == 0 {
		return
	}
	cmd := exec.Command("redis-check-aof", "--fix", manifests[0])
	cmd.Stdin = strings.NewReader("y\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		s.t.Fatalf("redistest: redis-check-aof: %v\n%s", err, out)
	}
}

// aof is the part of the append-only file that is written now.
func (s *Server) aof() string {
	s.t.Helper()
	parts, err := filepath.Glob(filepath.Join(s.Dir, "appendonlydir", "*.incr.aof"))
	if err != nil || len(parts) == 0 {
		s.t.Fatalf("redistest: no append-only file in %s (error %v); start the server with AOF", s.Dir, err)
	}
	return slices.Max(parts)
}
