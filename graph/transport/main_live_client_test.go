package transport_test

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sluicegw/sluice/internal/leaktest"
)

// listenersEnv makes this test binary a process of subscribers: what it costs to
// listen is then no part of what it costs to serve.
const listenersEnv = "SLUICE_TEST_LISTENERS"

func TestMain(m *testing.M) {
	if spec := os.Getenv(listenersEnv); spec != "" {
		if err := listeners(spec); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		return
	}
	leaktest.Main(m)
}

// crowd is many subscribers in a process of their own.
type crowd struct {
	tb    testing.TB
	cmd   *exec.Cmd
	stdin io.Closer
	lines *bufio.Scanner
	n     int
}

// startCrowd connects n subscribers, who then wait for the first frames: as many
// as are skipped come before what counts. An empty query sends nothing at all.
func startCrowd(tb testing.TB, address string, n, skip int, query string) *crowd {
	tb.Helper()
	c := &crowd{tb: tb, n: n, cmd: exec.Command(os.Args[0])}
	c.cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d %d %s", listenersEnv, address, n, skip, query))
	c.cmd.Stderr = os.Stderr
	var err error
	if c.stdin, err = c.cmd.StdinPipe(); err != nil {
		tb.Fatal(err)
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	c.lines = bufio.NewScanner(out)
	if err := c.cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	c.wait("ready")
	return c
}

// wait is until the listeners say so: "ready" once, "all" when as many frames
// more have come as there are listeners.
func (c *crowd) wait(word string) {
	c.tb.Helper()
	if !c.lines.Scan() || c.lines.Text() != word {
		c.tb.Fatalf("the listeners say %q instead of %q", c.lines.Text(), word)
	}
}

// stop lets all listeners go.
func (c *crowd) stop() {
	c.tb.Helper()
	_ = c.stdin.Close()
	for c.lines.Scan() {
		c.tb.Errorf("the listeners say %q at the end", c.lines.Text())
	}
	if err := c.cmd.Wait(); err != nil {
		c.tb.Error(err)
	}
}

// listeners runs until its standard input ends.
func listeners(spec string) error {
	parts := strings.SplitN(spec, " ", 4)
	n, _ := strconv.Atoi(parts[1])
	skip, _ := strconv.Atoi(parts[2])
	var ready sync.WaitGroup
	var got atomic.Int64
	var over atomic.Bool
	conns := make([]net.Conn, n)
	failed := make(chan error, n)
	for i := range conns {
		conn, err := net.Dial("tcp", parts[0])
		if err != nil {
			return err
		}
		conns[i] = conn
		ready.Add(1)
		go func() {
			left := skip
			err := subscribeRaw(conn, parts[3], func(first bool) {
				if left > 0 || first {
					if !first {
						left--
					}
					if left == 0 {
						ready.Done()
						left = -1
					}
					return
				}
				if got.Add(1)%int64(n) == 0 {
					fmt.Println("all")
				}
			})
			if !over.Load() {
				failed <- err
			}
		}()
	}
	done := make(chan struct{})
	go func() {
		ready.Wait()
		fmt.Println("ready")
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(done)
	}()
	select {
	case err := <-failed:
		return err
	case <-done:
	}
	over.Store(true)
	for _, c := range conns {
		_ = c.Close()
	}
	return nil
}

// subscribeRaw calls each for every text frame after connection_ack, and once before that.
func subscribeRaw(conn net.Conn, query string, each func(first bool)) error {
	_, _ = io.WriteString(conn, "GET /graphql HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: graphql-transport-ws\r\n\r\n")
	r := bufio.NewReaderSize(conn, 4<<10)
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return err
		}
		if line == "\r\n" {
			break
		}
	}
	if query != "" {
		say := func(m string) {
			_, _ = conn.Write(append([]byte{0x81, 0x80 | 126, byte(len(m) >> 8), byte(len(m)), 0, 0, 0, 0}, m...))
		}
		say(`{"type":"connection_init"}`)
		if err := skipFrames(conn, r, 1); err != nil {
			return err
		}
		say(`{"id":"1","type":"subscribe","payload":{"query":"` + query + `"}}`)
	}
	each(true)
	for {
		if err := skipFrames(conn, r, 1); err != nil {
			return err
		}
		each(false)
	}
}

// skipFrames reads as many text frames, and answers pings.
func skipFrames(conn net.Conn, r *bufio.Reader, n int) error {
	for n > 0 {
		head := make([]byte, 2, 8)
		if _, err := io.ReadFull(r, head); err != nil {
			return err
		}
		size := int(head[1])
		more := map[int]int{126: 2, 127: 8}[size]
		if more > 0 {
			if _, err := io.ReadFull(r, head[:more]); err != nil {
				return err
			}
			if size = int(binary.BigEndian.Uint16(head)); more == 8 {
				size = int(binary.BigEndian.Uint64(head[:8]))
			}
		}
		switch head0 := head[0]; {
		case more == 0 && head0 == 0x89:
			_, _ = conn.Write([]byte{0x8A, 0x80, 0, 0, 0, 0})
		case more == 0 && head0 == 0x88:
			return io.EOF
		default:
			n--
		}
		if _, err := r.Discard(size); err != nil {
			return err
		}
	}
	return nil
}
