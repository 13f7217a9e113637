//go:build !unix

package transport

import (
	"net"
	"syscall"
)

// attempt writes nothing here: each socket has a goroutine that writes.
type attempt struct {
	*buffer
	once func(fd uintptr) (done bool)
}

func newAttempt() *attempt { return &attempt{once: func(uintptr) bool { return true }} }

// rawConn is always nil here: a connection cannot be written to without waiting.
func rawConn(net.Conn) syscall.RawConn { return nil }
