package server_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicegw/sluice/graph/server"
	"github.com/sluicegw/sluice/internal/wait"
)

// http2Frame returns a frame of HTTP/2 (RFC 9113 section 4.1).
func http2Frame(typ, flags byte, stream uint32, payload string) string {
	head := binary.BigEndian.AppendUint32(nil, uint32(len(payload)))[1:]
	return string(binary.BigEndian.AppendUint32(append(head, typ, flags), stream)) + payload
}

// http2Headers returns fields as literals of HPACK (RFC 7541 section 6.2.2).
func http2Headers(fields ...string) (out string) {
	for i := 0; i < len(fields); i += 2 {
		out += "\x00"
		for _, text := range fields[i : i+2] {
			if len(text) < 127 {
				out += string([]byte{byte(len(text))}) + text
			} else {
				out += "\x7f" + string(binary.AppendUvarint(nil, uint64(len(text)-127))) + text
			}
		}
	}
	return out
}

// openings returns what a client sends to open a number of watches on one connection, with windows of flow control
// that are never full.
func openings(token string, watches int) string {
	const settings, window, headers, data = 4, 8, 1, 0
	out := "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + http2Frame(settings, 0, 0, "\x00\x04\x7f\xff\xff\xff") +
		http2Frame(window, 0, 0, "\x40\x00\x00\x00")
	request := http2Headers(
		":method", "POST", ":scheme", "http", ":authority", "localhost",
		":path", "/sluice.kinds.v1.ShelfService/WatchShelves",
		"content-type", "application/grpc", "te", "trailers", "authorization", "Bearer "+token,
	)
	for i := range watches {
		out += http2Frame(headers, 4, uint32(2*i+1), request) + http2Frame(data, 1, uint32(2*i+1), "\x00\x00\x00\x00\x00")
	}
	return out
}

// TestServeMethods_WatchesThatAreNotReadKeepNoWriteWaiting although together they need more memory than there is.
func TestServeMethods_WatchesThatAreNotReadKeepNoWriteWaiting(t *testing.T) {
	m := newMethods(t, server.Config{Limits: server.Limits{Memory: 32 << 20}})
	const watches = 100
	var dialer net.Dialer
	for range 2 {
		c, err := dialer.DialContext(t.Context(), "tcp", m.address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		if err := c.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(c, openings(m.token, watches)); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	pause := wait.Backoff{Least: time.Millisecond, Most: 50 * time.Millisecond}
	for m.hub.Subscribers() < 2*watches {
		if !pause.Wait(ctx) {
			t.Fatalf("%d watches began", m.hub.Subscribers())
		}
	}
	text := string(bytes.Repeat([]byte("x"), 100<<10))
	for range 5 {
		shelf := `{"shelf": {"metadata": {"name": "a", "annotations": {"a": "` + text + `"}}, "spec": {"width": 3}}}`
		if _, err := m.call("UpsertShelf", shelf); err != nil {
			t.Fatal(err)
		}
		text += "x"
	}
}

// TestServeMethods_AConnectionThatIsNotReadIsClosed: neither an event nor the reset of its stream can be sent.
func TestServeMethods_AConnectionThatIsNotReadIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := server.Config{}
		s := newServer(t, plain, &cfg)
		l := newPipes()
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- s.ServeMethods(ctx, l) }()
		c := l.dial()
		if _, err := io.WriteString(c, openings("", 1)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(11 * time.Second)
		if n, err := c.Read(make([]byte, 100)); err != io.EOF {
			t.Error("the connection is still open:", n, err)
		}
		_ = c.Close()
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
