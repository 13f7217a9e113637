package backend

// Observer receives measured values. A histogram of Prometheus implements it. Observe must return quickly and be
// safe for concurrent use.
type Observer interface{ Observe(value float64) }

// WriteObservers receive the measured values of a store's writes. A store writes batches in groups: a group is one
// transaction of a file, or one pipeline to a server. An observer may be nil. Times are in seconds.
type WriteObservers struct {
	// Wait receives the time for which a batch waited until its group began.
	Wait Observer
	// Size receives the number of batches in a group.
	Size Observer
	// Duration receives the time from the beginning of a group until its batches are answered.
	Duration Observer
	// Sync receives the time to write a group to the file and to sync the file. Stores without a
	// file do not use it.
	Sync Observer
}

// WithDefaults returns o. Each observer that is nil is replaced by one that does nothing.
func (o WriteObservers) WithDefaults() WriteObservers {
	for _, one := range []*Observer{&o.Wait, &o.Size, &o.Duration, &o.Sync} {
		*one = ObserverOr(*one)
	}
	return o
}

// ObserverOr returns o, or an observer that does nothing if o is nil.
func ObserverOr(o Observer) Observer {
	if o == nil {
		return noObserver{}
	}
	return o
}

type noObserver struct{}

// Observe implements [Observer].
func (noObserver) Observe(float64) {}
