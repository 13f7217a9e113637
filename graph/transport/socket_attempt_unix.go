//go:build unix

package transport

import (
	"net"
	"syscall"
)

// attempt writes what is in its buffer as far as the kernel takes it at once.
type attempt struct {
	*buffer
	// once is made once, since a function for each write would be garbage.
	once func(fd uintptr) (done bool)
}

func newAttempt() *attempt {
	a := new(attempt)
	a.once = func(fd uintptr) bool {
		// Whoever writes the rest is told the error too.
		if n, err := syscall.Write(int(fd), a.bytes); err == nil {
			a.sent = n
		}
		return true
	}
	return a
}

// rawConn writes to a connection without waiting. It is nil if that is not possible, or if
// something else is between the connection and the kernel, like TLS.
func rawConn(c net.Conn) syscall.RawConn {
	direct, ok := c.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := direct.SyscallConn()
	if err != nil {
		return nil
	}
	return raw
}
