package backend

// Observer takes measured values, as a histogram of Prometheus does. It is safe for concurrent use and quick.
type Observer interface{ Observe(value float64) }

// WriteObservers take what a store measures of its writes, which it makes in groups: a group is one transaction of a
// file, or one pipeline to a server. A nil one takes nothing. Times are in seconds.
type WriteObservers struct {
	// Wait takes how long a batch waited until its group began.
	Wait Observer
	// Size takes how many batches a group has.
	Size Observer
	// Duration takes how long a group took, from its beginning until its batches are answered.
	Duration Observer
	// Sync takes how long a group took to be written to the file and synced; a store without a file has none.
	Sync Observer
}

// WithDefaults returns the observers with one that takes nothing in the place of those that are nil.
func (o WriteObservers) WithDefaults() WriteObservers {
	for _, one := range []*Observer{&o.Wait, &o.Size, &o.Duration, &o.Sync} {
		*one = ObserverOr(*one)
	}
	return o
}

// ObserverOr returns o, or an observer that takes nothing if o is nil.
func ObserverOr(o Observer) Observer {
	if o == nil {
		return noObserver{}
	}
	return o
}

type noObserver struct{}

// Observe implements [Observer].
func (noObserver) Observe(float64) {}
