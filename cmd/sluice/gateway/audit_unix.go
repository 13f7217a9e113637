//go:build unix

package gateway

import (
	"os"
	"syscall"
)

// reopenSignals returns the signals that make the gateway start a new file of its audit
// log.
func reopenSignals() []os.Signal { return []os.Signal{syscall.SIGUSR1} }
