package redistest

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// AOFSize returns the size of the append-only file in bytes.
func (s *Server) AOFSize() int64 {
	s.t.Helper()
	info, err := os.Stat(s.aof())
	if err != nil {
		s.t.Fatalf("redistest: %v", err)
	}
	return info.Size()
}

// TruncateAOF removes the last n bytes of the append-only file, as a power failure may do. The server must not be
// running.
func (s *Server) TruncateAOF(n int64) {
	s.t.Helper()
	if err := os.Truncate(s.aof(), max(s.AOFSize()-n, 0)); err != nil {
		s.t.Fatalf("redistest: %v", err)
	}
}

// repairAOF removes an incomplete transaction from the end of the append-only file, where a kill may leave one. The
// server itself removes only the incomplete command. After another start, it would execute the rest of the transaction
// together with the commands that follow (https://github.com/valkey-io/valkey/pull/4342).
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

// aof returns the path of the part of the append-only file to which the server appends.
func (s *Server) aof() string {
	s.t.Helper()
	parts, err := filepath.Glob(filepath.Join(s.Dir, "appendonlydir", "*.incr.aof"))
	if err != nil || len(parts) == 0 {
		s.t.Fatalf("redistest: no append-only file in %s (error %v); start the server with AOF", s.Dir, err)
	}
	return slices.Max(parts)
}
