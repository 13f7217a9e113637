package remote_test

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/sluicegw/sluice/backend/service/owner"
	"github.com/sluicegw/sluice/backend/service/owner/remote"
)

// The frames of HTTP/2 (RFC 9113, section 6), their flags, and error codes.
const (
	frameData     = 0
	frameHeaders  = 1
	frameReset    = 3
	frameSettings = 4
	framePing     = 6
	frameGoAway   = 7

	flagEnd        = 1 // of a stream
	flagAck        = 1
	flagEndHeaders = 4

	noError       = 0
	protocolError = 1
	internalError = 2
	refusedStream = 7
)

// framed is a connection of a server of HTTP/2 that does as a test says.
type framed struct{ net.Conn }

func (c framed) send(frame, flags byte, stream uint32, payload []byte) {
	header := []byte{0, 0, byte(len(payload)), frame, flags}
	header = binary.BigEndian.AppendUint32(header, stream)
	_, _ = c.Write(append(header, payload...))
}

func (c framed) goAway(last, code uint32) {
	payload := binary.BigEndian.AppendUint32(nil, last)
	c.send(frameGoAway, 0, 0, binary.BigEndian.AppendUint32(payload, code))
}

func (c framed) reset(stream, code uint32) {
	c.send(frameReset, 0, stream, binary.BigEndian.AppendUint32(nil, code))
}

// answer sends an empty message of gRPC.
func (c framed) answer(stream uint32) {
	field := func(name, value string) string { // a literal of HPACK
		return "\x00" + string(rune(len(name))) + name + string(rune(len(value))) + value
	}
	const statusOK = "\x88" // the entry of ":status: 200" in the static table
	c.send(frameHeaders, flagEndHeaders, stream, []byte(statusOK+field("content-type", "application/grpc")))
	c.send(frameData, 0, stream, make([]byte, 5))
	c.send(frameHeaders, flagEndHeaders|flagEnd, stream, []byte(field("grpc-status", "0")))
}

// serve reads the frames of a client, and calls request for each request that has arrived completely.
func (c framed) serve(request func(stream uint32)) {
	preface := make([]byte, 24)
	if _, err := io.ReadFull(c, preface); err != nil {
		return
	}
	c.send(frameSettings, 0, 0, nil)
	for {
		header := make([]byte, 9)
		if _, err := io.ReadFull(c, header); err != nil {
			return
		}
		payload := make([]byte, int(header[0])<<16|int(header[1])<<8|int(header[2]))
		if _, err := io.ReadFull(c, payload); err != nil {
			return
		}
		frame, flags := header[3], header[4]
		switch {
		case frame == frameSettings && flags&flagAck == 0:
			c.send(frameSettings, flagAck, 0, nil)
		case frame == framePing && flags&flagAck == 0:
			c.send(framePing, flagAck, 0, payload)
		case frame == frameData && flags&flagEnd != 0:
			request(binary.BigEndian.Uint32(header[5:]))
		}
	}
}

// serveFramed serves HTTP/2 and calls request for each request. It returns the address.
func serveFramed(t *testing.T, request func(c framed, stream uint32)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer func() { _ = conn.Close() }()
				c := framed{conn}
				c.serve(func(stream uint32) { request(c, stream) })
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		all.Wait()
	})
	return "http://" + l.Addr().String()
}

func TestRepeat_ARequestIsSentAgainOnlyIfItWasNotExecuted(t *testing.T) {
	type request func(c framed, stream uint32)
	const (
		answered = "answered"
		notSent  = "not sent"
		maybe    = "perhaps executed"
	)
	ends := func(last, code uint32) request {
		return func(c framed, _ uint32) {
			c.goAway(last, code)
			_ = c.Close()
		}
	}
	refuses := func(code uint32) request {
		return func(c framed, stream uint32) { c.reset(stream, code) }
	}
	for name, test := range map[string]struct {
		first, then request
		want        string
		requests    int64
	}{
		"GOAWAY before the request":           {ends(0, noError), framed.answer, answered, 2},
		"GOAWAY before each request":          {ends(0, noError), ends(0, noError), notSent, 3},
		"GOAWAY after the request":            {ends(1, noError), framed.answer, maybe, 1},
		"GOAWAY of a server that will stop":   {ends(1<<31-1, noError), framed.answer, maybe, 1},
		"GOAWAY with an error":                {ends(0, internalError), framed.answer, maybe, 1},
		"the stream is refused":               {refuses(refusedStream), framed.answer, answered, 2},
		"each stream is refused":              {refuses(refusedStream), refuses(refusedStream), notSent, 3},
		"an error of the protocol":            {refuses(protocolError), framed.answer, maybe, 1},
		"an internal error":                   {refuses(internalError), framed.answer, maybe, 1},
		"the stream is reset without a cause": {refuses(noError), framed.answer, maybe, 1},
	} {
		t.Run(name, func(t *testing.T) {
			var requests atomic.Int64
			address := serveFramed(t, func(c framed, stream uint32) {
				if requests.Add(1) == 1 {
					test.first(c, stream)
				} else {
					test.then(c, stream)
				}
			})
			client := connect(t, remote.Config{Address: address, Protocol: remote.GRPC})
			method := remote.NewMethod[emptypb.Empty, emptypb.Empty](client, "/example.Teams/Delete")
			_, err := method.Ask(t.Context(), &emptypb.Empty{})
			got := answered
			switch {
			case errors.Is(err, owner.ErrNotSent):
				got = notSent
			case err != nil:
				got = maybe
			}
			if n := requests.Load(); got != test.want || n != test.requests {
				t.Errorf("%s after %d requests, not %s after %d: %v", got, n, test.want, test.requests, err)
			}
			client.Close() // so that the server's connections end
		})
	}
}

func TestRepeat_OverAnyVersionOfHTTPIsLimited(t *testing.T) {
	var requests atomic.Int64
	address := serveFramed(t, func(c framed, _ uint32) {
		requests.Add(1)
		c.goAway(0, noError)
		_ = c.Close()
	})
	sender := remote.Limited(http2Only(t))
	res, err := sender.RoundTrip(post(t, address))
	if err == nil {
		_ = res.Body.Close()
		t.Fatal("it was answered")
	}
	if n := requests.Load(); n > 3 {
		t.Errorf("%d requests", n)
	}
}

// http2Only returns a transport for HTTP/2 without TLS.
func http2Only(t *testing.T) *http.Transport {
	out := &http.Transport{Protocols: new(http.Protocols)}
	out.Protocols.SetUnencryptedHTTP2(true)
	t.Cleanup(out.CloseIdleConnections)
	return out
}

// post returns a request that can be sent again.
func post(t *testing.T, address string) *http.Request {
	t.Helper()
	out, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	return out
}
