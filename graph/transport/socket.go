package transport

import (
	"bufio"
	"container/list"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/gorilla/websocket"
	"go.uber.org/zap"

	"github.com/sluicegw/sluice/graph/stream"
)

// The close codes of graphql-transport-ws. The other codes are defined in RFC 6455, section 7.4.1.
const (
	codeBadMessage     = 4400
	codeUnauthorized   = 4401
	codeForbidden      = 4403
	codeBadSubprotocol = 4406
	codeInitTimeout    = 4408
	codeDuplicateID    = 4409
	codeTooManyInits   = 4429
)

const (
	// maxFirstMessage is the maximum size in bytes of messages before the connection is
	// initialised.
	maxFirstMessage = 64 << 10
	// closeWait is how long to wait for a client's close frame.
	closeWait = 2 * time.Second
	// maxLate is the maximum number of bytes that are read and dropped after a client was refused.
	maxLate = 8 << 20
)

// closing describes how a connection is closed.
type closing struct {
	code   int // 0 for no close frame
	reason string
	// wait gives the client time to read the reason and to close the connection.
	wait bool
	// mute reports that the rest of the input cannot be parsed.
	mute bool
	// echo reports that the client has sent its close frame first.
	echo bool
}

// socket is a WebSocket connection. One goroutine reads. While there is something to write, one goroutine writes, which
// may be a worker of the pool. Each operation has a goroutine.
type socket struct {
	sockets *sockets
	conn    *websocket.Conn // reads
	in      *bufio.Reader   // what it reads from
	net     net.Conn        // writes
	raw     syscall.RawConn // writes without waiting; nil if that is not possible
	out     stream.Queue
	cancel  context.CancelFunc
	place   *list.Element // in sockets.waiting, whose lock guards it

	// writers counts the goroutines that write, of which there is at most one. gather and wrote are used by that
	// goroutine, and by wake, which is called only while there is none.
	writers sync.WaitGroup
	gather  *time.Timer // starts it a moment later; nil before the first use
	wrote   time.Time   // when it wrote last

	// receiving reports whether a message has arrived in part, and taken is the memory of the message. Both are used
	// only by the goroutine that reads.
	receiving bool
	taken     int64

	ready      atomic.Bool // connection_init was accepted
	mu         sync.Mutex  // guards all below
	beat       *time.Timer // pings
	operations map[string]*socketOperation
	running    int       // goroutines of operations, also of operations whose id is free again
	answers    int       // queries and mutations among them
	draining   bool      // closes when answers is zero
	ending     *closing  // nil while the connection lives
	endBy      time.Time // the deadline of the last write when the connection ends
	work       sync.WaitGroup
}

func newSocket(all *sockets, conn *websocket.Conn, h *hijacker) *socket {
	s := &socket{
		sockets:    all,
		conn:       conn,
		in:         h.in,
		net:        h.conn.Conn,
		raw:        rawConn(h.conn.Conn),
		operations: map[string]*socketOperation{},
	}
	s.out = stream.Queue{
		Messages: all.cfg.Queue,
		Bytes:    all.cfg.QueueBytes,
		Memory:   all.cfg.Memory.Events(),
		Wake:     s.wake,
	}
	conn.SetReadLimit(maxFirstMessage)
	conn.SetPingHandler(func(data string) error {
		s.alive()
		s.out.Offer(stream.Frame{Kind: websocket.PongMessage, Tail: data})
		return nil
	})
	conn.SetPongHandler(func(string) error { s.alive(); return nil })
	conn.SetCloseHandler(func(int, string) error { return nil })
	return s
}

// protocol returns the negotiated subprotocol.
func (s *socket) protocol() string { return s.conn.Subprotocol() }

