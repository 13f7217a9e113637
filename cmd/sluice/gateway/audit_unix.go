//go:build unix

package gateway

import (
	"os"
	"syscall"
)

// reopenSignals tell the gateway to begin a new file of its audit log.
func reopenSignals() []os.Signal { return []os.Signal{syscall.SIGUSR1} }
