package e2e_test

import (
	"testing"
)

func TestTheLinesOfOperationsRun(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"sluice.yaml": "retain-age: 2d\nlisten: 127.0.0.1:0\n"})
	for _, at := range []struct{ page, section string }{
		{"deployment.md", "Archives"},
		{"observability.md", "Traces"},
		{"operations.md", "Checking the settings"},
		{"operations.md", "The audit log"},
	} {
		lines := sectionLines(t, at.page, at.section)
		if len(lines) == 0 {
			t.Errorf("%s has no lines in %s", at.page, at.section)
		}
		for _, line := range lines {
			// Something may listen on the default port of this machine, which a check says.
			if out, err := runLine(t, line, dir, "SLUICE_LISTEN=127.0.0.1:0"); err != nil || len(out) == 0 {
				t.Errorf("%s%v\n%s", line, err, out)
			}
		}
	}
}
