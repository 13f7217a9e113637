package transport

// What the tests of sockets and streams look into.
var (
	DecodeMessage = decodeMessage
	AppendEvent   = func(name, id string, payload []byte) string {
		f := event(name, id, payload)
		return string(f.Head) + string(f.Payload) + f.Tail
	}
)

// Close codes and reasons as they are framed.
func CloseFrame(code int, reason string) []byte {
	f := closeFrame(code, reason)
	return appendFrame(nil, &f)
}
