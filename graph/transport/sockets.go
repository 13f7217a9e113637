package transport

import (
	"bufio"
	"container/list"
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"runtime"
	"sync"
	"time"

	"github.com/gorilla/websocket"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"go.uber.org/zap"
)

// socketVersion is the version of the WebSocket protocol.
const socketVersion = "13"

// Sockets serves WebSocket connections by graphql-transport-ws, and by
// graphql-ws for clients that support nothing else.
//
// The library does the handshake and reads. It was chosen because idle connections
// are cheap, and because it allocates no memory for a message before it arrives.
type Sockets struct {
	cfg      SocketConfig
	upgrader websocket.Upgrader
	// buffers pools the memory of writers.
	buffers sync.Pool
	pool    writerPool

	open admission // connections, and requests on their way to become one

	mu      sync.Mutex
	sockets map[*socket]struct{}
	// waiting are the sockets that have not initialised, the oldest first.
	waiting *list.List
}

// NewSockets starts nothing.
func NewSockets(cfg SocketConfig) (*Sockets, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg.setDefaults()
	s := &Sockets{cfg: cfg, sockets: map[*socket]struct{}{}, waiting: list.New()}
	s.buffers.New = func() any { return new(buffer) }
	s.pool = writerPool{parent: s, most: runtime.GOMAXPROCS(0)}
	s.upgrader = websocket.Upgrader{
		HandshakeTimeout: cfg.WriteTimeout,
		// A connection has a reader of its own, see [hijacker], and no memory to write from.
		WriteBufferPool: new(sync.Pool),
		Subprotocols:    []string{protocolModern, protocolLegacy},
		CheckOrigin:     func(*http.Request) bool { return true }, // the edge has done it
		Error: func(w http.ResponseWriter, r *http.Request, status int, reason error) {
			if versions := r.Header.Values("Sec-Websocket-Version"); len(versions) != 1 || versions[0] != socketVersion {
				reason = errors.New("Sec-WebSocket-Version: " + socketVersion + " is accepted")
			}
			w.Header()["Sec-WebSocket-Version"] = []string{socketVersion} // RFC 6455, 4.4
			s.refuse(w, r, status, badRequest(reason.Error()))
		},
	}
	return s, nil
}

// ServeHTTP upgrades the request and returns; the connection lives on, with what
// [SocketConfig.Keep] keeps of the request's context. The edge has checked Host and Origin.
func (s *Sockets) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	draining, ok := s.open.admit(s.cfg.Connections, s.cfg.Opened)
	if !ok {
		w.Header().Set("Retry-After", "1")
		s.refuse(w, r, http.StatusServiceUnavailable, notAdmitted("WebSocket connections", s.cfg.Connections))
		return
	}
	h := &hijacker{ResponseWriter: w}
	conn, err := s.upgrader.Upgrade(h, r, nil)
	if err != nil {
		s.open.release(s.cfg.Opened)
		return
	}
	h.conn.mute = true
	c := newSocket(s, conn, h)
	ctx, cancel := context.WithCancel(s.cfg.Keep(r.Context()))
	c.cancel = cancel
	s.add(c)
	select {
	case <-draining:
		c.drain()
	default:
	}
	go c.serve(ctx)
}

func (s *Sockets) refuse(w http.ResponseWriter, r *http.Request, status int, err *gqlerror.Error) {
	writeRefusal(w, status, s.cfg.Executor.Refuse(r.Context(), err))
}

// add registers a connection. If too many are waiting to be initialised, the
// oldest of them is closed, so that silent clients cannot lock others out.
func (s *Sockets) add(c *socket) {
	var oldest *socket
	s.mu.Lock()
	s.sockets[c] = struct{}{}
	c.place = s.waiting.PushBack(c)
	if s.waiting.Len() > s.cfg.Waiting {
		oldest = s.waiting.Front().Value.(*socket)
		s.leaveWaiting(oldest)
	}
	s.mu.Unlock()
	if oldest != nil {
		oldest.close(closing{code: codeInitTimeout, reason: "Connection initialisation timeout: too many wait"})
	}
}

// initialised notes that a connection has been initialised.
func (s *Sockets) initialised(c *socket) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leaveWaiting(c)
}

func (s *Sockets) leaveWaiting(c *socket) {
	if c.place != nil {
		s.waiting.Remove(c.place)
		c.place = nil
	}
}

// remove forgets a connection that has ended.
func (s *Sockets) remove(c *socket) {
	s.mu.Lock()
	s.leaveWaiting(c)
	delete(s.sockets, c)
	s.mu.Unlock()
	s.open.release(s.cfg.Opened)
}

// Drain accepts no more connections and closes each one with 1001, which makes
// clients reconnect, as soon as its queries and mutations have been answered. It
// returns when all connections have ended. If ctx ends first, it cuts off the rest.
func (s *Sockets) Drain(ctx context.Context) {
	drained := s.open.drain()
	s.each((*socket).drain)
	select {
	case <-drained:
	case <-ctx.Done():
		s.each((*socket).abort)
		s.cfg.Logger.Info("sockets were cut off at the end of the drain time-out", zap.Error(ctx.Err()))
	}
}

func (s *Sockets) each(do func(*socket)) {
	s.mu.Lock()
	all := make([]*socket, 0, len(s.sockets))
	for c := range s.sockets {
		all = append(all, c)
	}
	s.mu.Unlock()
	for _, c := range all {
		do(c)
	}
}

// hijacker lets the WebSocket library take the connection through whatever
// wraps the response, and keeps what was taken.
type hijacker struct {
	http.ResponseWriter
	conn *inbound
	// in is what the library reads from.
	in *bufio.Reader
}

// readBuffer is the memory that a connection keeps to read into, in bytes.
const readBuffer = 320

var _ http.Hijacker = (*hijacker)(nil)

// Hijack takes over the connection.
func (h *hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(h.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	// Without this bound, a dead client's buffer in the kernel would grow to megabytes.
	if c, ok := conn.(interface{ SetWriteBuffer(int) error }); ok {
		_ = c.SetWriteBuffer(sendBuffer)
	}
	h.conn = &inbound{Conn: conn}
	h.in = rw.Reader
	if rw.Reader.Buffered() == 0 { // else the library refuses the client
		h.in = bufio.NewReaderSize(h.conn, readBuffer)
		rw = bufio.NewReadWriter(h.in, rw.Writer)
	}
	return h.conn, rw, nil
}

// sendBuffer is what the kernel holds for one client, in bytes; Linux doubles it.
const sendBuffer = 64 << 10

// inbound is the connection as the WebSocket library sees it. Once mute is set it
// only reads: all frames to the client go through the queue.
type inbound struct {
	net.Conn
	mute bool
}

// Write drops what the library sends by itself; the queue sends that instead.
func (c *inbound) Write(b []byte) (int, error) {
	if c.mute {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

// SetWriteDeadline is for the queue alone, too.
func (c *inbound) SetWriteDeadline(t time.Time) error {
	if c.mute {
		return nil
	}
	return c.Conn.SetWriteDeadline(t)
}

// encodeErrors is the payload of a message that ends an operation with errors.
func encodeErrors(protocol string, errs gqlerror.List) []byte {
	var v any = errs
	if protocol == protocolLegacy {
		// The older protocol has one error there; its clients read all if they stand beside it.
		v = map[string]any{"message": errs[0].Message, "errors": errs}
	}
	data, err := json.Marshal(v)
	if err != nil {
		return []byte(`[{"message":"internal error"}]`)
	}
	return data
}
