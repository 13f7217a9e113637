//go:build unix

package transport

import (
	"net"
	"syscall"
)

// writeNow writes as much of the buffer as the kernel takes at once.
func (b *buffer) writeNow(fd uintptr) (done bool) {
	// The goroutine that writes the rest gets the error too.
	if n, err := syscall.Write(int(fd), b.bytes); err == nil {
		b.sent = n
	}
	return true
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
