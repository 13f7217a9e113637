package service_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicegw/sluice/backend/redis"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/query"
	"github.com/sluicegw/sluice/backend/service/servicetest"
	"github.com/sluicegw/sluice/internal/redistest"
)

// faultFor is how many reads a fault lasts.
const faultFor = 12

// reader writes through one gateway and reads through another what nobody else writes.
type reader struct {
	*testing.T
	near, far *servicetest.Gateway
	namespace string
	// titles of the books, by name, as they must be read.
	titles map[string]string
	rnd    *rand.Rand
	n      int
}

// TestService_NoReadIsOlderThanWhatWasAcknowledgedThroughAnotherGateway writes through a gateway
// and reads at once through one whose connection is cut, paused and slow, with its index
// on. SLUICE_TEST_FRESHNESS says how many reads are to be answered. It runs alone: what it takes for an outage is a
// quarter of a second.
func TestService_NoReadIsOlderThanWhatWasAcknowledgedThroughAnotherGateway(t *testing.T) {
	seed := servicetest.Setting(t, "SLUICE_TEST_SEED", rand.Uint64N(1<<32))
	t.Logf("SLUICE_TEST_SEED=%d", seed)
	wanted := int64(servicetest.Setting(t, "SLUICE_TEST_FRESHNESS", 300))
	server := redistest.Start(t)
	proxy := redistest.NewProxy(t, server.Addr)
	prefix := redistest.Prefix()
	var gateways [2]*servicetest.Gateway
	for i, url := range []string{server.URL(), proxy.URL()} {
		s, err := openPatiently(t, redis.Config{URL: url, Prefix: prefix, Shards: 2, Timeout: exchangeTime})
		gateways[i] = servicetest.NewGateway(t, servicetest.Opened(t, s, err), service.Config{})
		t.Cleanup(gateways[i].End)
		gateways[i].StartIndex()
		gateways[i].WaitFilled()
	}
	var answered, reads atomic.Int64
	faults := disorder{proxy: proxy, rnd: rand.New(rand.NewPCG(seed, 0)), every: max(60, wanted/200)}
	t.Cleanup(faults.end)
	var wg sync.WaitGroup
	for i := range 4 {
		r := &reader{T: t, near: gateways[0], far: gateways[1], namespace: fmt.Sprint("r", i), titles: map[string]string{}, rnd: rand.New(rand.NewPCG(seed, uint64(i+1)))}
		wg.Go(func() {
			for answered.Load() < wanted && !t.Failed() {
				r.write()
				if r.read() {
					answered.Add(1)
				}
				n := reads.Add(1)
				switch n { // for a while there is no index beyond the faulty connection
				case wanted / 3:
					gateways[1].EndIndex()
				case wanted / 2:
					gateways[1].StartIndex()
				}
				faults.at(n)
			}
		})
	}
	wg.Wait()
	stats := gateways[1].Index().Stats()
	t.Logf("%d reads, %d of them answered; of the index %d, of the store %d, %d waited", reads.Load(), answered.Load(), stats.Reads, stats.Fallbacks, stats.Waits)
	if stats.Reads == 0 || stats.Fallbacks == 0 {
		t.Error("the reads had only one source")
	}
}

// write changes a book through the near gateway.
func (r *reader) write() {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	name := fmt.Sprint("n", r.rnd.IntN(3))
	if r.titles[name] != "" && r.rnd.IntN(4) == 0 {
		if _, err := r.near.Writer.Delete(access.WithCaller(ctx, access.Caller{}), service.DeleteRequest{Identity: servicetest.Book(r.namespace, name)}); err != nil {
			r.Errorf("delete: %v", err)
		}
		delete(r.titles, name)
		return
	}
	r.n++
	title := fmt.Sprintf("t%08d", r.n)
	_, err := r.near.Writer.Upsert(access.WithCaller(ctx, access.Caller{}), service.UpsertRequest{Identity: servicetest.Book(r.namespace, name), Spec: json.RawMessage(fmt.Sprintf(`{"title":%q}`, title))})
	if err != nil {
		r.Errorf("upsert: %v", err)
	}
	r.titles[name] = title
}

// read reads through the far gateway in one of several ways. It reports whether that answered.
func (r *reader) read() bool {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	size := 10
	req := query.ListRequest{Kind: "Book", Namespace: &r.namespace, First: &size}
	newest := ""
	for _, title := range r.titles {
		newest = max(newest, title)
	}
	var got, want string
	var err error
	switch how := r.rnd.IntN(5); how {
	case 0, 1:
		name := fmt.Sprint("n", r.rnd.IntN(3))
		var found *query.Resource
		if found, err = r.far.Reader.Get(access.WithCaller(ctx, access.Caller{}), servicetest.Book(r.namespace, name)); found != nil {
			got = servicetest.BookTitle(r, found.Stored)
		}
		want = r.titles[name]
	case 2:
		for i := range 3 {
			want += " " + r.titles[fmt.Sprint("n", i)]
		}
		want = strings.Join(strings.Fields(want), " ")
		got, err = r.list(ctx, req)
	case 3:
		size = 1
		req.OrderBy = []query.Order{{Field: "spec.title", Descending: true}}
		want = newest
		got, err = r.list(ctx, req)
	case 4:
		size = 0
		req.Filter = map[string]any{"spec": map[string]any{"title": map[string]any{"gte": "t"}}}
		want = fmt.Sprint(len(r.titles))
		var page *query.Page
		if page, err = r.far.Reader.List(access.WithCaller(ctx, access.Caller{}), req); err == nil {
			var n int
			n, err = page.TotalCount(ctx)
			got = fmt.Sprint(n)
		}
	}
	if code, _ := servicetest.ErrorOf(r, err); code != "" {
		if code != failure.CodeUnavailable && code != failure.CodeTimeout {
			r.Errorf("read: %v", err)
		}
		return false
	}
	if got != want {
		r.Errorf("namespace %s: read %q, want %q of %v", r.namespace, got, want, r.titles)
	}
	return true
}

func (r *reader) list(ctx context.Context, req query.ListRequest) (string, error) {
	page, err := r.far.Reader.List(access.WithCaller(ctx, access.Caller{}), req)
	if err != nil {
		return "", err
	}
	var titles []string
	for i := range page.Edges {
		titles = append(titles, servicetest.BookTitle(r, page.Edges[i].Resource.Stored))
	}
	return strings.Join(titles, " "), nil
}

// disorder is what goes wrong with a connection, and ends.
type disorder struct {
	proxy *redistest.Proxy
	every int64      // reads to the next fault
	mu    sync.Mutex // guards rnd
	rnd   *rand.Rand
}

// at lets happen what is due at a read.
func (d *disorder) at(n int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch n % d.every {
	case 10:
		switch d.rnd.IntN(6) {
		case 0:
			d.proxy.Cut()
		case 1:
			d.proxy.Pause()
		case 2:
			d.proxy.Slow(20*time.Millisecond, redistest.Command("XREAD"))
		case 3:
			d.proxy.Slow(150*time.Millisecond, redistest.Command("XREAD"))
		case 4:
			d.proxy.Slow(5*time.Millisecond, func([]string) bool { return true })
		case 5:
			d.proxy.DropReplies(2, func([]string) bool { return true })
		}
	case 10 + faultFor:
		d.end()
	}
}

func (d *disorder) end() {
	d.proxy.Slow(0, nil)
	d.proxy.Resume()
}
