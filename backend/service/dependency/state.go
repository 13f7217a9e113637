package dependency

import "github.com/sluicegw/sluice/backend"

// StateOf is how far a resource is that another refers to, by what is stored of both:
// waited says whether the one that refers waits for it, and target is what is stored of
// it, nil for nothing.
func StateOf(waited bool, target *backend.Resource) State {
	switch {
	case target == nil:
		return Missing
	case !waited:
		return Bound
	case target.Deleting:
		return Deleting
	}
	return NotReady
}

// Name is how a wait for a resource is stored.
func Name(key backend.Key) string { return name(key) }
