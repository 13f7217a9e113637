//go:build hostile

package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// with returns the request with the id of the network of a gateway.
func (d hostileDocument) with(g *gateway) request {
	id := ""
	fill := func(text string) string {
		if id == "" && strings.Contains(text, netID) {
			id, _ = g.must(`{ network(name: "net") { id } }`).get("network", "id").(string)
		}
		return strings.ReplaceAll(text, netID, id)
	}
	out := request{query: fill(d.query), variables: d.variables}
	if ids, ok := d.variables["ids"].([]string); ok {
		filled := make([]string, len(ids))
		for i := range ids {
			filled[i] = fill(ids[i])
		}
		out.variables = map[string]any{"ids": filled}
	}
	return out
}

// left counts what the gateway still spends after its client has cut the connection,
// once the operation has used some of the CPU.
func (b *besieged) left(t *testing.T) {
	const (
		enough   = 50 * time.Millisecond  // it is at work, and the client leaves
		mostLate = 200 * time.Millisecond // two cores until 100 ms later
	)
	for _, d := range documents() {
		if !d.crowded {
			continue
		}
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			g := b.start(t, d.data)
			r := d.with(g)
			p := process{t, g.cmd.Process.Pid}
			p.idle()
			m := p.begin(cost{cpu: 2 * mostCPU, grown: 2 * mostMemory})
			ctx, leave := context.WithCancel(t.Context())
			answered := make(chan struct{})
			go func() {
				_, _ = g.ask(ctx, r)
				close(answered)
			}()
			before, done := time.Duration(0), false
			for !done && before < enough {
				select {
				case <-answered:
					done = true
				case <-time.After(time.Millisecond):
					before = time.Duration(m.now.Load())
				}
			}
			leave()
			spent := m.spent()
			late := spent.cpu - before
			fmt.Printf("left: %-55s %6.2f CPU-s afterwards\n", d.name, late.Seconds())
			if late > mostLate && !done {
				t.Errorf("%v of CPU were spent after the client had left; at most %v are accepted", late, mostLate)
			}
		})
	}
}

// ordinary asks for a page of 20 until the context ends. It returns how long each
// took, and how many were refused.
func (g *gateway) ordinary(ctx context.Context) (took []time.Duration, refused []string) {
	for ctx.Err() == nil {
		begin := time.Now()
		head, err := g.ask(context.Background(), request{query: `{ ports(first: 20) { nodes { ` + portFields + ` } } }`})
		if err != nil {
			break
		}
		took = append(took, time.Since(begin))
		if codeOf.MatchString(head) {
			refused = append(refused, said(head))
		}
		select {
		case <-ctx.Done():
		case <-time.After(5 * time.Millisecond):
		}
	}
	return took, refused
}

// quantiles describes how long ordinary pages took. It is a figure to read: on a
// busy machine it says nothing.
func quantiles(took []time.Duration) string {
	slices.Sort(took)
	at := func(part float64) time.Duration {
		return took[int(part*float64(len(took)-1))].Round(100 * time.Microsecond)
	}
	if len(took) == 0 {
		return "no ordinary page"
	}
	return fmt.Sprintf("ordinary pages: p50 %v, p90 %v, p99 %v, max %v of %d", at(0.5), at(0.9), at(0.99), at(1), len(took))
}

// together sends the dearest several times at once, beside ordinary pages.
func (b *besieged) together(t *testing.T) {
	most := cost{cpu: together * ofOne.cpu, grown: mostTogether}
	var all []time.Duration
	for _, d := range documents() {
		if !d.crowded {
			continue
		}
		t.Run(d.name, func(t *testing.T) {
			g := b.start(t, d.data)
			r := d.with(g)
			var outcomes tally
			var took []time.Duration
			var refused []string
			spent := process{t, g.cmd.Process.Pid}.measure(most, func() {
				ctx, stop := context.WithCancel(t.Context())
				var beside sync.WaitGroup
				beside.Go(func() { took, refused = g.ordinary(ctx) })
				g.many(&outcomes, together, r)
				stop()
				beside.Wait()
			})
			all = append(all, took...)
			fmt.Printf("%d x %-55s %v  %s; %s\n", together, d.name, spent, &outcomes, quantiles(took))
			if spent.above(most) || len(refused) > 0 {
				t.Errorf("%v, %d ordinary pages refused %v; at most %v and none are accepted", spent, len(refused), refused[:min(len(refused), 1)], most)
			}
			if spent.killed {
				g.wait()
			} else if code := g.stop(); code != 0 {
				t.Errorf("exit code %d", code)
			}
		})
	}
	fmt.Println("beside eight at once,", quantiles(all))
}

// within are queries as dear as the limits allow.
func within() []string {
	return []string{
		`{ ` + aliased(95, `ports(first: 0, filter: {name: {ne: "x"}}) { totalCount }`) + `}`,
		`{ ports(first: 1000) { ` + aliased(95, "nodes { id }") + `} }`,
		`{ ports(first: 1000) { ` + aliased(35, "nodes { "+portFields+" }") + `} }`,
		`{ ports(first: 1000) { nodes { network { ports(first: 0, filter: {name: {eq: "port-1"}}) { ` + aliased(90, "totalCount") + `} } } } }`,
		`{ __schema { ` + aliased(2, "types { name description fields { name description args { name type { name } } type { name } } }") + `} }`,
		`{ blobs(first: 14) { nodes { spec { text } } } }`,
	}
}

// beside asks for a page again and again, beside 50 clients that send one hostile
// query after the other.
func (b *besieged) beside(t *testing.T) {
	const clients, span = 50, 8 * time.Second
	g := b.start(t, blobs)
	http.DefaultTransport.(*http.Transport).MaxIdleConnsPerHost = clients
	var queries []request
	for _, query := range within() {
		queries = append(queries, request{query: query})
	}
	for _, d := range pages() {
		if len(d.query) < 1<<20 {
			queries = append(queries, d.with(g))
		}
	}
	ctx, stop := context.WithTimeout(t.Context(), span)
	defer stop()
	var outcomes tally
	var all sync.WaitGroup
	for i := range clients {
		all.Go(func() {
			for n := i; ctx.Err() == nil; n++ {
				if head, err := g.ask(ctx, queries[n%len(queries)]); err == nil {
					outcomes.note(head)
				}
			}
		})
	}
	took, refused := g.ordinary(ctx)
	all.Wait()
	fmt.Printf("beside %d clients that go on, %s, %d refused; the others were answered %s\n", clients, quantiles(took), len(refused), &outcomes)
	if len(refused) > 0 {
		t.Errorf("%d ordinary pages were refused: %s", len(refused), refused[0])
	}
}

// bombedConfig starts a gateway with a configuration whose aliases expand to gigabytes.
func bombedConfig(t *testing.T) {
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "config.yaml")
	text := "x: &a " + strings.Repeat("y", 100_000) + "\nlisten: [" + strings.Repeat("*a,", 60_000) + "]\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "serve", "--config", file, "--data", t.TempDir(), "--listen", "127.0.0.1:0")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	m := process{t, cmd.Process.Pid}.begin(cost{cpu: 2 * mostCPU, grown: 2 * mostMemory})
	timer := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	_ = cmd.Wait()
	timer.Stop()
	spent := m.spent()
	fmt.Printf("%-60s %v\n", "a configuration whose aliases expand to 6 GB", spent)
	if spent.above(ofOne) || cmd.ProcessState.Success() {
		t.Errorf("%v, %v; it should be refused for at most %v", spent, cmd.ProcessState, ofOne)
	}
}
