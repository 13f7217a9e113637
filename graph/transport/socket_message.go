package transport

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/tidwall/gjson"
)

// The WebSocket subprotocols.
const (
	// protocolModern is specified by the graphql-ws project (PROTOCOL.md).
	protocolModern = "graphql-transport-ws"
	// protocolLegacy is the protocol of subscriptions-transport-ws, which GraphQL Playground uses.
	protocolLegacy = "graphql-ws"
)

// verb is the type of a message from a client.
type verb int

const (
	verbInit verb = iota + 1
	verbStart
	verbStop
	verbPing
	verbPong
	verbTerminate
)

// maxID is the maximum length in bytes of the id of an operation.
const maxID = 256

// message is a message from a client, in either protocol.
type message struct {
	verb    verb
	id      string // of operations only
	payload json.RawMessage
	request *Request // of verbStart only
}

// decodeMessage parses a message. The error is for the client and does not quote the input.
func decodeMessage(protocol string, data []byte) (message, error) {
	if err := checkNesting(data); err != nil {
		return message{}, err
	}
	var raw struct {
		ID, Type string
		Payload  json.RawMessage
	}
	var wrong *json.UnmarshalTypeError
	if err := json.Unmarshal(data, &raw); err != nil && !(errors.As(err, &wrong) && wrong.Field != "") {
		return message{}, errors.New("a message is a JSON object")
	}
	if raw.Type == "" {
		return message{}, errors.New("type: a string is required")
	}
	m := message{verb: verbOf(protocol, raw.Type), payload: raw.Payload}
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
	if raw.ID == "" || len(raw.ID) > maxID {
		return m, fmt.Errorf("id: a string of 1 to %d bytes is required", maxID)
	}
	m.id = raw.ID
	if m.verb == verbStart {
		return m, m.readRequest()
	}
	return m, nil
}

// readRequest parses the payload of a message that starts an operation.
func (m *message) readRequest() (err error) {
	if len(m.payload) == 0 {
		return errors.New("payload: a request is required")
	}
	if m.request, err = parseRequest(m.payload); err != nil {
		return fmt.Errorf("payload: %w", err)
	}
	// An empty query is refused later, as in other requests.
	if !m.request.namesDocument() && !gjson.GetBytes(m.payload, "query").Exists() {
		return errors.New("payload: a query or a documentId is required")
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

// isObject reports whether raw is an object, null or empty.
func isObject(raw json.RawMessage) bool {
	raw = bytes.TrimLeft(raw, " \t\r\n")
	return len(raw) == 0 || raw[0] == '{' || string(raw) == "null"
}
