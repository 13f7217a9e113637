package transport

import (
	"bufio"
	"container/list"
	"context"
	"errors"
	"maps"
	"net"
	"net/http"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/gorilla/websocket"
	"go.uber.org/zap"
)

// socketVersion is the version of the WebSocket protocol.
const socketVersion = "13"

// sockets serves WebSocket connections with the protocol graphql-transport-ws, or with graphql-ws for clients that
// support nothing else.
//
// gorilla/websocket does the handshake and reads. It was chosen because idle connections use little memory, and because
// it allocates none for a message before the message arrives.
type sockets struct {
	cfg      Config
	upgrader websocket.Upgrader
	buffers  sync.Pool // of *buffer
	pool     writerPool
	open     *admission

	mu  sync.Mutex
	all map[*socket]struct{}
	// waiting are the sockets that are not initialised yet, the oldest first.
	waiting *list.List
}

func newSockets(cfg Config) *sockets {
	s := &sockets{
		cfg:     cfg,
		open:    &admission{key: "limit-sockets", most: cfg.Connections, changed: cfg.SocketsOpened},
		all:     map[*socket]struct{}{},
		waiting: list.New(),
	}
	s.buffers.New = func() any { return newBuffer() }
	s.pool = writerPool{sockets: s, most: runtime.GOMAXPROCS(0)}
	s.upgrader = websocket.Upgrader{
		HandshakeTimeout: cfg.WriteTimeout,
		// A connection has its own reader (see hijacker) and no write buffer.
		WriteBufferPool: new(sync.Pool),
		Subprotocols:    []string{protocolModern, protocolLegacy},
		CheckOrigin:     func(*http.Request) bool { return true }, // package server checks Host and Origin
		Error: func(w http.ResponseWriter, r *http.Request, status int, reason error) {
			if versions := r.Header.Values("Sec-Websocket-Version"); len(versions) != 1 ||
				versions[0] != socketVersion {
				reason = errors.New("Sec-WebSocket-Version: " + socketVersion + " is accepted")
			}
			w.Header()["Sec-WebSocket-Version"] = []string{socketVersion} // RFC 6455, 4.4
			if status == http.StatusMethodNotAllowed {
				w.Header().Set("Allow", "GET") // RFC 9110, 15.5.6
			}
			write(w, typeJSON, status, cfg.Executor(r.Context()).Refuse(r.Context(), badRequest(reason.Error())))
		},
	}
	return s
}

// ServeHTTP upgrades a request to a WebSocket and returns. The connection stays open.
func (s *sockets) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.open.admit() {
		s.open.refuse(w, r, s.cfg.Executor(r.Context()), "WebSocket connections")
		return
	}
	h := &hijacker{ResponseWriter: w}
	conn, err := s.upgrader.Upgrade(h, r, nil)
	if err != nil {
		s.open.release()
		return
	}
	h.conn.mute = true
	c := newSocket(s, conn, h)
	ctx, cancel := context.WithCancel(s.cfg.Keep(r.Context()))
	c.cancel = cancel
	s.add(c)
	if s.open.isDraining() {
		c.drain()
	}
	go c.serve(ctx)
}

// add adds a connection. If too many connections are not initialised yet, it closes the oldest of them, so that silent
// clients cannot lock out others.
func (s *sockets) add(c *socket) {
	var oldest *socket
	s.mu.Lock()
	s.all[c] = struct{}{}
	c.place = s.waiting.PushBack(c)
	if s.waiting.Len() > s.cfg.Waiting {
		oldest = s.waiting.Front().Value.(*socket)
		s.waiting.Remove(oldest.place)
	}
	s.mu.Unlock()
	if oldest != nil {
		oldest.close(&closing{code: codeInitTimeout, reason: "Connection initialisation timeout: too many wait"})
	}
}

// initialised removes a connection from waiting, after its client has initialised it.
func (s *sockets) initialised(c *socket) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting.Remove(c.place) // does nothing if add has removed it
}

// remove removes a connection that has ended.
func (s *sockets) remove(c *socket) {
	s.mu.Lock()
	s.waiting.Remove(c.place)
	delete(s.all, c)
	s.mu.Unlock()
	s.open.release()
}

// drain refuses new connections, and closes each connection with 1001 as soon as its queries and mutations are
// answered. It returns when all connections have ended. If ctx ends before, it aborts those that remain.
func (s *sockets) drain(ctx context.Context) {
	ended := s.open.drain()
	s.each((*socket).drain)
	select {
	case <-ended:
	case <-ctx.Done():
		s.each((*socket).abort)
		s.cfg.Logger.Info("sockets were cut off at the end of the drain time-out", zap.Error(ctx.Err()))
	}
}

func (s *sockets) each(do func(*socket)) {
	s.mu.Lock()
	all := slices.Collect(maps.Keys(s.all))
	s.mu.Unlock()
	for _, c := range all {
		do(c)
	}
}

// hijacker is a response writer from which the WebSocket library takes over the connection. It keeps the connection and
// its reader.
type hijacker struct {
	http.ResponseWriter
	conn *inbound
	in   *bufio.Reader
}

// readBuffer is the size of the read buffer of a connection, in bytes.
const readBuffer = 320

var _ http.Hijacker = (*hijacker)(nil)

// Hijack implements [http.Hijacker].
func (h *hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(h.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	// Without this limit the kernel's buffer for a client that does not read would grow to megabytes.
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

// sendBuffer is the size of the kernel's send buffer for a client, in bytes; Linux doubles it.
const sendBuffer = 64 << 10

// inbound is the connection that the WebSocket library uses. While mute is set, the library can only read, because all
// frames to the client must go through the queue.
type inbound struct {
	net.Conn
	mute bool
}

// Write drops what the library writes while mute is set; the queue has frames for the same purpose.
func (c *inbound) Write(b []byte) (int, error) {
	if c.mute {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

// SetWriteDeadline does nothing while mute is set, because the queue sets the deadlines.
func (c *inbound) SetWriteDeadline(t time.Time) error {
	if c.mute {
		return nil
	}
	return c.Conn.SetWriteDeadline(t)
}
