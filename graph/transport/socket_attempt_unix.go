//go:build unix

package transport

import (
	"net"
	"syscall"
)

// attempt writes as much of its buffer as the kernel takes at once.
type attempt struct {
	*buffer
	// once is reused, since a closure for each write would be garbage.
	once func(fd uintptr) (done bool)
}

func newAttempt() *attempt {
	a := new(attempt)
	a.once = func(fd uintptr) bool {
		// The goroutine that writes the rest gets the error too.
		if n, err := syscall.Write(int(fd), a.bytes); err == nil {
			a.sent = n
		}
		return true
	}
	return a
}

// rawConn returns the connection for writes that do not wait. It is nil if that is not possible, or if
// there is a layer like TLS above the kernel's connection.
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