// serve reads messages until the connection ends. It returns when all goroutines of the
// connection have ended.
func (s *socket) serve(ctx context.Context) {
	defer s.sockets.remove(s)
	ctx = connected(ctx, s.sockets.cfg.Work)
	s.deadline(s.sockets.cfg.InitTimeout)
	s.startPings()
	end := s.read(ctx)
	s.close(end)
	if end.mute {
		_, _ = io.CopyN(io.Discard, s.net, maxLate)
	} else {
		for err := error(nil); err == nil; {
			_, _, err = s.conn.NextReader() // until the client closes too, or closeWait is over
		}
	}
	s.work.Wait()
	s.writers.Wait()
	_ = s.net.Close()
}

// read handles messages until the connection must be closed, and returns how to close it.
func (s *socket) read(ctx context.Context) (end *closing) {
	defer func() {
		if p := recover(); p != nil {
			s.sockets.cfg.Logger.Error("panic on a socket", zap.Any("panic", p), zap.Stack("stack"))
			end = &closing{code: websocket.CloseInternalServerErr, reason: "internal error", wait: true}
		}
	}()
	defer s.giveBack()
	if s.protocol() == "" {
		return &closing{
			code:   codeBadSubprotocol,
			reason: "Subprotocol not acceptable: use " + protocolModern,
			wait:   true,
		}
	}
	for {
		// While the connection is idle, the goroutine waits here, where its stack is small. take reads the bytes and
		// handles errors.
		_, _ = s.in.Peek(1)
		ctx, end = s.take(ctx)
		if end != nil {
			return end
		}
	}
}

// take reads and handles one message. It returns the context for the next message, or how to close the connection.
func (s *socket) take(ctx context.Context) (context.Context, *closing) {
	kind, data, err := s.receive()
	switch {
	case errors.Is(err, errNoMemory):
		return ctx, &closing{
			code:   websocket.CloseTryAgainLater,
			reason: "Too many bytes in flight (configuration key limit-memory)",
			wait:   true,
			mute:   true,
		}
	case err != nil:
		return ctx, s.failed(err)
	case kind != websocket.TextMessage:
		return ctx, &closing{code: codeBadMessage, reason: "Invalid message: text frames are accepted", wait: true}
	case !utf8.Valid(data):
		return ctx, &closing{
			code:   websocket.CloseInvalidFramePayloadData,
			reason: "Invalid message: not UTF-8",
			wait:   true,
		}
	case s.isEnding():
		return ctx, &closing{}
	}
	s.alive()
	m, err := decodeMessage(s.protocol(), data)
	if err != nil {
		return ctx, &closing{code: codeBadMessage, reason: "Invalid message: " + err.Error(), wait: true}
	}
	ctx, stop := s.handle(ctx, m)
	s.giveBack()
	if stop != nil {
		stop.wait = true
	}
	return ctx, stop
}

// receive reads a message, and sets s.taken to the memory that it takes.
func (s *socket) receive() (kind int, data []byte, err error) {
	kind, r, err := s.conn.NextReader()
	if err != nil {
		return kind, nil, err
	}
	s.alive()
	s.receiving = true
	defer func() { s.receiving = false }()
	end := time.Now().Add(2 * s.sockets.cfg.PingInterval)
	extend := func() {
		if s.ready.Load() {
			s.deadline(min(s.sockets.cfg.MessageTimeout, time.Until(end)))
		}
	}
	// The read limit of the library applies first, so most is never exceeded here.
	data, s.taken, err = reading{
		from:   r,
		most:   s.sockets.cfg.Message,
		room:   s.sockets.cfg.Memory.Requests(),
		extend: extend,
	}.read()
	return kind, data, err
}

// giveBack releases the memory of the current message, unless it was passed to an operation.
func (s *socket) giveBack() {
	s.sockets.cfg.Memory.Requests().Give(s.taken)
	s.taken = 0
}

