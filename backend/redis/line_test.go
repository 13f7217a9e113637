package redis_test

import (
	"net"
	"testing"
	"time"

	"github.com/sluicegw/sluice/backend/redis"
)

// counted is a connection that notes the deadlines that are set.
type counted struct {
	net.Conn
	read, write []time.Time
}

func (c *counted) SetReadDeadline(t time.Time) error {
	c.read = append(c.read, t)
	return c.Conn.SetReadDeadline(t)
}

func (c *counted) SetWriteDeadline(t time.Time) error {
	c.write = append(c.write, t)
	return c.Conn.SetWriteDeadline(t)
}

func TestADeadlineIsMovedOnlyIfThePresentOneWillNotDo(t *testing.T) {
	here, there := net.Pipe()
	t.Cleanup(func() { _, _ = here.Close(), there.Close() })
	c := &counted{Conn: here}
	l := redis.NewLine(c)
	begin := time.Now()
	for _, step := range []struct {
		say   string
		at    time.Time
		moved bool
	}{
		{"the first", begin.Add(time.Hour), true},
		{"a little later", begin.Add(time.Hour + time.Minute), false},
		{"the first again", begin.Add(time.Hour), false},
		{"later than the present one", begin.Add(2 * time.Hour), true},
		{"much earlier", begin.Add(time.Minute), true},
		{"none", time.Time{}, true},
		{"one again", begin.Add(time.Minute), true},
		{"in the past", begin.Add(-time.Second), true},
	} {
		was := len(c.read)
		if err := l.SetDeadline(step.at); err != nil {
			t.Fatal(err)
		}
		if moved := len(c.read) > was; moved != step.moved {
			t.Errorf("%s: moved is %v", step.say, moved)
		}
		at := c.read[len(c.read)-1]
		if at.IsZero() != step.at.IsZero() || at.Before(step.at) || at.After(step.at.Add(max(0, step.at.Sub(begin))/10)) {
			t.Errorf("%s: %v was set for %v", step.say, at, step.at)
		}
	}
	if len(c.write) != len(c.read) {
		t.Errorf("the deadline of reads was moved %d times, that of writes %d times", len(c.read), len(c.write))
	}
	if _, err := l.Read(make([]byte, 1)); err == nil {
		t.Error("a read whose deadline is in the past waits")
	}
}
