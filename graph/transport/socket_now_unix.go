//go:build unix

package transport

import (
	"net"
	"syscall"
)

// writeNow writes as much of the buffer as the kernel accepts without waiting.
func (b *buffer) writeNow(fd uintptr) (done bool) {
	// An error is ignored here, because the goroutine that writes the rest will get it as well.
	if n, err := syscall.Write(int(fd), b.bytes); err == nil {
		b.sent = n
	}
	return true
}

// rawConn returns a connection for writes that do not wait; nil if that is not possible, for example because of TLS.
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
