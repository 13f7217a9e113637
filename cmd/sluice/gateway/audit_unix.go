//go:build unix

package gateway

import (
	"os"
	"syscall"
)

// reopenSignals returns the signals to begin a new file of the audit log.
func reopenSignals() []os.Signal { return []os.Signal{syscall.SIGUSR1} }
