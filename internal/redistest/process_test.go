package redistest_test

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/internal/redistest"
)

// childRole is set in the environment of a test process that is to be killed.
const childRole = "REDISTEST_CHILD"

func TestNoServerOutlivesATestProcessThatIsKilled(t *testing.T) {
	if os.Getenv(childRole) != "" {
		fmt.Println(shared.Server(t).Addr)
		select {}
	}
	cmd := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), childRole+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	_ = cmd.Process.Kill()
	_ = cmd.Wait() // says that it was killed
	if err != nil {
		t.Fatal(err)
	}
	addr := strings.TrimSpace(line)
	redistest.Await(t, "end of "+addr, func() error {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			return nil
		}
		return errors.Join(c.Close(), errors.New("it still answers"))
	})
}

// refused takes what a test is told when it cannot go on.
type refused struct {
	testing.TB
	why string
}

func (r *refused) Fatalf(format string, args ...any) {
	r.why = fmt.Sprintf(format, args...)
	panic(r)
}

func TestAMissingServerIsSaidInOneLine(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	r := &refused{TB: t}
	func() {
		defer func() { _ = recover() }()
		redistest.Start(r)
	}()
	want(t, r.why, "redistest: no redis-server in PATH; on Debian: apt-get install redis-server")
}
