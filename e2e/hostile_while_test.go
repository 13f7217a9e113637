//go:build hostile

package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"
)

const (
	// mostLate is how long after its client has left an operation may go on.
	mostLate = 100 * time.Millisecond
	// mostP99 is how long an ordinary query may take while hostile ones run.
	mostP99 = 100 * time.Millisecond
)

// within are queries as dear as the limits allow.
func within() map[string]string {
	return map[string]string{
		"rows":          `{ ` + aliased(95, `ports(first: 0, filter: {name: {ne: "x"}}) { totalCount }`) + `}`,
		"objects":       `{ ports(first: 1000) { ` + aliased(95, "nodes { id }") + `} }`,
		"answer":        `{ ports(first: 1000) { ` + aliased(35, "nodes { "+portFields+" }") + `} }`,
		"counts":        `{ ports(first: 1000) { nodes { network { ports(first: 0, filter: {name: {eq: "port-1"}}) { ` + aliased(90, "totalCount") + `} } } } }`,
		"introspection": `{ __schema { ` + aliased(12, "types { name description fields { name description args { name type { name } } type { name } } }") + `} }`,
	}
}

// TestTheDearestQueriesWithinTheLimits says what they cost.
func TestTheDearestQueriesWithinTheLimits(t *testing.T) {
	data, args := besieged(t)
	for name, query := range within() {
		g := start(t, data, args...)
		g.must(`{ ports(first: 20) { nodes { id } } }`)
		var said tally
		spent := process{t, g.cmd.Process.Pid}.measure(func() { g.many(&said, 1, query) })
		fmt.Printf("within: %-47s %6.2f CPU-s %6d MiB %6.2f s  %s\n", name, spent.cpu.Seconds(), spent.grown>>20, spent.took.Seconds(), &said)
		if spent.cpu > mostCPU || spent.grown > mostMemory {
			t.Errorf("%s: %v of CPU and %d MiB", name, spent.cpu, spent.grown>>20)
		}
		g.stop()
	}
}

// TestAClientThatLeavesEndsItsWork counts what the gateway still spends 100 ms after
// its client has cut the connection.
func TestAClientThatLeavesEndsItsWork(t *testing.T) {
	data, args := besieged(t)
	g := start(t, data, args...)
	g.must(`{ ports(first: 20) { nodes { id } } }`)
	p := process{t, g.cmd.Process.Pid}
	queries := within()
	for _, d := range documents() {
		queries[d.name] = d.query
	}
	for name, query := range queries {
		t.Run(name, func(t *testing.T) {
			p.idle()
			ctx, leave := context.WithTimeout(t.Context(), 30*time.Millisecond)
			defer leave()
			_, err := g.ask(ctx, query)
			time.Sleep(mostLate) // what is done until then is accepted
			before := p.cpu()
			p.idle()
			late := p.cpu() - before
			fmt.Printf("left: %-49s %6v after 100 ms (%v)\n", name, late, err)
			if late > 2*tick { // the collector may still be at work
				t.Errorf("%v of CPU were spent more than %v after the client had left", late, mostLate)
			}
		})
	}
}

// TestOrdinaryQueriesAreAnsweredWhileHostileOnesRun measures a page of 20, again and
// again, beside 50 clients that send one hostile query after the other.
func TestOrdinaryQueriesAreAnsweredWhileHostileOnesRun(t *testing.T) {
	const clients, span = 50, 15 * time.Second
	data, args := besieged(t)
	g := start(t, data, args...)
	http.DefaultTransport.(*http.Transport).MaxIdleConnsPerHost = clients
	var queries []string
	for _, query := range within() {
		queries = append(queries, query)
	}
	for _, d := range documents() {
		if len(d.query) < 1<<20 {
			queries = append(queries, d.query)
		}
	}
	queries = append(queries, `{ blobs(first: 14) { nodes { spec { text } } } }`)
	ctx, stop := context.WithTimeout(t.Context(), span)
	defer stop()
	var said tally
	var all sync.WaitGroup
	for i := range clients {
		all.Go(func() {
			for n := i; ctx.Err() == nil; n++ {
				head, err := g.ask(ctx, queries[n%len(queries)])
				if err == nil {
					said.note(head)
				}
			}
		})
	}
	time.Sleep(time.Second) // until all are there
	var took []time.Duration
	refused := 0
	for ctx.Err() == nil {
		begin := time.Now()
		head, err := g.ask(ctx, `{ ports(first: 20) { nodes { `+portFields+` } } }`)
		if err != nil {
			break
		}
		took = append(took, time.Since(begin))
		if codeOf.MatchString(head) {
			refused++
		}
		time.Sleep(5 * time.Millisecond)
	}
	all.Wait()
	slices.Sort(took)
	at := func(part float64) time.Duration {
		return took[int(part*float64(len(took)-1))].Round(100 * time.Microsecond)
	}
	fmt.Printf("while 50 hostile queries run: p50 %v, p90 %v, p99 %v, max %v of %d, %d refused; the others were told %s\n", at(0.5), at(0.9), at(0.99), at(1), len(took), refused, &said)
	if at(0.99) > mostP99 || refused > 0 {
		t.Errorf("p99 is %v, %d refused; at most %v and none are accepted", at(0.99), refused, mostP99)
	}
}
