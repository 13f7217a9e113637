package server_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicegw/sluice/graph/server"
)

// TestUnhurriedDeadlinesEndWhatOthersEnd at the same moment: reads and writes whose deadlines
// are moved at random, nearer, further away, into the past and off, end like those of a
// connection that arms each.
func TestUnhurriedDeadlinesEndWhatOthersEnd(t *testing.T) {
	for seed := range uint64(1000) {
		plain := deadlineStory(t, seed, func(c net.Conn) net.Conn { return c })
		ours := deadlineStory(t, seed, server.Unhurried)
		if plain != ours {
			t.Fatalf("seed %d: a plain connection:\n%s\nours:\n%s", seed, plain, ours)
		}
	}
}

// deadlineStory says what becomes of a connection, of which one read and one write at a time wait.
func deadlineStory(t *testing.T, seed uint64, wrap func(net.Conn) net.Conn) string {
	var told []string
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		var mu sync.Mutex
		tell := func(format string, args ...any) {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, fmt.Sprintf("%8d ms: %s", time.Since(begin).Milliseconds(), fmt.Sprintf(format, args...)))
		}
		near, far := net.Pipe()
		c := wrap(near)
		rng := rand.New(rand.NewPCG(seed, 1))
		var reading, writing atomic.Bool
		moment := func() time.Time {
			switch rng.IntN(6) {
			case 0:
				return time.Time{}
			case 1:
				return time.Unix(1, 0)
			}
			// Never at the moment of a step.
			return time.Now().Add(time.Duration(rng.IntN(20))*time.Second + 500*time.Millisecond)
		}
		for range 60 {
			switch rng.IntN(7) {
			case 0, 1:
				_ = c.SetReadDeadline(moment())
			case 2:
				_ = c.SetWriteDeadline(moment())
			case 3:
				_ = c.SetDeadline(moment())
			case 4:
				if reading.CompareAndSwap(false, true) {
					go func() {
						defer reading.Store(false)
						n, err := c.Read(make([]byte, 8))
						tell("read %d, %v", n, errors.Is(err, os.ErrDeadlineExceeded))
					}()
				}
				if rng.IntN(3) == 0 {
					_ = far.SetWriteDeadline(time.Now().Add(time.Millisecond))
					_, _ = far.Write([]byte("data"))
				}
			case 5:
				if writing.CompareAndSwap(false, true) {
					go func() {
						defer writing.Store(false)
						n, err := c.Write(make([]byte, 30))
						tell("written %d, %v", n, errors.Is(err, os.ErrDeadlineExceeded))
					}()
				}
			case 6:
				_ = far.SetReadDeadline(time.Now().Add(time.Millisecond))
				_, _ = far.Read(make([]byte, 1+rng.IntN(20)))
			}
			time.Sleep(time.Duration(rng.IntN(8)) * time.Second)
			synctest.Wait()
		}
		_, _ = c.Close(), far.Close()
	})
	slices.Sort(told) // both may end at the same moment
	return strings.Join(told, "\n")
}

// armings counts how often the deadlines of a connection are moved in the runtime.
type armings struct {
	net.Conn
	n *atomic.Int64
}

func (a armings) SetReadDeadline(t time.Time) error {
	a.n.Add(1)
	return a.Conn.SetReadDeadline(t)
}

func (a armings) SetWriteDeadline(t time.Time) error {
	a.n.Add(1)
	return a.Conn.SetWriteDeadline(t)
}

func (a armings) SetDeadline(t time.Time) error {
	return errors.Join(a.SetReadDeadline(t), a.SetWriteDeadline(t))
}

// one is a listener that accepts one connection.
type one struct {
	net.Listener
	conn chan net.Conn
}

func (o one) Accept() (net.Conn, error) {
	if c, ok := <-o.conn; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}

func (one) Close() error { return nil }

func (one) Addr() net.Addr { return &net.TCPAddr{} }

// TestRequestsMoveDeadlinesRarely, and are ended by them as before: one whose header does not
// end, and a connection that is idle.
func TestRequestsMoveDeadlinesRarely(t *testing.T) {
	const requests = 200
	for name, then := range map[string]struct {
		send string
		ends time.Duration
	}{
		"idle":          {"", 2 * time.Minute},
		"half a header": {"POST / HTTP/1.1\r\nHo", 10 * time.Second},
		"half a body":   {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhalf", time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				near, far := net.Pipe()
				var n atomic.Int64
				accept := one{conn: make(chan net.Conn, 1)}
				accept.conn <- server.Unhurried(armings{near, &n})
				srv := &http.Server{
					Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						if _, err := io.ReadAll(r.Body); err != nil {
							panic(http.ErrAbortHandler)
						}
						_, _ = io.WriteString(w, "answer")
					}),
					ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute, WriteTimeout: 90 * time.Second, IdleTimeout: 2 * time.Minute,
				}
				var served sync.WaitGroup
				served.Go(func() { _ = srv.Serve(accept) })
				answers := bufio.NewReader(far)
				for range requests {
					if _, err := io.WriteString(far, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody"); err != nil {
						t.Fatal(err)
					}
					res, err := http.ReadResponse(answers, nil)
					if err != nil {
						t.Fatal(err)
					}
					if body, err := io.ReadAll(res.Body); err != nil || string(body) != "answer" {
						t.Fatalf("%q, %v", body, err)
					}
				}
				if moved := n.Load(); moved > 3*requests {
					t.Errorf("%d requests moved deadlines %d times", requests, moved)
				}
				synctest.Wait()
				began := time.Now()
				_, _ = io.WriteString(far, then.send)
				if _, err := io.Copy(io.Discard, answers); err != nil {
					t.Errorf("the connection ends with %v", err)
				}
				if took := time.Since(began); took != then.ends {
					t.Errorf("it was ended after %v, not %v", took, then.ends)
				}
				close(accept.conn)
				_ = srv.Close()
				served.Wait()
			})
		})
	}
}

// TestAWriteDeadlineThatIsMovedIsAhead: a write that does not wait, and so is not repeated,
// must not fail because the one before has passed.
func TestAWriteDeadlineThatIsMovedIsAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		defer func() { _, _ = near.Close(), far.Close() }()
		c := server.Unhurried(near)
		for range 5 {
			if err := c.SetWriteDeadline(time.Now().Add(time.Second)); err != nil {
				t.Fatal(err)
			}
			go func() { _, _ = io.ReadFull(far, make([]byte, 4)) }()
			synctest.Wait()
			if _, err := near.Write([]byte("data")); err != nil {
				t.Error("around the connection's own writes:", err)
			}
			time.Sleep(time.Minute)
		}
	})
}
