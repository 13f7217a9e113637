package storekit

// Defaults of the bounds that the drivers' configurations have in common.
const (
	// DefaultLogEntries is the default of Config.LogEntries.
	DefaultLogEntries = 100_000
	// DefaultLogBytes is the default of Config.LogBytes.
	DefaultLogBytes = 256 << 20
)
