package service_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/query"
	queryplan "github.com/sluicegw/sluice/backend/service/query/plan"
	"github.com/sluicegw/sluice/backend/service/servicetest"
)

// The size of a history.
const (
	clients    = 8
	namespaces = 2
	maxCalls   = 300
)

// requestTime bounds a call.
const requestTime = 4 * time.Second

// known is a title that was seen, and its revision.
type known struct{ title, revision string }

// history is clients of two gateways on one store, and the answers that they got.
type history struct {
	*testing.T
	plan
	world *world
	start time.Time

	mu sync.Mutex // guards all below
	// left is how many calls have not begun.
	left, begun, titlesMade int
	rnd                     *rand.Rand
	calls                   []*call
	// revisions are those of the titles, and titles those of the revisions.
	revisions, titles map[string]string
	// newest is what was seen last of each book, and older what some were before.
	newest map[[2]int]known
	older  map[[2]int]known
}

// runHistory lets the clients call while things go wrong, and returns what can be judged:
// a call that has certainly done nothing is left out.
func runHistory(t *testing.T, p plan) []*call {
	rnd := rand.New(rand.NewPCG(p.seed, 0))
	h := &history{
		T: t, plan: p, start: time.Now(), left: maxCalls/3 + rnd.IntN(2*maxCalls/3), rnd: rnd,
		revisions: map[string]string{}, titles: map[string]string{}, newest: map[[2]int]known{}, older: map[[2]int]known{},
	}
	h.world = openWorld(t, p)
	defer h.world.end()
	h.world.schedule(rnd, h.left)
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() {
			own := rand.New(rand.NewPCG(p.seed, uint64(i+1)))
			for h.pass() {
				h.call(i, own)
			}
		})
	}
	wg.Wait()
	return h.calls
}

// pass lets a client make a call; false means that there are no more. What is due to go
// wrong does so here.
func (h *history) pass() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.left == 0 {
		return false
	}
	h.left--
	h.begun++
	h.world.due(h.begun)
	return true
}

