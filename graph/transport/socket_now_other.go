//go:build !unix

package transport

import (
	"net"
	"syscall"
)

// writeNow is never called here: each socket has a goroutine that writes.
func (b *buffer) writeNow(uintptr) (done bool) { return true }

// rawConn is always nil here: a connection cannot be written to without waiting.
func rawConn(net.Conn) syscall.RawConn { return nil }
