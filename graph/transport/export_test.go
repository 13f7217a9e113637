package transport

// What the tests of this package look into.
var (
	Negotiate  = negotiate
	ParseBody  = parseBody
	ParseQuery = parseQuery
)

// Shared is how many streams share an execution, and how many of them were told everything.
func (e *Executor) Shared() (all, parked int) {
	all, parked, _ = e.subscriptions.Count()
	return all, parked
}

// ReadingState is how many streams share executions that read the state.
func (e *Executor) ReadingState() (n int) {
	_, _, n = e.subscriptions.Count()
	return n
}
