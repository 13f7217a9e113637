package transport

import (
	"encoding/binary"
	"unicode/utf8"

	"github.com/gorilla/websocket"

	"github.com/sluicegw/sluice/graph/stream"
)

// maxReason is the maximum length of the reason in a close frame, in bytes (RFC 6455, section 5.5.1).
const maxReason = 123

// appendFrame appends a frame in the format of RFC 6455, section 5.2. It is not fragmented and, as the server sends it,
// not masked.
func appendFrame(b []byte, f *stream.Frame) []byte {
	b = append(b, 0x80|f.Kind)
	switch n := f.Size(); {
	case n < 126:
		b = append(b, byte(n))
	case n <= 0xFFFF:
		b = binary.BigEndian.AppendUint16(append(b, 126), uint16(n))
	default:
		b = binary.BigEndian.AppendUint64(append(b, 127), uint64(n))
	}
	b = append(b, f.Head...)
	b = append(b, f.Payload...)
	return append(b, f.Tail...)
}

// closeFrame returns a close frame. If code is 0, the frame has neither code nor reason.
func closeFrame(code int, reason string) stream.Frame {
	if code == 0 {
		return stream.Frame{Kind: websocket.CloseMessage}
	}
	for len(reason) > maxReason || !utf8.ValidString(reason) && reason != "" {
		reason = reason[:min(len(reason)-1, maxReason)]
	}
	return stream.Frame{
		Kind: websocket.CloseMessage,
		Head: binary.BigEndian.AppendUint16(nil, uint16(code)),
		Tail: reason,
	}
}

// textFrame returns a frame with a whole text message.
func textFrame(message string) stream.Frame {
	return stream.Frame{Kind: websocket.TextMessage, Tail: message}
}
