package failure

// WarningCode is the machine-readable kind of a warning.
type WarningCode string

// WarningDeprecated is a field that is set and should not be used any more.
const WarningDeprecated WarningCode = "DEPRECATED"

// Warning is what a caller should know though the change was made.
type Warning struct {
	Code    WarningCode
	Message string
	// Path of the value that it is about, as of [Error.Path]; empty for none.
	Path string
}
