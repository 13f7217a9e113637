//go:build !unix

package gateway

import "os"

// reopenSignals returns the signals that make the gateway start a new file of its audit
// log; none on this system.
func reopenSignals() []os.Signal { return nil }
