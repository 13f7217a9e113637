package redistest

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strconv"
)

// message is one request or reply of RESP2 or RESP3.
type message struct {
	raw []byte
	// args are the strings of a request.
	args []string
	// push reports whether the message is a push message, which answers no request.
	push bool
}

// readMessage reads the next whole message.
func readMessage(r *bufio.Reader) (message, error) {
	var m message
	first, err := r.Peek(1)
	if err != nil {
		return m, err
	}
	m.push = first[0] == '>'
	return m, m.value(r)
}

// value reads a value, including the values that it contains.
func (m *message) value(r *bufio.Reader) error {
	line, err := r.ReadBytes('\n')
	if err != nil {
		return err
	}
	m.raw = append(m.raw, line...)
	head := string(bytes.TrimRight(line, "\r\n"))
	if head == "" {
		return fmt.Errorf("resp: empty line")
	}
	values := 1
	switch head[0] {
	case '$', '=', '!':
		return m.bulk(r, head)
	case '%', '|': // with a key and a value for each element
		values = 2
	case '*', '~', '>':
	default: // the value has only this line
		return nil
	}
	n, err := strconv.Atoi(head[1:])
	if err != nil {
		return fmt.Errorf("resp: %q: %w", head, err)
	}
	values *= n // -1 for a null of RESP2
	if head[0] == '|' {
		values++ // attributes are followed by the value to which they belong
	}
	for range max(values, 0) {
		if err := m.value(r); err != nil {
			return err
		}
	}
	return nil
}

func (m *message) bulk(r *bufio.Reader, head string) error {
	n, err := strconv.Atoi(head[1:])
	if err != nil {
		return fmt.Errorf("resp: %q: %w", head, err)
	}
	if n < 0 {
		return nil
	}
	start := len(m.raw)
	m.raw = append(m.raw, make([]byte, n+2)...)
	if _, err := io.ReadFull(r, m.raw[start:]); err != nil {
		return err
	}
	m.args = append(m.args, string(m.raw[start:start+n]))
	return nil
}
