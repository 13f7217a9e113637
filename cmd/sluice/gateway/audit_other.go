//go:build !unix

package gateway

import "os"

// reopenSignals returns the signals to begin a new file of the audit log. On this system there are none.
func reopenSignals() []os.Signal { return nil }
