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
	"time"
)

// What a hostile client may make the gateway spend, however it asks.
const (
	mostCPU    = time.Second
	mostMemory = 200 << 20
)

// bigKind is a kind whose resources may have a megabyte.
const bigKind = `type Blob @resource(plural: "blobs", group: "example.com", version: "v1", scope: NAMESPACED) { spec: BlobSpec! }
type BlobSpec { text: String @constraint(maxLength: 1000000) }
`

// tally counts what clients were told, by code and the limit that is named.
type tally struct {
	mu   sync.Mutex
	told map[string]int
}

var (
	codeOf = regexp.MustCompile(`"code":"([A-Z_]+)"`)
	keyOf  = regexp.MustCompile(`"key":"([a-z-]+)"|configuration key ([a-z-]+)`)
)

func (c *tally) note(text string) {
	said := "data"
	if code := codeOf.FindStringSubmatch(text); code != nil {
		said = code[1]
	}
	if key := keyOf.FindStringSubmatch(text); key != nil {
		said += " " + key[1] + key[2]
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.told == nil {
		c.told = map[string]int{}
	}
	c.told[said]++
}

func (c *tally) String() string {
	var out []string
	for _, said := range slices.Sorted(maps.Keys(c.told)) {
		out = append(out, fmt.Sprintf("%d %s", c.told[said], said))
	}
	return strings.Join(out, ", ")
}

// ask sends a query and reads the answer to its end. It returns its beginning,
// where errors stand.
func (g *gateway) ask(ctx context.Context, query string) (string, error) {
	body, err := json.Marshal(map[string]any{"query": query})
	if err != nil {
		return "", err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, g.address+"/graphql", strings.NewReader(string(body)))
	if err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = res.Body.Close() }()
	head, err := io.ReadAll(io.LimitReader(res.Body, 8<<10))
	if err == nil {
		_, err = io.Copy(io.Discard, res.Body)
	}
	return string(head), err
}

// many sends a query some times at once.
func (g *gateway) many(c *tally, n int, query string) {
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			head, err := g.ask(context.Background(), query)
			if err != nil {
				head = err.Error()
			}
			c.note(head)
		})
	}
	all.Wait()
}

// aliased repeats a selection under other names.
func aliased(n int, what string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "a%d: %s ", i, what)
	}
	return b.String()
}

// hostileCase is a client that means to cost much.
type hostileCase struct {
	name, limit string
	// prepare does what costs nothing yet, and returns the attack.
	prepare func(t *testing.T, g *gateway, c *tally) (attack func())
}

// portFields are all that is small of a port.
const portFields = `id kind version metadata { namespace name uid revision generation createdAt updatedAt } spec { managementPolicy resource { networkRef addresses { subnetRef ip } } }`

// documents are hostile queries, each sent once.
func documents() []struct{ name, limit, query string } {
	return []struct{ name, limit, query string }{
		{"1,000 x 1,000 nested pages", "limit-objects", `{ ports(first: 1000) { nodes { network { ports(first: 1000) { nodes { id } } } } } }`},
		{"20 aliased totalCount with a filter", "limit-rows", `{ ports(first: 1000) { nodes { network { ports(first: 0, filter: {name: {ne: "x"}}) { ` + aliased(20, "totalCount") + `} } } } }`},
		{"90 aliases of nodes in one page", "limit-answer", `{ ports(first: 1000) { ` + aliased(90, "nodes { "+portFields+" }") + `} }`},
		{"40 x 20 aliased introspection lists", "limit-introspection", `{ __schema { ` + aliased(20, "types { ...T }") + `} } fragment T on __Type { ` + aliased(40, "fields { name }") + `}`},
		{"95 aliased manifest", "limit-answer", `{ ports(first: 1000) { nodes { ` + aliased(95, "manifest") + `} } }`},
		{"a filter literal of 3 MB", "limit-text", `{ ports(filter: {name: {eq: "` + strings.Repeat("x", 3_000_000) + `"}}) { nodes { id } } }`},
		{"a filter literal of 3 MB of short names", "limit-tokens", `{ ports(filter: {name: {in: [` + strings.Repeat(`"x",`, 600_000) + `]}}) { nodes { id } } }`},
	}
}

// at sends a query so many times at once.
func at(n int, query string) func(*testing.T, *gateway, *tally) func() {
	return func(_ *testing.T, g *gateway, c *tally) func() {
		return func() { g.many(c, n, query) }
	}
}

func hostileCases() []hostileCase {
	var out []hostileCase
	for _, d := range documents() {
		out = append(out, hostileCase{d.name, d.limit, at(1, d.query)})
	}
	return append(out,
		hostileCase{"60 pages of 1 MB resources at once, each too large", "limit-held", at(60, `{ blobs(first: 1000) { nodes { id } } }`)},
		hostileCase{"60 pages of 1 MB resources at once, each within", "UNAVAILABLE limit-memory", at(60, `{ blobs(first: 14) { nodes { spec { text } } } }`)},
		hostileCase{"60 pages of 1 MB resources in one document", "limit-held", at(1, `{ `+aliased(60, "blobs(first: 1) { nodes { spec { text } } }")+`}`)},
		hostileCase{"10 sockets x 100 subscriptions of 95 aliases", "limit-events", listenTo(10, 100, `subscription { portChanges { port { network { `+aliased(95, "ports(first: 1000) { nodes { id } }")+`} } } }`, true)},
		hostileCase{"10 sockets x 100 subscriptions of 95 manifests", "", listenTo(10, 100, `subscription { portChanges { port { `+aliased(95, "manifest")+`} } }`, true)},
		hostileCase{"1,000 listeners that never read", "limit-memory", listenTo(1000, 1, `subscription { blobChanges { blob { spec { text } } } }`, false)},
	)
}

