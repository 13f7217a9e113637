package reload_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicegw/sluice/cmd/sluice/reload"
)

// place is a path of a socket that is short enough.
func place(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "s")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return filepath.Join(dir, "admin.sock")
}

// gateway notes what it is asked, and how many ask at a time.
type gateway struct {
	mu       sync.Mutex
	requests []reload.Request
	now      int
	together bool
}

func (g *gateway) Reload(_ context.Context, r reload.Request) reload.Answer {
	g.mu.Lock()
	g.requests = append(g.requests, r)
	g.now++
	g.together = g.together || g.now > 1
	g.mu.Unlock()
	defer func() {
		g.mu.Lock()
		g.now--
		g.mu.Unlock()
	}()
	return reload.Answer{Result: reload.Refused, Hash: "h", Lines: []string{"a", "b"}}
}

// serve serves a gateway at a path until the test ends, or stop is called.
func serve(t *testing.T, path string, g reload.Catalogues) (stop func()) {
	t.Helper()
	return serveHandler(t, path, reload.NewHandler(g))
}

func serveHandler(t *testing.T, path string, h http.Handler) (stop func()) {
	t.Helper()
	s, err := reload.Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, map[string]http.Handler{"POST " + reload.Path: h}) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := errors.Join(<-done, s.Close()); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// send asks the gateway that listens at a path.
func send(t *testing.T, ctx context.Context, path string, r reload.Request) (reload.Answer, error) {
	c, err := reload.Client(path)
	if err != nil {
		t.Error(err)
		return reload.Answer{}, err
	}
	return reload.Send(ctx, c, r)
}

func TestRequestsAreAnsweredOneAtATime(t *testing.T) {
	path, g := place(t), &gateway{}
	stop := serve(t, path, g)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			a, err := send(t, t.Context(), path, reload.Request{AllowBreaking: true, Files: map[string]string{"x": "y"}})
			if err != nil || a.Result != reload.Refused || a.Hash != "h" || len(a.Lines) != 2 {
				t.Errorf("%v %v", a, err)
			}
		})
	}
	all.Wait()
	if len(g.requests) != 8 || !g.requests[0].AllowBreaking || g.requests[0].Files["x"] != "y" || g.together {
		t.Errorf("asked %v, together: %v", g.requests, g.together)
	}
	stop()
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is left: %v", err)
	}
	if _, err := send(t, t.Context(), path, reload.Request{}); err == nil || !strings.Contains(err.Error(), "no gateway answers at "+path) {
		t.Errorf("it says %v", err)
	}
}

func TestOnlyTheGatewaysOwnUserOpensTheSocket(t *testing.T) {
	path := place(t)
	serve(t, path, &gateway{})
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 || info.Mode()&os.ModeSocket == 0 {
		t.Errorf("its mode is %v, %v", info.Mode(), err)
	}
	if left, _ := os.ReadDir(filepath.Dir(path)); len(left) != 2 { // with its lock
		t.Errorf("beside it there is %v", left)
	}
}

func TestASocketOfADeadProcessIsReplacedAndThatOfALiveOneIsNot(t *testing.T) {
	path := place(t)
	stale, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	stale.SetUnlinkOnClose(false)
	_ = stale.Close()
	serve(t, path, &gateway{})
	if _, err := reload.Listen(path); !errors.Is(err, reload.ErrInUse) || err.Error() != path+": it is in use by another process" {
		t.Errorf("it says %v", err)
	}
	if a, err := send(t, t.Context(), path, reload.Request{}); err != nil || a.Hash != "h" {
		t.Errorf("the first one answers %v, %v", a, err)
	}
}

func TestWhatIsNoSocketIsLeftAlone(t *testing.T) {
	path := place(t)
	if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := reload.Listen(path); err == nil || !strings.Contains(err.Error(), "is there and is no socket") {
		t.Errorf("it says %v", err)
	}
	if text, _ := os.ReadFile(path); string(text) != "mine" {
		t.Errorf("the file is %q", text)
	}
	if _, err := reload.Listen("/tmp/" + strings.Repeat("x", 100)); !errors.Is(err, reload.ErrTooLong) {
		t.Errorf("it says %v", err)
	}
}

// post sends some text over a socket, and returns the whole answer.
func post(t *testing.T, path, text string) string {
	t.Helper()
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := fmt.Fprintf(conn, "POST /catalogue HTTP/1.1\r\nHost: gateway\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", len(text), text); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	return string(answer)
}

func TestAClientThatSendsNothingHoldsUpNobody(t *testing.T) {
	path, g := place(t), &gateway{}
	serve(t, path, g)
	slow, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = slow.Close() }()
	if _, err := io.WriteString(slow, "POST /catalogue HTTP/1.1\r\nHost: gateway\r\nContent-Length: 100\r\nExpect: 100-continue\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	begun := make([]byte, len("HTTP/1.1 100 Continue\r\n\r\n")) // its body is being read now
	if _, err := io.ReadFull(slow, begun); err != nil || !strings.HasPrefix(string(begun), "HTTP/1.1 100") {
		t.Fatalf("%q %v", begun, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if a, err := send(t, ctx, path, reload.Request{}); err != nil || a.Hash != "h" {
		t.Errorf("%v %v", a, err)
	}
}

func TestARequestThatIsNotUnderstoodIsRefused(t *testing.T) {
	path, g := place(t), &gateway{}
	serve(t, path, g)
	for text, says := range map[string]string{
		`{"dry_run":true}`:                      `unknown field \"dry_run\"; wanted is one JSON object with allowBreaking, dryRun, files, folder, violations and purge`,
		`{"dryRun":true}{"allowBreaking":true}`: "more follows the JSON object",
		`{"dryRun":true} x`:                     "more follows the JSON object",
		`{"dryRun":"yes"}`:                      "dryRun has a value of another type; wanted is one JSON object",
		`{"dryRun":`:                            "it is cut off, or not JSON; wanted is one JSON object",
	} {
		if got := post(t, path, text); !strings.HasPrefix(got, "HTTP/1.1 400 ") || !strings.Contains(got, says) {
			t.Errorf("%s: %s", text, got)
		}
	}
	if len(g.requests) > 0 {
		t.Errorf("asked %v", g.requests)
	}
	if got := post(t, path, "{\"dryRun\":true}\n"); !strings.HasPrefix(got, "HTTP/1.1 200 ") || len(g.requests) != 1 || !g.requests[0].DryRun {
		t.Errorf("%s, asked %v", got, g.requests)
	}
}

func TestWhatTookTheSocketsPlaceStays(t *testing.T) {
	path := place(t)
	stop := serve(t, path, &gateway{})
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	stop()
	if text, err := os.ReadFile(path); string(text) != "mine" {
		t.Errorf("the file is %q, %v", text, err)
	}
}

func TestARequestThatIsTooLargeIsRefused(t *testing.T) {
	path, g := place(t), &gateway{}
	serve(t, path, g)
	_, err := send(t, t.Context(), path, reload.Request{Files: map[string]string{"x": strings.Repeat("x", 35<<20)}})
	if err == nil || len(g.requests) > 0 {
		t.Errorf("it says %v", err)
	}
}
