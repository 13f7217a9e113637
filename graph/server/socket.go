package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/99designs/gqlgen/graphql/handler/transport"
	"github.com/coder/websocket"
)

// socketWriteTimeout is how long a client may take to accept one message
// before it is given up: it never holds a goroutine for longer.
const socketWriteTimeout = 10 * time.Second

// socketImplementation gives gqlgen's WebSocket transport connections whose
// writes have a deadline. The edge has checked the Origin.
type socketImplementation struct{}

// Accept upgrades the request.
func (socketImplementation) Accept(w http.ResponseWriter, r *http.Request, o transport.WebsocketAcceptOptions) (transport.WebsocketConn, error) {
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: o.Subprotocols, InsecureSkipVerify: true})
	if err != nil {
		return nil, err
	}
	return &socket{conn: conn}, nil
}

type socket struct{ conn *websocket.Conn }

var (
	_ transport.WebsocketConn        = (*socket)(nil)
	_ transport.WebsocketReadLimiter = (*socket)(nil)
)

func (s *socket) Close() error { return s.conn.CloseNow() }

func (s *socket) Subprotocol() string { return s.conn.Subprotocol() }

func (s *socket) SetReadLimit(n int64) { s.conn.SetReadLimit(n) }

func (s *socket) NextReader() (int, io.Reader, error) {
	kind, data, err := s.conn.Read(context.Background())
	if code := websocket.CloseStatus(err); code == websocket.StatusNormalClosure || code == websocket.StatusGoingAway || errors.Is(err, io.EOF) {
		err = transport.ErrWebsocketClosed
	}
	return int(kind), bytes.NewReader(data), err
}

func (s *socket) WriteJSON(v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), socketWriteTimeout)
	defer cancel()
	return s.conn.Write(ctx, websocket.MessageText, data)
}

// WriteClose ends the connection. A normal closure of the server's own accord
// is sent as going away: clients take it as a reason to reconnect with back-off,
// and the other as one to reconnect at once, for ever.
func (s *socket) WriteClose(code int, reason string) error {
	if code == transport.WebsocketCloseNormalClosure {
		code = int(websocket.StatusGoingAway)
	}
	return s.conn.Close(websocket.StatusCode(code), reason)
}
