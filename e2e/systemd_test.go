package e2e_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// unit is the unit of the packages.
const unit = "../deploy/systemd/sluice.service"

func TestTheGatewayTellsSystemdHowItIs(t *testing.T) {
	address := &net.UnixAddr{Name: filepath.Join(t.TempDir(), "notify"), Net: "unixgram"}
	socket, err := net.ListenUnixgram("unixgram", address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = socket.Close() }()
	next := func() string {
		if err := socket.SetReadDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		message := make([]byte, 4096)
		n, err := socket.Read(message)
		if err != nil {
			t.Fatal(err)
		}
		return string(message[:n])
	}
	t.Setenv("NOTIFY_SOCKET", address.Name)
	t.Setenv("WATCHDOG_USEC", "200000")
	g := start(t, "")
	ready, fed := false, 0
	for !ready || fed < 3 {
		switch message := next(); {
		case message == "WATCHDOG=1":
			fed++
		case strings.HasPrefix(message, "READY=1\n"):
			ready = true
			if !strings.Contains(message, "STATUS=serves "+g.address) {
				t.Errorf("%q", message)
			}
		default:
			t.Fatalf("%q", message)
		}
	}
	if err := g.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for message := ""; !strings.HasPrefix(message, "STOPPING=1\n"); {
		message = next()
	}
}

// TestTheUnitIsAlwaysStartedAgain: by default systemd gives up after five failures within 10 s, which a gateway without
// its KMS plugin reaches.
func TestTheUnitIsAlwaysStartedAgain(t *testing.T) {
	text, err := os.ReadFile(unit)
	if err != nil {
		t.Fatal(err)
	}
	section, _, _ := strings.Cut(string(text), "[Service]")
	if !strings.Contains(section, "\nStartLimitIntervalSec=0\n") {
		t.Errorf("systemd limits the restarts:\n%s", section)
	}
}

// TestTheUnitIsHardened looks at the unit as systemd does.
func TestTheUnitIsHardened(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("there is no systemd-analyze")
	}
	out, err := exec.Command(analyze, "security", "--offline=true", "--no-pager", "--threshold=15", unit).CombinedOutput()
	if strings.Contains(string(out), "unrecognized option") {
		t.Skip("systemd is older than 250")
	}
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if !regexp.MustCompile(`Overall exposure level.*: [01]\.\d`).Match(out) {
		t.Errorf("%s", out)
	}
}