// failed returns how to close a connection after an error of reading.
func (s *socket) failed(err error) *closing {
	var closed *websocket.CloseError
	var network net.Error
	switch {
	case errors.As(err, &closed):
		switch closed.Code {
		case websocket.CloseAbnormalClosure:
			return &closing{}
		case websocket.CloseNoStatusReceived:
			return &closing{code: websocket.CloseNormalClosure, echo: true}
		}
		return &closing{code: closed.Code, echo: true}
	case errors.Is(err, websocket.ErrReadLimit):
		reason := fmt.Sprintf("a message has at most %d bytes (limit-message)", s.sockets.cfg.Message)
		if !s.ready.Load() {
			reason = fmt.Sprintf("a message before connection_ack has at most %d bytes", maxFirstMessage)
		}
		return &closing{code: websocket.CloseMessageTooBig, reason: reason, wait: true, mute: true}
	case errors.As(err, &network) && network.Timeout() && !s.ready.Load():
		return &closing{code: codeInitTimeout, reason: "Connection initialisation timeout"}
	case errors.As(err, &network) && network.Timeout():
		return &closing{code: websocket.CloseGoingAway, reason: "nothing was heard for too long"}
	case errors.As(err, &network), errors.Is(err, net.ErrClosed), errors.Is(err, io.ErrClosedPipe):
		return &closing{}
	}
	return &closing{code: websocket.CloseProtocolError, reason: err.Error(), wait: true, mute: true}
}

// close ends all operations and sends a close frame after all queued frames. Only the first call has an effect.
func (s *socket) close(end *closing) {
	s.mu.Lock()
	if s.ending != nil {
		s.mu.Unlock()
		return
	}
	s.ending, s.endBy = end, time.Now().Add(s.sockets.cfg.WriteTimeout)
	_ = s.net.SetReadDeadline(s.endBy.Add(closeWait))
	if s.beat != nil {
		s.beat.Stop()
	}
	s.work.Add(1) // serve waits until this call has ended
	defer s.work.Done()
	running := slices.Collect(maps.Values(s.operations))
	s.mu.Unlock()
	s.cancel()
	for _, op := range running {
		op.stop()
	}
	if end.code == 0 {
		s.abort()
		return
	}
	if !end.echo {
		s.sockets.cfg.Closed(end.code)
	}
	s.out.Finish(closeFrame(end.code, end.reason))
}

// abort closes the connection at once, without a close frame, and discards what the kernel has buffered.
func (s *socket) abort() {
	if c, ok := s.net.(interface{ SetLinger(int) error }); ok {
		_ = c.SetLinger(0)
	}
	_ = s.net.Close()
	s.out.Discard()
}

// drain closes the connection when its queries and mutations are answered.
func (s *socket) drain() {
	s.mu.Lock()
	s.draining = true
	answered := s.answers == 0
	s.mu.Unlock()
	if answered {
		s.close(&closing{code: websocket.CloseGoingAway, reason: "the gateway stops", wait: true})
	}
}

func (s *socket) isEnding() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ending != nil
}

// alive extends the read deadline because the client has sent something. While a message is being received, another
// deadline applies.
func (s *socket) alive() {
	if !s.receiving && s.ready.Load() {
		s.deadline(2 * s.sockets.cfg.PingInterval)
	}
}

// deadline sets how long the client may send nothing, unless the connection is ending.
func (s *socket) deadline(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ending == nil {
		_ = s.net.SetReadDeadline(time.Now().Add(d))
	}
}

func (s *socket) startPings() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ending == nil {
		s.beat = time.AfterFunc(s.sockets.cfg.PingInterval, s.ping)
	}
}

// ping sends a ping frame. The protocol has ping messages too, but some clients close the connection when they receive
// one.
func (s *socket) ping() {
	if s.protocol() == protocolLegacy && s.ready.Load() {
		s.out.Offer(textFrame(`{"type":"ka"}`))
	}
	s.out.Offer(stream.Frame{Kind: websocket.PingMessage})
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ending == nil {
		s.beat.Reset(s.sockets.cfg.PingInterval)
	}
}
