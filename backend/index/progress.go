package index

import (
	"fmt"
	"time"

	"go.uber.org/zap"
)

type progress struct {
	begin       time.Time
	done, total int           // resources
	took        time.Duration // to read the resources that are done
}

// left estimates the time until the kind is filled, at the rate so far. It returns false if nothing was read yet.
func (r *progress) left(now time.Time) (time.Duration, bool) {
	if r.done == 0 {
		return 0, false
	}
	whole := r.took * time.Duration(max(r.total, r.done)) / time.Duration(r.done)
	return r.begin.Add(whole).Sub(now), true
}

// FillingError means that a kind that belongs in memory cannot be listed now: it is being read, or its changes are
// late.
type FillingError struct {
	Kind string
	// RetryAfter is the estimated time until the kind can be listed.
	RetryAfter time.Duration
}

// Error implements error.
func (e *FillingError) Error() string { return e.Kind + " is being read into memory" }

// The shortest and the longest [FillingError.RetryAfter].
const (
	minRetry = time.Second
	maxRetry = time.Minute
)

// fillingError returns the error for a kind that is not served. RetryAfter is estimated from the kind that is being
// filled now, which may be another kind than k.
func (x *Index) fillingError(k *kindIndex) *FillingError {
	x.mu.Lock()
	defer x.mu.Unlock()
	after := minRetry
	for _, one := range x.kinds {
		if left, known := one.read.left(time.Now()); known && one.state == filling && k.state != serving {
			after = left
		}
	}
	return &FillingError{k.Name, min(max(after.Round(time.Second), minRetry), maxRetry)}
}

// Progress returns a line of text for each kind that belongs in memory and is not served.
func (x *Index) Progress() (lines []string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, k := range x.kinds {
		switch k.state {
		case filling:
			lines = append(lines, fmt.Sprintf("%s: %d of %d resources are read", k.Name, k.read.done, k.read.total))
		case waiting, filled:
			lines = append(lines, k.Name+": waits")
		case givenUp, serving:
		}
	}
	return lines
}

// logEvery is the interval at which progress is logged.
const logEvery = 5 * time.Second

// logProgress logs the progress of the kinds if logEvery has passed. The caller holds
// mu.
func (x *Index) logProgress() {
	if time.Since(x.logged) < logEvery {
		return
	}
	for _, k := range x.kinds {
		if k.state == filling && time.Since(k.read.begin) >= logEvery {
			x.logged = time.Now()
			x.cfg.Logger.Info(
				"a kind is being read into memory",
				zap.String("kind", k.Name),
				zap.Int("resources", k.read.done),
				zap.Int("of", k.read.total),
				zap.Int("kinds", x.current.Load().served),
				zap.Int("ofKinds", len(x.kinds)),
			)
		}
	}
}
