package redis

import "time"

// Pool describes the connections for calls. The counts begin again at 0 when the store learns of a new epoch, because
// it then opens new connections.
type Pool struct {
	// Connections is the number of open connections, and Idle the number of those that are not in use.
	Connections int `json:"open"`
	Idle        int `json:"idle"`
	// Waiting is the number of calls that are waiting for a connection.
	Waiting int `json:"waiting"`
	// Waits is how many calls have waited for a connection, and Timeouts how many of them have got none in time.
	Waits    uint64 `json:"waits"`
	Timeouts uint64 `json:"timeouts"`
	// Waited is the total time of these waits.
	Waited time.Duration `json:"waitedNanoseconds"`
}

// Pool returns the present state of the connections.
func (s *Store) Pool() Pool {
	ses, err := s.core.acquire(s)
	if err != nil {
		return Pool{}
	}
	defer ses.inflight.Done()
	stats := ses.client.PoolStats()
	return Pool{
		Connections: int(stats.TotalConns),
		Idle:        int(stats.IdleConns),
		Waiting:     int(stats.PendingRequests),
		Waits:       uint64(stats.WaitCount),
		Timeouts:    uint64(stats.Timeouts),
		Waited:      time.Duration(stats.WaitDurationNs),
	}
}

// WritesWaiting returns the number of batches that wait to be sent, to all servers together.
func (s *Store) WritesWaiting() (waiting int) {
	ses, err := s.core.acquire(s)
	if err != nil {
		return 0
	}
	defer ses.inflight.Done()
	ses.mu.Lock()
	defer ses.mu.Unlock()
	for _, w := range ses.writeQueues {
		w.mu.Lock()
		waiting += len(w.queue)
		w.mu.Unlock()
	}
	return waiting
}
