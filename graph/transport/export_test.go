package transport

// What the tests of this package look into.
var (
	Negotiate  = negotiate
	ParseBody  = parseBody
	ParseQuery = parseQuery
)
