//go:build !unix

package gateway

import "os"

// reopenSignals tell the gateway to begin a new file of its audit log; here there is none.
func reopenSignals() []os.Signal { return nil }
