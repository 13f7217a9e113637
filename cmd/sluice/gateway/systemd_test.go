package gateway

import (
	"context"
	"net"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
)

// managerSocket stands in for systemd. next returns the next message.
func managerSocket(t *testing.T) (next func() string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("there are no sockets for datagrams in the file system")
	}
	address := &net.UnixAddr{Name: filepath.Join(t.TempDir(), "notify"), Net: "unixgram"}
	socket, err := net.ListenUnixgram("unixgram", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = socket.Close() })
	t.Setenv("NOTIFY_SOCKET", address.Name)
	return func() string {
		if err := socket.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
			t.Fatal(err)
		}
		message := make([]byte, 4096)
		n, err := socket.Read(message)
		if err != nil {
			t.Fatal(err)
		}
		return string(message[:n])
	}
}

func TestServiceManager_IsToldOfTheBeginAndTheEnd(t *testing.T) {
	next := managerSocket(t)
	m := serviceManager{log: zap.NewNop()}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- m.Run(ctx, "http://127.0.0.1:1") }()
	if got := next(); got != "READY=1\nSTATUS=serves http://127.0.0.1:1" {
		t.Errorf("%q", got)
	}
	stop()
	if got := next(); !strings.HasPrefix(got, "STOPPING=1\n") {
		t.Errorf("%q", got)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestServiceManager_FeedsTheWatchdogWhileTheGatewayResponds(t *testing.T) {
	next := managerSocket(t)
	t.Setenv("WATCHDOG_USEC", "2000")
	responds := make(chan struct{})
	m := serviceManager{log: zap.NewNop(), alive: func() { <-responds }}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- m.Watch(ctx) }()
	for range 3 {
		responds <- struct{}{}
		if got := next(); got != "WATCHDOG=1" {
			t.Errorf("%q", got)
		}
	}
	stop()
	close(responds)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestServiceManager_DoesNothingWithoutSystemd(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "")
	t.Setenv("WATCHDOG_USEC", "")
	m := serviceManager{log: zap.NewNop(), alive: func() { t.Error("the watchdog is fed") }}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := m.Watch(ctx); err != nil {
		t.Error(err)
	}
	if err := m.Run(ctx, ""); err != nil {
		t.Error(err)
	}
}
