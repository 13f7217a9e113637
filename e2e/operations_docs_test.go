package e2e_test

import (
	"testing"
)

func TestTheLinesOfOperationsRun(t *testing.T) {
	dir := folder(t, map[string]string{"sluice.yaml": "retain-age: 2d\nlisten: 127.0.0.1:0\n"})
	for _, section := range []string{"Installing", "Checking the settings", "The audit log", "Traces"} {
		lines := sectionLines(t, "operations.md", section)
		if len(lines) == 0 {
			t.Errorf("%s has no lines", section)
		}
		for _, line := range lines {
			if out, err := runLine(t, line, dir); err != nil || len(out) == 0 {
				t.Errorf("%s%v\n%s", line, err, out)
			}
		}
	}
}
