package leaktest_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/internal/leaktest"
)

// leaves makes the test that it names leave a goroutine behind.
const leaves = "LEAKTEST_LEAVES"

func TestMain(m *testing.M) { leaktest.Main(m) }

func TestAPackageThatLeavesAGoroutineFailsAndSaysWhich(t *testing.T) {
	if os.Getenv(leaves) != "" {
		go waitForEver()
		return
	}
	t.Parallel()
	for role, code := range map[string]int{"": 0, "a goroutine": 1} {
		cmd := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$")
		if role == "" {
			cmd.Args[2] = "^$"
		}
		cmd.Env = append(os.Environ(), leaves+"="+role)
		out, _ := cmd.CombinedOutput()
		if got := cmd.ProcessState.ExitCode(); got != code {
			t.Errorf("leaving %q: exit %d, want %d\n%s", role, got, code, out)
		}
		if named := strings.Contains(string(out), "waitForEver"); named != (code == 1) {
			t.Errorf("leaving %q: %s", role, out)
		}
	}
}

func waitForEver() { select {} }
