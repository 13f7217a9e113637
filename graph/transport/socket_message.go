package transport

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// Subprotocols of WebSocket.
const (
	// protocolModern is specified by the graphql-ws project (PROTOCOL.md).
	protocolModern = "graphql-transport-ws"
	// protocolLegacy is that of subscriptions-transport-ws, which GraphQL Playground speaks.
	protocolLegacy = "graphql-ws"
)

// verb is what a message of a client asks for.
type verb int

const (
	verbInit verb = iota + 1
	verbStart
	verbStop
	verbPing
	verbPong
	verbTerminate
)

// maxID is how long the id of an operation may be, in bytes.
const maxID = 256

// message is one of a client, of either protocol.
type message struct {
	verb    verb
	id      string // of operations only
	payload json.RawMessage
	request *Request // of verbStart only
}

// decodeMessage reads a message. The error is for the client, and quotes
// nothing of the input.
func decodeMessage(protocol string, data []byte) (message, error) {
	if err := checkNesting(data); err != nil {
		return message{}, err
	}
	var raw struct {
		ID, Type *json.RawMessage
		Payload  json.RawMessage
	}
	if err := json.Unmarshal(data, &raw); err != nil {
		return message{}, errors.New("a message is a JSON object")
	}
	name, ok := text(raw.Type)
	if !ok {
		return message{}, errors.New("type: a string is required")
	}
	m := message{verb: verbOf(protocol, name), payload: raw.Payload}
	switch m.verb {
	case 0:
		return m, errors.New("type: not a message of a client in " + protocol)
	case verbInit, verbPing, verbPong:
		if !isObject(m.payload) {
			return m, errors.New("payload: an object or null is accepted")
		}
		return m, nil
	case verbTerminate:
		return m, nil
	}
	if m.id, ok = text(raw.ID); !ok || m.id == "" || len(m.id) > maxID {
		return m, fmt.Errorf("id: a string of 1 to %d bytes is required", maxID)
	}
	if m.verb == verbStart {
		return m, m.readRequest()
	}
	return m, nil
}

// readRequest reads the payload of a message that starts an operation.
func (m *message) readRequest() error {
	m.request = new(Request)
	if len(m.payload) == 0 {
		return errors.New("payload: a request is required")
	}
	if err := m.request.UnmarshalJSON(m.payload); err != nil {
		return fmt.Errorf("payload: %w", err)
	}
	if !m.request.namesDocument() {
		// An empty query is a request, and refused as one.
		var keys map[string]json.RawMessage
		if err := json.Unmarshal(m.payload, &keys); err != nil || keys["query"] == nil {
			return errors.New("payload: a query or a documentId is required")
		}
	}
	m.payload = nil
	return nil
}

func verbOf(protocol, name string) verb {
	legacy := protocol == protocolLegacy
	switch {
	case name == "connection_init":
		return verbInit
	case legacy && name == "start", !legacy && name == "subscribe":
		return verbStart
	case legacy && name == "stop", !legacy && name == "complete":
		return verbStop
	case !legacy && name == "ping":
		return verbPing
	case !legacy && name == "pong":
		return verbPong
	case legacy && name == "connection_terminate":
		return verbTerminate
	}
	return 0
}

// text reads a JSON string.
func text(raw *json.RawMessage) (string, bool) {
	if raw == nil {
		return "", false
	}
	var s *string
	if json.Unmarshal(*raw, &s) != nil || s == nil {
		return "", false
	}
	return *s, true
}

// isObject accepts an object, null and nothing.
func isObject(raw json.RawMessage) bool {
	raw = bytes.TrimLeft(raw, " \t\r\n")
	return len(raw) == 0 || raw[0] == '{' || string(raw) == "null"
}
