package redis_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/internal/redistest"
)

// serverInfo is a number that the server's INFO tells.
func serverInfo(t *testing.T, s *redistest.Server, section, field string) int {
	t.Helper()
	for line := range strings.Lines(s.Client().Info(t.Context(), section).Val()) {
		if text, ok := strings.CutPrefix(strings.TrimSpace(line), field+":"); ok {
			n, err := strconv.Atoi(text)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatalf("no %s in the section %s", field, section)
	return 0
}
