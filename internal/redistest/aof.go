package redistest

import (
	"os"
	"path/filepath"
	"slices"
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

// aof is the part of the append-only file that is written now.
func (s *Server) aof() string {
	s.t.Helper()
	parts, err := filepath.Glob(filepath.Join(s.Dir, "appendonlydir", "*.incr.aof"))
	if err != nil || len(parts) == 0 {
		s.t.Fatalf("redistest: no append-only file in %s (error %v); start the server with AOF", s.Dir, err)
	}
	return slices.Max(parts)
}