// listenTo opens sockets with subscriptions. The attack makes a change, or three large
// ones, and reads what comes until nothing more does: all the time, or only when all is over.
func listenTo(sockets, subscriptions int, query string, reading bool) func(t *testing.T, g *gateway, c *tally) func() {
	return func(t *testing.T, g *gateway, c *tally) func() {
		var begun, ended sync.WaitGroup
		ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
		start := make(chan struct{})
		payload, _ := json.Marshal(map[string]any{"query": query})
		var all []*socket
		for range sockets {
			s := g.dial()
			t.Cleanup(s.close)
			s.conn.SetReadLimit(64 << 20)
			for i := range subscriptions {
				s.write(message{ID: fmt.Sprint(i), Type: "subscribe", Payload: payload})
			}
			all = append(all, s)
		}
		quiet := time.AfterFunc(patience, cancel)
		for _, s := range all {
			begun.Add(1)
			ended.Go(func() {
				for range subscriptions { // IN_SYNC of each
					if _, _, err := s.conn.Read(ctx); err != nil {
						c.note(err.Error())
						break
					}
				}
				begun.Done()
				<-start
				for {
					_, raw, err := s.conn.Read(ctx)
					if err != nil {
						if ctx.Err() == nil {
							c.note(err.Error())
						}
						return
					}
					quiet.Reset(3 * time.Second)
					c.note(string(raw[:min(len(raw), 8<<10)]))
				}
			})
		}
		begun.Wait()
		return func() {
			defer cancel()
			if reading {
				close(start)
				g.must(fmt.Sprintf(`mutation { upsertPort(input: {name: "port-0", spec: {cloudCredentialsRef: {secretName: "s", cloudName: "c%d"}, resource: {networkRef: "net", addresses: []}}}) { created } }`, time.Now().UnixNano())) // never what is stored
			} else {
				for i := range 3 {
					g.blob(t, "never-read", i)
				}
				process{t, g.cmd.Process.Pid}.idle()
				close(start)
			}
			quiet.Reset(3 * time.Second)
			ended.Wait()
		}
	}
}

// blob writes a resource of a megabyte.
func (g *gateway) blob(t *testing.T, name string, version int) {
	t.Helper()
	text := strings.Repeat(fmt.Sprintf("%010d", version), 99_000)
	if a := g.post(`mutation($text: String, $name: String!) { upsertBlob(input: {name: $name, spec: {text: $text}}) { created } }`, map[string]any{"name": name, "text": text}); a.codes() != "" {
		t.Fatalf("%+v", a.Errors)
	}
}

// besieged starts the gateway on defaults, over a store with 1,000 ports of one
// network and 40 resources of a megabyte.
func besieged(t *testing.T) (data string, args []string) {
	t.Helper()
	data, args = t.TempDir(), []string{"--schema", catalogue(t, bigKind)}
	g := start(t, data, args...)
	g.must(`mutation { upsertNetwork(input: {name: "net", spec: {cloudCredentialsRef: {secretName: "s", cloudName: "c"}, resource: {}}}) { created } }`)
	var all sync.WaitGroup
	for w := range 20 {
		all.Go(func() {
			for i := range 50 {
				g.must(fmt.Sprintf(`mutation { upsertPort(input: {name: "port-%d", spec: {cloudCredentialsRef: {secretName: "s", cloudName: "c"}, resource: {networkRef: "net", addresses: []}}}) { created } }`, w*50+i))
			}
		})
	}
	all.Wait()
	for i := range 40 {
		g.blob(t, fmt.Sprint("blob-", i), i)
	}
	if code := g.stop(); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	return data, args
}

// TestHostileClientsAreBounded prints what each client makes the gateway spend.
func TestHostileClientsAreBounded(t *testing.T) {
	data, args := besieged(t)
	for _, c := range hostileCases() {
		t.Run(c.name, func(t *testing.T) {
			g := start(t, data, args...)
			g.must(`{ ports(first: 20) { nodes { id } } }`)
			var said tally
			attack := c.prepare(t, g, &said)
			spent := process{t, g.cmd.Process.Pid}.measure(attack)
			fmt.Printf("%-55s %6.2f CPU-s %6d MiB %6.2f s  %s\n", c.name, spent.cpu.Seconds(), spent.grown>>20, spent.took.Seconds(), &said)
			if spent.cpu > mostCPU || spent.grown > mostMemory {
				t.Errorf("%v of CPU and %d MiB; at most %v and %d MiB are accepted", spent.cpu, spent.grown>>20, mostCPU, mostMemory>>20)
			}
			if !strings.Contains(said.String(), c.limit) {
				t.Errorf("told: %s; want %s", &said, c.limit)
			}
			g.must(`{ ports(first: 20) { nodes { id } } }`)
			if code := g.stop(); code != 0 {
				t.Errorf("exit code %d", code)
			}
		})
	}
}
