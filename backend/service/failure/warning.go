package failure

// WarningCode is the machine-readable kind of a warning.
type WarningCode string

// The codes of warnings.
const (
	// WarningDeprecated is a field that is set and should not be used any more.
	WarningDeprecated WarningCode = "DEPRECATED"
	// WarningWaiting is a reference to a resource that is not ready yet.
	WarningWaiting WarningCode = "WAITING"
)

// Warning accompanies a change that succeeded.
type Warning struct {
	Code    WarningCode
	Message string
	// Path of the value that it is about, as of [Error.Path]; empty for none.
	Path string
}
