package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/gorilla/websocket"
)

// protocol is the WebSocket subprotocol of the GraphQL over WebSocket specification.
const protocol = "graphql-transport-ws"

// maxMessage is the maximum size of a message of a subscription, in bytes.
const maxMessage = 16 << 20

// errEnded means that the connection has ended, and that a new one may be made.
var errEnded = errors.New("connection ended")

type message struct {
	ID      string          `json:"id,omitempty"`
	Type    string          `json:"type"`
	Payload json.RawMessage `json:"payload,omitempty"`
}

// subscribe executes a subscription until it completes or fails. payload is the payload of the subscribe message. each
// is called with the data of each result. If the connection ends, it returns errEnded. It returns errors of the API as
// [Errors].
func (c *Client) subscribe(ctx context.Context, token string, payload []byte, each func(json.RawMessage) error) error {
	dialCtx, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	dialer := websocket.Dialer{
		Subprotocols:    []string{protocol},
		Proxy:           http.ProxyFromEnvironment,
		TLSClientConfig: c.cfg.TLS,
	}
	header := http.Header{}
	c.introduce(header)
	conn, res, err := dialer.DialContext(dialCtx, "ws"+strings.TrimPrefix(c.api.url, "http"), header)
	if err != nil {
		return c.handshakeError(ctx, res, err)
	}
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	conn.SetReadLimit(maxMessage)
	s := &socket{conn: conn, timeout: c.cfg.Timeout, silence: c.cfg.Silence, acknowledged: c.checkAck}
	pong := conn.PingHandler()
	conn.SetPingHandler(func(data string) error { return errors.Join(s.extendDeadline(), pong(data)) })
	if err := s.begin(ctx, token, payload); err != nil {
		return err
	}
	for {
		m, err := s.read(ctx)
		if err != nil {
			return err
		}
		switch m.Type {
		case "ping":
			err = s.write(ctx, message{Type: "pong"})
		case "next":
			err = deliver(m.Payload, each)
		case "error":
			var errs Errors
			if json.Unmarshal(m.Payload, &errs) != nil || len(errs) == 0 {
				return fmt.Errorf("answer of %s: an error without a text", c.api.shown)
			}
			return errs
		case "complete":
			return io.EOF
		}
		if err != nil {
			return err
		}
	}
}

func deliver(payload json.RawMessage, each func(json.RawMessage) error) error {
	var answer struct {
		Data   json.RawMessage `json:"data"`
		Errors Errors          `json:"errors"`
	}
	if err := json.Unmarshal(payload, &answer); err != nil {
		return errors.New("what the gateway answered cannot be read")
	}
	if len(answer.Errors) > 0 {
		return answer.Errors
	}
	return each(answer.Data)
}

// handshakeError returns the error of a failed handshake. res is the answer; nil if there is none.
func (c *Client) handshakeError(ctx context.Context, res *http.Response, err error) error {
	if res == nil || res.StatusCode != http.StatusUnauthorized {
		return endedError(ctx, err)
	}
	var answer struct{ Errors Errors }
	// res.Body has the first 1,024 bytes, which gorilla keeps
	if json.NewDecoder(res.Body).Decode(&answer) != nil || !unauthenticated(answer.Errors) {
		return c.api.proxyError()
	}
	return answer.Errors
}

// endedError wraps an error of the connection in errEnded. If ctx has ended, it returns the error of ctx instead.
func endedError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf("%w: %w", errEnded, err)
}

// socket is the connection of one subscription. It is used by one goroutine.
type socket struct {
	conn    *websocket.Conn
	timeout time.Duration
	// silence is the maximum time without a message from the gateway.
	silence time.Duration
	// acknowledged is called with the payload of connection_ack.
	acknowledged func(payload json.RawMessage)
}

// extendDeadline extends the time until which the gateway must send something.
func (s *socket) extendDeadline() error { return s.conn.SetReadDeadline(time.Now().Add(s.silence)) }

// begin makes the handshake and sends the subscription.
func (s *socket) begin(ctx context.Context, token string, payload []byte) error {
	limit, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	defer context.AfterFunc(limit, func() { _ = s.conn.Close() })()
	init := message{Type: "connection_init"}
	if token != "" {
		init.Payload, _ = json.Marshal(map[string]string{"authorization": "Bearer " + token})
	}
	if err := s.write(limit, init); err != nil {
		return err
	}
	for {
		m, err := s.read(limit)
		if err != nil {
			return err
		}
		if m.Type == "connection_ack" {
			s.acknowledged(m.Payload)
			return s.write(limit, message{ID: "1", Type: "subscribe", Payload: payload})
		}
	}
}

func (s *socket) write(ctx context.Context, m message) error {
	_ = s.conn.SetWriteDeadline(time.Now().Add(s.timeout))
	if err := s.conn.WriteJSON(m); err != nil {
		return endedError(ctx, err)
	}
	return nil
}

func (s *socket) read(ctx context.Context) (m message, err error) {
	_ = s.extendDeadline()
	_, raw, err := s.conn.ReadMessage()
	var closed *websocket.CloseError
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = fmt.Errorf("the gateway has said nothing for %v", s.silence)
	case errors.As(err, &closed) && closed.Code == closeForbidden:
		return m, refusal(closed.Text)
	}
	if err != nil {
		return m, endedError(ctx, err)
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		return m, errors.New("what the gateway answered is not JSON")
	}
	return m, nil
}
