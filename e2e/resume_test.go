package e2e_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/sluicegw/sluice/graph/client"
)

const (
	storedEvents = 10_000
	restarts     = 3
)

// beacon reports whether the gateway is up. It is down at first.
type beacon struct {
	mu sync.Mutex
	up chan struct{} // closed while it is up
}

func (b *beacon) set(up bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if up {
		close(b.up)
	} else {
		b.up = make(chan struct{})
	}
}

// wait returns when the gateway is up, or ctx ends.
func (b *beacon) wait(ctx context.Context) {
	b.mu.Lock()
	up := b.up
	b.mu.Unlock()
	select {
	case <-up:
	case <-ctx.Done():
	}
}

// eventSource reads a subscription as the EventSource of a browser does: it
// connects again whenever the answer ends, with the id of the last event.
func eventSource(ctx context.Context, up *beacon, g *gateway, query string, each func(data string) (more bool)) error {
	last := ""
	for ctx.Err() == nil {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, g.address+"/graphql?query="+url.QueryEscape(query), nil)
		if err != nil {
			return err
		}
		req.Header.Set("Accept", "text/event-stream")
		g.identify(req.Header)
		if last != "" {
			req.Header.Set("Last-Event-ID", last)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			up.wait(ctx)
			continue
		}
		more := readEvents(res, &last, each)
		_ = res.Body.Close()
		if !more {
			return nil
		}
	}
	return ctx.Err()
}

// readEvents reads one answer to its end. An event that is cut off does not count.
func readEvents(res *http.Response, last *string, each func(data string) bool) (more bool) {
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 1<<20)
	var id, name, data string
	for lines.Scan() {
		field, value, _ := strings.Cut(lines.Text(), ": ")
		switch field {
		case "id":
			id = value
		case "event":
			name = value
		case "data":
			data = value
		case "":
			if id != "" {
				*last = id
			}
			if name == "next" && !each(data) {
				return false
			}
			id, name, data = "", "", ""
		}
	}
	return true
}

// listener counts the resources that it is told of, each once.
type listener struct {
	mu    sync.Mutex
	names map[string]int
	order []string
}

func (l *listener) note(name string) (more bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.names == nil {
		l.names = map[string]int{}
	}
	l.names[name]++
	l.order = append(l.order, name)
	return len(l.names) < storedEvents
}

func TestTenThousandEventsSurviveRestartsOfTheGateway(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("long: make test-all")
	}
	data, callers := t.TempDir(), newCallers(t)
	g := callers.start(t, data)
	first, address := g, g.address // later gateways have the same address
	ctx, cancel := context.WithTimeout(t.Context(), 4*patience)
	defer cancel()
	c, err := client.New(client.Config{Server: address, Token: client.FixedToken(callers.editor)})
	if err != nil {
		t.Fatal(err)
	}
	kind, err := c.Kind(ctx, "Network")
	if err != nil {
		t.Fatal(err)
	}

	up := &beacon{up: make(chan struct{})}
	up.set(true)
	ready := make(chan struct{}, 2)
	var socket, events listener
	var listening sync.WaitGroup
	listening.Go(func() {
		for change, err := range c.Changes(ctx, client.ChangesRequest{Kind: kind, Format: client.JSON}) {
			if err == nil && change.Type == "IN_SYNC" && len(socket.order) == 0 {
				ready <- struct{}{}
			}
			if err != nil || change.Type == "ADDED" && !socket.note(change.Resource.Metadata.Name) {
				if err != nil {
					t.Errorf("WebSocket: %v", err)
				}
				return
			}
		}
	})
	listening.Go(func() {
		err := eventSource(ctx, up, first, `subscription { networkChanges { type network { metadata { name } } } }`, func(data string) bool {
			var e struct {
				Data struct {
					NetworkChanges struct {
						Type    string
						Network struct{ Metadata struct{ Name string } }
					}
				}
				Errors []any
			}
			if err := json.Unmarshal([]byte(data), &e); err != nil || len(e.Errors) > 0 {
				t.Errorf("event %s: %v", data, err)
				return false
			}
			switch e.Data.NetworkChanges.Type {
			case "IN_SYNC":
				if len(events.order) == 0 {
					ready <- struct{}{}
				}
				return true
			case "ADDED":
				return events.note(e.Data.NetworkChanges.Network.Metadata.Name)
			}
			return true
		})
		if err != nil {
			t.Errorf("server-sent events: %v", err)
		}
	})
	<-ready
	<-ready

	// Each name is created once, however often that is tried.
	var next, created atomic.Int64
	parts := make(chan struct{}, restarts+1)
	var writing sync.WaitGroup
	for range 16 {
		writing.Go(func() {
			for n := next.Add(1); n <= storedEvents && ctx.Err() == nil; n = next.Add(1) {
				for ctx.Err() == nil {
					err := c.Do(ctx, createNetwork, map[string]any{"input": map[string]any{"name": fmt.Sprint("n", n), "spec": spec(nil)}}, nil)
					var known *client.Error
					if err == nil || errors.As(err, &known) && known.Extensions.Code == "ALREADY_EXISTS" {
						if n := created.Add(1); n%(storedEvents/(restarts+1)) == 0 {
							parts <- struct{}{}
						}
						break
					}
					up.wait(ctx)
				}
			}
		})
	}
	for i := range restarts {
		<-parts
		up.set(false)
		if i%2 == 0 {
			g.kill()
		} else if err := g.cmd.Process.Signal(syscall.SIGTERM); err == nil {
			g.wait()
		}
		g = callers.start(t, data, "--listen", strings.TrimPrefix(address, "http://"))
		up.set(true)
	}
	writing.Wait()
	listening.Wait()
	for name, l := range map[string]*listener{"WebSocket": &socket, "server-sent events": &events} {
		if len(l.names) != storedEvents || len(l.order) != storedEvents {
			t.Errorf("%s: %d events of %d resources, want %d", name, len(l.order), len(l.names), storedEvents)
		}
	}
	for i := range min(len(socket.order), len(events.order)) {
		if socket.order[i] != events.order[i] {
			t.Fatalf("event %d is %s on one transport and %s on the other", i, socket.order[i], events.order[i])
		}
	}
}
