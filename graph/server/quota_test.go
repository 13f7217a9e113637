package server_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/graph/server"
	"github.com/sluicegw/sluice/graph/transport"
)

// refused returns the setting that an error names, and after how many seconds to try again.
func refused(t *testing.T, err error) (setting string, after int) {
	t.Helper()
	var known *failure.Error
	if err == nil {
		return "", 0
	}
	if !errors.As(err, &known) || known.Code != failure.CodeLimitExceeded || !known.Retryable {
		t.Fatalf("%v", err)
	}
	return known.Setting, known.RetryAfter
}

func TestACallerHasNoMoreAtATimeThanItMay(t *testing.T) {
	limits := server.CallerLimits{Requests: 2, Subscriptions: 1, Sockets: 1, Rate: 1000, Steps: 1000}
	c := server.NewCallers(limits, server.DefaultCallerLimits(1), time.Now)
	for thing, setting := range map[transport.Use]string{transport.UseRequest: "limit-caller-requests", transport.UseSubscription: "limit-caller-subscriptions", transport.UseSocket: "limit-caller-sockets"} {
		var done func()
		var err error
		most := 0
		for err == nil {
			var one func()
			if one, err = c.Begin("a", thing); err == nil {
				most, done = most+1, one
			}
		}
		if got, _ := refused(t, err); got != setting || most > 2 {
			t.Errorf("%v: %d were admitted, then %v", thing, most, err)
		}
		if _, err := c.Begin("b", thing); err != nil {
			t.Errorf("another caller is refused: %v", err)
		}
		done()
		if _, err := c.Begin("a", thing); err != nil {
			t.Errorf("after one was given back: %v", err)
		}
	}
}

func TestACallerIsPacedByItsRequestsAndItsWork(t *testing.T) {
	now := time.Unix(1e9, 0)
	c := server.NewCallers(server.CallerLimits{Rate: 3, Steps: 100}, server.DefaultCallerLimits(1), func() time.Time { return now })
	begin := func(name string) (string, int) {
		done, err := c.Begin(name, transport.UseRequest)
		if err == nil {
			done()
		}
		return refused(t, err)
	}
	for range 3 {
		if setting, _ := begin("fast"); setting != "" {
			t.Errorf("refused by %s", setting)
		}
	}
	if setting, after := begin("fast"); setting != "limit-caller-rate" || after != 1 {
		t.Errorf("%q, %d", setting, after)
	}
	now = now.Add(time.Second)
	if setting, _ := begin("fast"); setting != "" {
		t.Errorf("a second later refused by %s", setting)
	}
	c.Spend("heavy", 550)
	if setting, after := begin("heavy"); setting != "limit-caller-steps" || after != 5 {
		t.Errorf("after work for five seconds and a half: %q, %d", setting, after)
	}
	now = now.Add(4 * time.Second)
	if setting, after := begin("heavy"); setting != "limit-caller-steps" || after != 1 {
		t.Errorf("four seconds later: %q, %d", setting, after)
	}
	now = now.Add(time.Second)
	if setting, _ := begin("heavy"); setting != "" {
		t.Errorf("five seconds later refused by %s", setting)
	}
}

// TestMuchWorkIsCountedAtOnce takes for ever if it is counted bit by bit, and meanwhile nobody is admitted.
func TestMuchWorkIsCountedAtOnce(t *testing.T) {
	c := server.NewCallers(server.CallerLimits{Steps: 1}, server.DefaultCallerLimits(1), time.Now)
	c.Spend("a", 1e12)
	if _, err := c.Begin("a", transport.UseRequest); err == nil {
		t.Error("its work does not count")
	}
	if _, err := c.Begin("b", transport.UseRequest); err != nil {
		t.Error(err)
	}
}

func TestIdleCallersAreForgotten(t *testing.T) {
	c := server.NewCallers(server.CallerLimits{Subscriptions: 1}, server.DefaultCallerLimits(1), time.Now)
	if _, err := c.Begin("held", transport.UseSubscription); err != nil {
		t.Fatal(err)
	}
	for i := range 50_000 {
		c.Spend(fmt.Sprint(i), 1)
	}
	if n := c.Len(); n > 20_001 {
		t.Errorf("%d callers are remembered", n)
	}
	if _, err := c.Begin("held", transport.UseSubscription); err == nil {
		t.Error("a caller with an open subscription was forgotten")
	}
}

func BenchmarkBegin(b *testing.B) {
	c := server.NewCallers(server.CallerLimits{Rate: 1 << 30, Steps: 1 << 40}, server.DefaultCallerLimits(1), time.Now)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			done, err := c.Begin("oidc:corp:alice", transport.UseRequest)
			if err != nil {
				b.Fatal(err)
			}
			done()
			c.Spend("oidc:corp:alice", 10)
		}
	})
}

func TestWhatIsInFlightCountsAsMuchAsWhatCameBefore(t *testing.T) {
	now := time.Unix(1e9, 0)
	c := server.NewCallers(server.CallerLimits{Steps: 1000}, server.DefaultCallerLimits(1), func() time.Time { return now })
	for range 50 {
		c.Spend("heavy", 400)
		now = now.Add(time.Second)
	}
	for i := range 3 { // at most three of 400 begin before the first has been paid
		if _, err := c.Begin("heavy", transport.UseRequest); err != nil {
			t.Fatalf("the %dth: %v", i+1, err)
		}
	}
	if setting, _ := refused(t, func() error { _, err := c.Begin("heavy", transport.UseRequest); return err }()); setting != "limit-caller-steps" {
		t.Errorf("the fourth is refused by %q", setting)
	}
}

// TestQuota_TellsWhoTakesMost: by the work of late, of which half counts after a minute, then by what is open.
func TestQuota_TellsWhoTakesMost(t *testing.T) {
	now := time.Unix(1e9, 0)
	c := server.NewCallers(server.CallerLimits{}, server.DefaultCallerLimits(1), func() time.Time { return now })
	c.Spend("early", 1000)
	now = now.Add(time.Minute)
	c.Spend("late", 800)
	for range 2 {
		if _, err := c.Begin("open", transport.UseSubscription); err != nil {
			t.Fatal(err)
		}
	}
	want := []server.CallerState{
		{Name: "late", RecentSteps: 800},
		{Name: "early", RecentSteps: 500},
		{Name: "open", Subscriptions: 2},
	}
	if diff := cmp.Diff(want, c.Noisiest(10)); diff != "" {
		t.Error(diff)
	}
	if got := c.Noisiest(1); len(got) != 1 || got[0].Name != "late" {
		t.Errorf("%+v", got)
	}
}
