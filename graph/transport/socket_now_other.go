//go:build !unix

package transport

import (
	"net"
	"syscall"
)

// writeNow is never called on this system, because rawConn returns nil.
func (b *buffer) writeNow(uintptr) (done bool) { return true }

// rawConn returns nil, because this system has no writes that do not wait.
func rawConn(net.Conn) syscall.RawConn { return nil }
