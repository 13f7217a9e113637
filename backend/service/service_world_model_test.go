package service_test

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/sluicegw/sluice/backend/service/servicetest"
)

// bookNames is how many books there may be in each namespace. They are few, so that clients meet.
const bookNames = 4

// outcome is what the client of a call was told.
type outcome string

const (
	applied  outcome = "applied" // of a read: answered
	exists   outcome = "exists"
	absent   outcome = "absent"
	conflict outcome = "conflict"
	// unknown: the write may happen at any time after the call, or never.
	unknown outcome = "unknown"
)

// state is the title of each book in a namespace, empty for none. Each write has a
// title of its own.
type state [bookNames]string

// call is one request of a client and its answer.
type call struct {
	client int
	// op is get, list, count, create, update or delete.
	op        string
	namespace int
	name      int
	// title that a write makes, and expected, the one at whose revision it is made.
	title, expected string
	outcome         outcome
	// seen is what a get or a list returned, and count what a count did.
	seen  state
	count int
	// whole says that a list shows one state. One that the store of Redis answers has the
	// names of one state, and may have newer resources under them.
	whole bool
	// indexed says that a read was answered by the index in memory.
	indexed     bool
	began, ends int64
}

func (c *call) String() string {
	return fmt.Sprintf("client %d %8d..%8d us  %s ns%d/n%d title %q expected %q: %s %q %d index %v", c.client, c.began/1000, c.ends/1000, c.op, c.namespace, c.name, c.title, c.expected, c.outcome, c.seen, c.count, c.indexed)
}

// step reports whether a namespace in a state answers a call as it was answered, and its
// state after that.
func (s state) step(c *call) (bool, state) {
	at := s[c.name]
	switch c.op {
	case "get":
		return at == c.seen[c.name], s
	case "list":
		for i := range s {
			if c.whole && s[i] != c.seen[i] || (s[i] == "") != (c.seen[i] == "") {
				return false, s
			}
		}
		return true, s
	case "count":
		n := 0
		for _, title := range s {
			if title != "" {
				n++
			}
		}
		return n == c.count, s
	}
	possible := at != "" && at == c.expected
	if c.op == "create" {
		possible = at == ""
	}
	switch c.outcome {
	case applied, unknown:
		if possible {
			s[c.name] = c.title // of a delete it is empty
		}
		return possible || c.outcome == unknown, s
	case exists, conflict:
		return at != "" && !possible, s
	case absent:
		return at == "", s
	}
	return false, s
}

// bookModel is a namespace of books, or of one book as well.
func bookModel() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return state{} },
		Step: func(s, in, _ any) (bool, any) { return s.(state).step(in.(*call)) },
	}
}

// checkTimeout is the maximum time for checking a history.
const checkTimeout = 30 * time.Second

// contradiction returns why a history is not linearizable; "" if it is. It checks each namespace with its lists and
// counts, and each book with what the lists show of it.
func contradiction(history []*call) string {
	if why := impossible(history); why != "" {
		return why
	}
	for namespace := range namespaces {
		in := slices.DeleteFunc(slices.Clone(history), func(c *call) bool { return c.namespace != namespace })
		for name := range bookNames {
			if got := check(ofBook(in, name)); got != porcupine.Ok {
				return fmt.Sprintf("book ns%d/n%d: %s", namespace, name, got)
			}
		}
		if got := check(in); got != porcupine.Ok {
			return fmt.Sprintf("namespace ns%d: %s", namespace, got)
		}
	}
	return ""
}

// impossible names an answer with a title that no write can have made.
func impossible(history []*call) string {
	made := map[string]bool{"": true}
	for _, c := range history {
		made[c.title] = made[c.title] || c.outcome == applied || c.outcome == unknown
	}
	for _, c := range history {
		for _, title := range c.seen {
			if !made[title] {
				return fmt.Sprintf("the write of %q has failed, and is seen: %s", title, c)
			}
		}
	}
	return ""
}

// ofBook is the part of a namespace's history that is about one book.
func ofBook(history []*call, name int) (out []*call) {
	for _, c := range history {
		switch {
		case c.op == "list":
			get := *c
			get.op, get.name = "get", name
			out = append(out, &get)
		case c.op != "count" && c.name == name:
			out = append(out, c)
		}
	}
	return out
}

