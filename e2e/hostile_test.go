//go:build hostile

package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// What one request may make the gateway spend, however it asks, and what many
// at once may make it hold.
const (
	mostCPU      = 1e9 // nanoseconds
	mostMemory   = 200 << 20
	mostTogether = 600 << 20
	together     = 8
)

// ofOne bounds one request, also each of several that come together. One that uses up limit-steps takes about mostCPU; the
// same build measured between 0.9 and 1.7 of it on a machine whose memory others use too, which the scale of the processor
// does not show.
var ofOne = cost{cpu: 2 * mostCPU, grown: mostMemory}

// request is what is sent.
type request struct {
	query     string
	variables map[string]any
}

func (r request) body() string {
	raw, err := json.Marshal(map[string]any{"query": r.query, "variables": r.variables})
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// tally counts the answers to clients, by code and the limit that is named.
type tally struct {
	mu     sync.Mutex
	counts map[string]int
}

var (
	codeOf = regexp.MustCompile(`"code":"([A-Z_]+)"`)
	keyOf  = regexp.MustCompile(`"setting":"(limit-[a-z-]+)"|configuration key ([a-z-]+)`)
)

// said shortens the beginning of an answer to its code and the limit it names.
func said(text string) string {
	out := "data"
	if code := codeOf.FindStringSubmatch(text); code != nil {
		out = code[1]
	}
	if key := keyOf.FindStringSubmatch(text); key != nil {
		out += " " + key[1] + key[2]
	}
	return out
}

func (c *tally) note(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.counts == nil {
		c.counts = map[string]int{}
	}
	c.counts[said(text)]++
}

func (c *tally) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []string
	for _, said := range slices.Sorted(maps.Keys(c.counts)) {
		out = append(out, fmt.Sprintf("%d %s", c.counts[said], said))
	}
	return strings.Join(out, ", ")
}

// ask sends a request and reads the answer to its end. It returns its beginning,
// where errors stand.
func (g *gateway) ask(ctx context.Context, r request) (string, error) {
	head, _, err := g.exchange(ctx, r.body(), "application/json")
	return head, err
}

// exchange sends a body and returns the beginning and the end of the answer.
func (g *gateway) exchange(ctx context.Context, body, accept string) (head, tail string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, g.address+"/graphql", strings.NewReader(body))
	if err != nil {
		return "", "", err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", accept)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", "", err
	}
	defer func() { _ = res.Body.Close() }()
	const kept = 8 << 10
	buf := make([]byte, 64<<10)
	var last []byte
	for {
		n, err := res.Body.Read(buf)
		if len(head) < kept {
			head += string(buf[:min(n, kept)])
		}
		if last = append(last, buf[:n]...); len(last) > kept {
			last = append(last[:0], last[len(last)-kept:]...)
		}
		if err == io.EOF {
			return head, string(last), nil
		}
		if err != nil {
			return head, string(last), err
		}
	}
}

// many sends a request some times at once.
func (g *gateway) many(c *tally, n int, r request) {
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			head, err := g.ask(context.Background(), r)
			if err != nil {
				head = `"code":"GONE"` // the process was ended
			}
			c.note(head)
		})
	}
	all.Wait()
}

// aliased repeats a selection under other names.
func aliased(n int, what string) string {
	return aliasedBy(n, func(int) string { return what })
}

// aliasedBy writes selections under other names.
func aliasedBy(n int, what func(int) string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "a%d: %s ", i, what(i))
	}
	return b.String()
}

// hostileCase is a client that means to cost much.
type hostileCase struct {
	name string
	data data
	args []string
	// limit is part of what the client must be told.
	limit string
	// never is what no answer may say.
	never string
	most  cost // that of one request if it is nil
	// prepare does what costs nothing yet, and returns the attack.
	prepare func(t *testing.T, g *gateway, c *tally) (attack func())
}

// at sends a request so many times at once.
func at(n int, r request) func(*testing.T, *gateway, *tally) func() {
	return func(_ *testing.T, g *gateway, c *tally) func() {
		return func() { g.many(c, n, r) }
	}
}

// TestHostile measures what clients that mean harm make the built gateway spend,
// in CPU and memory of the process. No time of the wall is judged, and the CPU by what
// the same work takes elsewhere: a busy or slow machine makes nothing red.
func TestHostile(t *testing.T) {
	b := &besieged{t: t, catalogue: catalogue(t, hostileKinds), folders: map[data]string{}}
	t.Run("one", func(t *testing.T) {
		for _, c := range hostileCases() {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				b.bounded(t, c)
			})
		}
		t.Run("an alias bomb as configuration", func(t *testing.T) {
			t.Parallel()
			bombedConfig(t)
		})
	})
	t.Run("left", func(t *testing.T) { b.left(t) })
	t.Run("together", func(t *testing.T) { b.together(t) })
	t.Run("beside", func(t *testing.T) { b.beside(t) })
	t.Run("random", func(t *testing.T) { b.random(t) })
}

// bounded runs a case on a gateway that did nothing else.
func (b *besieged) bounded(t *testing.T, c hostileCase) {
	if c.most == (cost{}) {
		c.most = ofOne
	}
	g := b.start(t, c.data, c.args...)
	var outcomes tally
	attack := c.prepare(t, g, &outcomes)
	spent := process{t, g.cmd.Process.Pid}.measure(c.most, attack)
	fmt.Printf("%-60s %v  %s\n", c.name, spent, &outcomes)
	if spent.above(c.most) {
		t.Errorf("%v; at most %v are accepted", spent, c.most)
	}
	if spent.killed {
		g.wait()
		return
	}
	if !strings.Contains(outcomes.String(), c.limit) {
		t.Errorf("answers: %s; want %s", &outcomes, c.limit)
	}
	if c.never != "" && strings.Contains(outcomes.String(), c.never) {
		t.Errorf("answers: %s; %s is wrong", &outcomes, c.never)
	}
	g.must(`{ ports(first: 20) { nodes { id } } }`)
	if code := g.stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}
