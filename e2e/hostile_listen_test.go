//go:build hostile

package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"
)

// hostileCases are all clients that mean to cost much, one at a time.
func hostileCases() []hostileCase {
	var out []hostileCase
	for _, d := range documents() {
		out = append(out, hostileCase{name: d.name, data: d.data, limit: d.limit, prepare: func(t *testing.T, g *gateway, c *tally) func() {
			return at(1, d.with(g))(t, g, c)
		}})
	}
	query := func(q string) request { return request{query: q} }
	listening := func(q string, filter any) listeners {
		return listeners{sockets: 10, each: 100, request: request{query: q, variables: map[string]any{"f": filter}}, reading: true}
	}
	crowd := cost{cpu: together * ofOne.cpu, grown: mostTogether}
	return append(out,
		hostileCase{name: "60 pages of 1 MB resources at once, each too large", data: blobs, limit: "LIMIT_EXCEEDED", most: crowd, prepare: at(60, query(`{ blobs(first: 1000) { nodes { spec { text } } } }`))},
		hostileCase{name: "60 pages of 1 MB resources at once, each within", data: blobs, limit: "data", most: crowd, prepare: at(60, query(`{ blobs(first: 14) { nodes { spec { text } } } }`))},
		hostileCase{name: "10 sockets x 100 subscriptions of 95 aliases", limit: "LIMIT_EXCEEDED", prepare: listening(`subscription { portChanges { port { network { `+aliased(95, "ports(first: 1000) { nodes { id } }")+`} } } }`, nil).prepare},
		hostileCase{name: "10 sockets x 100 subscriptions of 95 manifests", prepare: listening(`subscription { portChanges { port { `+aliased(95, "manifest")+`} } }`, nil).prepare},
		hostileCase{name: "10 sockets x 100 subscriptions that count", prepare: listening(`subscription($f: PortFilter) { portChanges { port { network { ports(first: 0, filter: $f) { totalCount } } } } }`, anyOf(50, 0)).prepare},
		hostileCase{name: "10 sockets x 100 subscriptions of dependents", prepare: listening(`subscription { portChanges { port { network { dependents(first: 1000) { nodes { name } } } } } }`, nil).prepare},
		hostileCase{name: "1,000 listeners that never read", data: blobs, limit: "LAGGED", prepare: listeners{sockets: 1000, each: 1, request: query(`subscription { blobChanges { blob { spec { text } } } }`)}.prepare},
		hostileCase{name: "20 truths of a document, one after the other", most: cost{cpu: 2 * mostCPU, grown: mostMemory}, prepare: truths},
		hostileCase{name: "a rule that ran out of time", args: []string{"--limit-time", "1s"}, never: "VALIDATION_FAILED", most: cost{cpu: 2 * mostCPU, grown: mostMemory}, prepare: manyCodes(rulesAtOnce(400))},
	)
}

// listeners are subscriptions over WebSocket.
type listeners struct {
	sockets, each int
	request       request
	// reading is whether they read all the time, or only when all is over.
	reading bool
}

// prepare opens the sockets. The attack makes a change, or three large ones, and reads
// what comes until nothing more does.
func (l listeners) prepare(t *testing.T, g *gateway, c *tally) func() {
	var begun, ended sync.WaitGroup
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	start := make(chan struct{})
	payload := json.RawMessage(l.request.body())
	var all []*socket
	for range l.sockets {
		s := g.dial()
		t.Cleanup(s.close)
		context.AfterFunc(ctx, s.close)
		for i := range l.each {
			s.write(message{ID: fmt.Sprint(i), Type: "subscribe", Payload: payload})
		}
		all = append(all, s)
	}
	quiet := time.AfterFunc(patience, cancel)
	const pause = 2 * time.Second
	for _, s := range all {
		begun.Add(1)
		ended.Go(func() {
			for range l.each { // IN_SYNC of each
				if _, _, err := s.conn.ReadMessage(); err != nil {
					c.note(err.Error())
					break
				}
			}
			begun.Done()
			<-start
			for {
				_, raw, err := s.conn.ReadMessage()
				if err != nil {
					if ctx.Err() == nil {
						c.note(err.Error())
					}
					return
				}
				quiet.Reset(pause)
				c.note(string(raw[:min(len(raw), 8<<10)]))
			}
		})
	}
	begun.Wait()
	return func() {
		defer cancel()
		if l.reading {
			close(start)
			_, _ = g.send(fmt.Sprintf(`mutation { upsertPort(input: {name: "port-0", `+portSpec+`}) { created } }`, "other"), nil)
		} else {
			for i := range 3 {
				g.blob(t, "never-read", i)
			}
			process{t, g.cmd.Process.Pid}.idle()
			close(start)
		}
		quiet.Reset(pause)
		ended.Wait()
	}
}

// manyCodes sends a request once and notes every error of its answer, not only the first.
func manyCodes(r request) func(*testing.T, *gateway, *tally) func() {
	return func(_ *testing.T, g *gateway, c *tally) func() {
		return func() {
			a, err := g.send(r.query, r.variables)
			if err != nil {
				c.note(`"code":"GONE"`)
			}
			for _, e := range a.Errors {
				c.note(fmt.Sprintf(`"code":"%v"`, e.Extensions["code"]))
			}
		}
	}
}