func check(history []*call) porcupine.CheckResult {
	operations := make([]porcupine.Operation, len(history))
	for i, c := range history {
		operations[i] = porcupine.Operation{ClientId: c.client, Input: c, Call: c.began, Return: c.ends}
		if c.outcome == unknown {
			operations[i].Return = math.MaxInt64
		}
	}
	return porcupine.CheckOperationsTimeout(bookModel(), operations, checkTimeout)
}

// tally counts what clients were told.
type tally struct {
	mu     sync.Mutex // guards counts
	counts map[string]int
}

func (t *tally) add(history []*call) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.counts == nil {
		t.counts = map[string]int{}
	}
	for _, c := range history {
		t.counts[c.op+" "+string(c.outcome)]++
		if c.indexed {
			t.counts["from the index"]++
		}
	}
	t.counts["histories"]++
}

func (t *tally) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return fmt.Sprint(t.counts)
}

// report logs a history in the order in which its calls began.
func report(t *testing.T, history []*call) {
	t.Helper()
	slices.SortFunc(history, func(a, b *call) int { return int(a.began - b.began) })
	for _, c := range history {
		t.Log(c)
	}
}

func TestService_AHistoryThatIsWrongIsRejected(t *testing.T) {
	t.Parallel()
	seed := servicetest.Setting(t, "SLUICE_TEST_SEED", 1)
	for range servicetest.Sized(20, 4) {
		right := runHistory(t, plan{seed: seed, store: "memory", modes: [2]mode{on, off}})
		if why := contradiction(right); why != "" {
			t.Fatalf("SLUICE_TEST_SEED=%d: %s", seed, why)
		}
		for what, spoil := range map[string]func(c, update, create *call) bool{
			"a get of a stale title": func(c, update, _ *call) bool {
				return replaceSeen(c, "get", update)
			},
			"a list with a stale title": func(c, update, _ *call) bool {
				return replaceSeen(c, "list", update)
			},
			"a list without a book": func(c, _, create *call) bool {
				if c.op != "list" || c.seen[create.name] != create.title {
					return false
				}
				c.seen[create.name] = ""
				return true
			},
			"a count of one more": func(c, _, _ *call) bool {
				c.count++
				return c.op == "count"
			},
			"a conflict where there was none": func(c, _, _ *call) bool {
				was := c.outcome
				c.outcome = conflict
				return c.op == "update" && was == applied
			},
			"an update that was lost": func(c, update, _ *call) bool {
				// The update is said to have failed for certain, and what it made was seen.
				c.outcome = absent
				return c.op == "update" && c.title == update.title
			},
		} {
			if !rejects(right, spoil) {
				t.Errorf("%s is accepted in the history of seed %d", what, seed)
			}
		}
		seed++
	}
}

// replaceSeen puts the title that an update replaced into a read that saw what it made.
func replaceSeen(c *call, op string, update *call) bool {
	if c.op != op || c.seen[update.name] != update.title || c.began <= update.ends {
		return false
	}
	c.seen[update.name] = update.expected
	return true
}

// rejects makes one call of a history wrong and reports whether the history is rejected.
// It tries others where nothing can be spoilt, or where it could have been so: on a busy
// machine many calls are under way at once, and either of two counts may be right then.
func rejects(right []*call, spoil func(c, update, create *call) bool) bool {
	tried := 0
	for i, c := range right {
		here := 0
		for _, write := range right {
			if write.namespace != c.namespace || write.outcome != applied || write.op != "update" && write.op != "create" {
				continue
			}
			update, create := &call{name: write.name, title: "none", ends: math.MaxInt64}, &call{title: "none"}
			if write.op == "update" {
				update = write
			} else {
				create = write
			}
			wrong := slices.Clone(right)
			copied := *c
			wrong[i] = &copied
			if !spoil(&copied, update, create) {
				continue
			}
			if tried++; contradiction(wrong) != "" {
				return true
			}
			if tried > 100 {
				return false
			}
			if here++; here == 2 { // of the same call
				break
			}
		}
	}
	return false
}