// call makes a random call and notes its answer.
func (h *history) call(client int, rnd *rand.Rand) {
	ctx, cancel := context.WithTimeout(context.Background(), requestTime)
	defer cancel()
	c := &call{client: client, namespace: rnd.IntN(namespaces), name: rnd.IntN(bookNames), outcome: applied}
	g := h.world.gateway(rnd.IntN(2))
	id := servicetest.Book(fmt.Sprint("ns", c.namespace), fmt.Sprint("n", c.name))
	at := [2]int{c.namespace, c.name}
	var seen known
	c.op = []string{"get", "get", "list", "list", "count", "create", "create", "update", "update", "update", "delete"}[rnd.IntN(11)]
	if c.op == "update" || c.op == "delete" {
		if seen = h.expected(at, rnd); seen.title == "" {
			c.op = "create"
		}
	}
	if c.op == "create" || c.op == "update" {
		c.title = h.newTitle(client)
	}
	c.expected = seen.title
	spec := json.RawMessage(fmt.Sprintf(`{"title":%q,"weight":%d,"shelfRef":"s"}`, c.title, rnd.IntN(5)))
	var written *service.Written
	var err error
	ctx, explained := queryplan.WithExplanation(ctx)
	c.began = time.Since(h.start).Nanoseconds()
	switch c.op {
	case "get":
		var r *query.Resource
		if r, err = g.Reader.Get(access.WithCaller(ctx, access.Caller{}), id); err == nil && r != nil {
			h.see(c, c.name, r)
		}
	case "list", "count":
		err = h.list(ctx, g, c, rnd)
	case "create":
		written, err = g.Writer.Create(access.WithCaller(ctx, access.Caller{}), service.CreateRequest{Identity: id, Spec: spec})
	case "update":
		written, err = g.Writer.Update(access.WithCaller(ctx, access.Caller{}), service.UpdateRequest{Identity: id, ExpectedRevision: seen.revision, Spec: spec})
	case "delete":
		_, err = g.Writer.Delete(access.WithCaller(ctx, access.Caller{}), service.DeleteRequest{Identity: id, ExpectedRevision: &seen.revision})
	}
	c.ends = time.Since(h.start).Nanoseconds()
	for _, read := range explained.Reads() {
		c.indexed = read.Source == "index"
	}
	c.whole = c.indexed || h.store != "redis"
	if !h.noteOutcome(c, err) {
		return
	}
	if written != nil {
		h.learn(at, known{c.title, written.Resource.Stored.Revision.String()})
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls = append(h.calls, c)
}

// list asks for all books of a namespace in one of several ways, or counts them.
func (h *history) list(ctx context.Context, g *servicetest.Gateway, c *call, rnd *rand.Rand) error {
	namespace, size := fmt.Sprint("ns", c.namespace), 50
	if c.op == "count" {
		size = 0
	}
	req := query.ListRequest{Kind: "Book", Namespace: &namespace, First: &size}
	switch rnd.IntN(6) {
	case 0:
		req.OrderBy = []query.Order{{Field: "spec.title", Descending: true}}
	case 1:
		req.OrderBy = []query.Order{{Field: "updatedAt", Descending: true}}
	case 2:
		req.Filter = map[string]any{"spec": map[string]any{"shelfRef": map[string]any{"eq": "s"}}}
	case 3:
		req.Filter = map[string]any{"name": map[string]any{"startsWith": "n"}}
	}
	page, err := g.Reader.List(access.WithCaller(ctx, access.Caller{}), req)
	if err == nil && c.op == "count" {
		c.count, err = page.TotalCount(ctx)
	}
	if err != nil {
		return err
	}
	for i := range page.Edges {
		r := &page.Edges[i].Resource
		var name int
		if _, err := fmt.Sscanf(r.Stored.Name, "n%d", &name); err != nil || name >= bookNames || r.Stored.Namespace != namespace || c.seen[name] != "" {
			h.Errorf("%s has %s", c, r.Stored.Key)
			continue
		}
		h.see(c, name, r)
	}
	return nil
}

// noteOutcome records the outcome that an error stands for. It returns false if the outcome is unknown.
func (h *history) noteOutcome(c *call, err error) bool {
	code, e := servicetest.ErrorOf(h, err)
	writes := c.op == "create" || c.op == "update" || c.op == "delete"
	switch {
	case err == nil:
		return true
	case code == failure.CodeUnavailable || code == failure.CodeTimeout:
		if e.Outcome == failure.OutcomeUnknown {
			c.outcome = unknown
			return true
		}
		return false
	case code == failure.CodeAborted && e.Retryable:
		return false // it has lost races until its time was over
	case writes && code == failure.CodeConflict:
		c.outcome = conflict
	case c.op == "create" && code == failure.CodeAlreadyExists:
		c.outcome = exists
	case writes && code == failure.CodeNotFound:
		c.outcome = absent
	default:
		h.Errorf("%s: %v", c, err)
		return false
	}
	return true
}

// see notes a book that was read.
func (h *history) see(c *call, name int, r *query.Resource) {
	c.seen[name] = servicetest.BookTitle(h, r.Stored)
	h.learn([2]int{c.namespace, name}, known{c.seen[name], r.Stored.Revision.String()})
}

// learn notes a title and its revision: each has one of the other for ever.
func (h *history) learn(at [2]int, k known) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if was := h.revisions[k.title]; was != "" && was != k.revision {
		h.Errorf("title %q has the revisions %s and %s", k.title, was, k.revision)
	}
	if was := h.titles[k.revision]; was != "" && was != k.title {
		h.Errorf("revision %s has the titles %q and %q", k.revision, was, k.title)
	}
	h.revisions[k.title], h.titles[k.revision] = k.revision, k.title
	if h.newest[at] != k {
		h.older[at], h.newest[at] = h.newest[at], k
	}
}

// expected is a title that was seen of a book: the newest, or sometimes an older one.
func (h *history) expected(at [2]int, rnd *rand.Rand) known {
	h.mu.Lock()
	defer h.mu.Unlock()
	if older := h.older[at]; older.title != "" && rnd.IntN(5) == 0 {
		return older
	}
	return h.newest[at]
}

func (h *history) newTitle(client int) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.titlesMade++
	return fmt.Sprintf("t%d-%d", client, h.titlesMade)
}
