package redis

import (
	"context"
	"strconv"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// serverClock tells the server's time from the gateway's monotonic clock and
// the last measurement that was quick.
type serverClock struct {
	mu    sync.Mutex // guards all below
	at    time.Time  // the server's time when it was
	local time.Time  // this on the monotonic clock
	trip  time.Duration
}

// clockAge is how long a quick measurement goes before a slower one.
const clockAge = 10 * time.Second

// note takes a measurement: the server's time, asked between two local instants.
func (c *serverClock) note(server, asked, answered time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	trip := answered.Sub(asked)
	if c.local.IsZero() || trip <= c.trip || answered.Sub(c.local) > clockAge {
		c.at, c.local, c.trip = server, asked.Add(trip/2), trip
	}
}

func (c *serverClock) measure(ctx context.Context, client goredis.UniversalClient) error {
	asked := time.Now()
	at, err := client.Time(ctx).Result()
	if err == nil {
		c.note(at, asked, time.Now())
	}
	return err
}

func (c *serverClock) copy(from *serverClock) {
	from.mu.Lock()
	defer from.mu.Unlock()
	c.at, c.local, c.trip = from.at, from.local, from.trip
}

func (c *serverClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.local.IsZero() {
		return time.Now().UTC()
	}
	return c.at.Add(time.Since(c.local)).UTC()
}

func (c *core) now() time.Time {
	if c.cfg.Clock != nil {
		return c.cfg.Clock().UTC()
	}
	return c.clock.now()
}

// clockArgument tells a script what time it is: nothing, so that it asks the server.
func (c *core) clockArgument() string {
	if c.cfg.Clock == nil {
		return ""
	}
	return micros(c.cfg.Clock())
}

func micros(t time.Time) string { return strconv.FormatInt(t.UnixMicro(), 10) }

// deadlineArgument is the deadline of a batch for a script that is told the clock.
func (c *core) deadlineArgument(deadline time.Time, clock string) string {
	if clock != "" && c.cfg.Clock().After(deadline) {
		return "0" // finer than the script can tell
	}
	return micros(deadline)
}
