package transport_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/graph/transport"
)

// TestEvents_ThatNobodyReadsShareTheBudget is a thousand listeners that never read, a
// twentieth of them: those whose events find no room are ended and told why.
func TestEvents_ThatNobodyReadsShareTheBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const listeners, size = 50, 100 << 10
		memory := budget.NewMemory(32<<20, 1<<20) // of which events have two
		g := serveInMemory(t, transport.Config{Memory: memory, PingInterval: time.Hour, WriteTimeout: time.Hour})
		var peers []*peer
		for range listeners {
			p := g.open()
			p.subscribe("1", fmt.Sprintf("subscription{feed(pad:%d)}", size))
			<-g.fed
			peers = append(peers, p)
		}
		g.publish(4)
		synctest.Wait()
		time.Sleep(budget.Patience)
		if used := memory.Used(); used < size || used > 2<<20 {
			t.Errorf("%d bytes of events wait", used)
		}
		refused := 0
		for _, p := range peers {
			for {
				text := p.read()
				if strings.Contains(text, `"type":"error"`) {
					if refused++; !strings.Contains(text, `"code":"UNAVAILABLE"`) || !strings.Contains(text, "limit-memory") || !strings.Contains(text, `"retryAfter":1`) {
						t.Errorf("%.300s", text)
					}
					break
				}
				if strings.Contains(text, `"feed":4`) {
					break
				}
			}
		}
		if refused == 0 || refused == listeners {
			t.Errorf("%d of %d were refused", refused, listeners)
		}
		for _, p := range peers {
			_ = p.Close()
		}
		synctest.Wait()
		if used := memory.Used(); used != 0 {
			t.Errorf("%d bytes are taken when all have left", used)
		}
		g.stop()
	})
}

// TestEvents_SubscriptionsKeepAPartOfTheBudget by their requests: they last, and those of
// others would find no room.
func TestEvents_SubscriptionsKeepAPartOfTheBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := budget.NewMemory(16<<20, 1<<20)
		g := serveInMemory(t, transport.Config{Memory: memory, PingInterval: time.Hour})
		p := g.open()
		refused := ""
		n := 0
		for ; n < 20 && refused == ""; n++ {
			p.subscribe(fmt.Sprint(n), "subscription{feed} #"+strings.Repeat("x", 200<<10))
			synctest.Wait()
			if len(g.fed) == n {
				refused = p.hearError(fmt.Sprint(n))
			}
		}
		if refused != "UNAVAILABLE" || n < 3 || memory.Used() > 1<<20 {
			t.Errorf("after %d, of %d bytes: %.300s", n, memory.Used(), refused)
		}
		p.subscribe("small", "subscription{feed}")
		synctest.Wait()
		if len(g.fed) != n {
			t.Error("a subscription with a small request is refused")
		}
		_ = p.Close()
		synctest.Wait()
		if used := memory.Used(); used != 0 {
			t.Errorf("%d bytes are taken when the client has left", used)
		}
		g.stop()
	})
}
