package transport

// What the tests of this package look into.
var (
	Negotiate  = negotiate
	ParseBody  = parseBody
	ParseQuery = parseQuery
)

// Shared is how many streams share an execution, and how many of them were told everything.
func (e *Executor) Shared() (all, parked int) {
	e.groups.mu.Lock()
	defer e.groups.mu.Unlock()
	for _, g := range e.groups.open {
		g.mu.Lock()
		all += len(g.followers)
		parked += len(g.followers) - g.behind
		g.mu.Unlock()
	}
	return all, parked
}

// ReadingState is how many streams share executions that read the state.
func (e *Executor) ReadingState() (n int) {
	e.groups.mu.Lock()
	defer e.groups.mu.Unlock()
	for _, g := range e.groups.open {
		g.mu.Lock()
		if !g.live {
			n += len(g.followers)
		}
		g.mu.Unlock()
	}
	return n
}
