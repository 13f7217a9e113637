package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicegw/sluice/internal/redistest"
)

// notes are resources whose changes the service rules reviews.
const notes = `
type Note @resource(plural: "notes", group: "example.org", version: "v1", scope: NAMESPACED, review: "rules") { spec: NoteSpec! }
type NoteSpec { text: String! @constraint(maxLength: 100) }
`

// rules is a service that reviews changes of notes: it accepts texts that begin with good.
type rules struct {
	down atomic.Bool
	mu   sync.Mutex // guards all below
	// accepted are the texts that it has accepted.
	accepted map[string]bool
}

func (r *rules) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	var write struct {
		DryRun   bool
		Resource struct{ Spec struct{ Text string } }
	}
	err := json.NewDecoder(req.Body).Decode(&write)
	if r.down.Load() || err != nil || !write.DryRun || req.URL.Path != servicePath+"Write" {
		panic(http.ErrAbortHandler)
	}
	text := write.Resource.Spec.Text
	answer := `{"outcome":"INVALID","violations":[{"path":"spec.text","rule":"good","message":"must be good"}]}`
	if strings.HasPrefix(text, "good") {
		answer = `{"outcome":"DONE"}`
		r.mu.Lock()
		r.accepted[text] = true
		r.mu.Unlock()
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write([]byte(answer))
}

func (r *rules) hasAccepted(text string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.accepted[text]
}

// noteWriter writes notes at gateways, with texts that no other writer has.
type noteWriter struct {
	id                     int
	gateway                *atomic.Pointer[gateway]
	done, refused, unasked int
}

// write writes a note until ctx is done.
func (n *noteWriter) write(ctx context.Context, t *testing.T, r *rules) {
	for i := 0; ctx.Err() == nil; i++ {
		text := fmt.Sprintf("good %d %d", n.id, i)
		if i%3 == 2 {
			text = fmt.Sprintf("bad %d %d", n.id, i)
		}
		a, err := n.gateway.Load().send(`mutation($i: UpsertNoteInput!) { upsertNote(input: $i) { note { id } } }`,
			map[string]any{"i": map[string]any{"name": fmt.Sprintf("n%d", i%5), "spec": map[string]any{"text": text}}})
		switch {
		case err != nil: // the gateway was killed
			time.Sleep(readPause)
		case len(a.Errors) == 0:
			n.done++
			if !r.hasAccepted(text) {
				t.Errorf("%q was acknowledged, and not accepted", text)
			}
		case a.Errors[0].Extensions["code"] == "VALIDATION_FAILED":
			n.refused++
			if !strings.HasPrefix(text, "bad") {
				t.Errorf("%q was refused: %v", text, a.Errors)
			}
		case a.Errors[0].Extensions["code"] == "UNAVAILABLE":
			n.unasked++
			time.Sleep(readPause)
		}
	}
}

// TestResourceService_ReviewsGoOnWhoeverIsKilled lets two gateways write what a service reviews, while gateways are killed
// and the service is down for a while. Nothing is stored that the service has not accepted.
func TestResourceService_ReviewsGoOnWhoeverIsKilled(t *testing.T) {
	t.Parallel()
	sameOnEachStore(t)
	rounds := 6
	if testing.Short() {
		rounds = 2
	}
	r := &rules{accepted: map[string]bool{}}
	front := httptest.NewServer(r)
	t.Cleanup(front.Close)
	config := filepath.Join(folder(t, map[string]string{
		"sluice.yaml": "services:\n  rules:\n    address: " + front.URL + "\n",
	}), "sluice.yaml")
	catalogue := folder(t, map[string]string{"notes.graphqls": notes})
	redis := redistest.Start(t).URL()
	open := func() *gateway {
		return start(t, "", "--catalogue", catalogue, "--config", config, "--redis", redis)
	}
	state := func(g *gateway) string {
		a := g.must(`{ kinds { name review { name state } } }`)
		kinds, _ := a.get("kinds").([]any)
		for i := range kinds {
			if a.get("kinds", i, "name") == "Note" {
				return fmt.Sprint(a.get("kinds", i, "review", "state"))
			}
		}
		return "missing"
	}
	var gateways [2]atomic.Pointer[gateway]
	for i := range gateways {
		gateways[i].Store(open())
	}
	if got := state(gateways[0].Load()); got != "UNASKED" {
		t.Errorf("the state is %s", got)
	}
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	writers := make([]noteWriter, 4)
	for i := range writers {
		n := &writers[i]
		n.id = i
		n.gateway = &gateways[i%2]
		all.Go(func() { n.write(ctx, t, r) })
	}
	random := rand.New(rand.NewPCG(7, 7))
	for round := range rounds {
		const longest = 300
		time.Sleep(time.Duration(random.IntN(longest)) * time.Millisecond)
		i := round % 2
		gateways[i].Load().kill()
		gateways[i].Store(open())
		r.down.Store(true)
		other := gateways[1-i].Load()
		redistest.Await(t, "the other gateway notices that the service does not answer", func() error {
			if got := state(other); got != "UNAVAILABLE" {
				return fmt.Errorf("the state is %s", got)
			}
			return nil
		})
		r.down.Store(false)
		for i := range gateways {
			redistest.Await(t, "the gateways are reviewed again", func() error {
				if got := state(gateways[i].Load()); got != "ANSWERS" {
					return fmt.Errorf("the state of gateway %d is %s", i, got)
				}
				return nil
			})
		}
	}
	stop()
	all.Wait()
	done, refused, unasked := 0, 0, 0
	for _, n := range writers {
		done += n.done
		refused += n.refused
		unasked += n.unasked
	}
	t.Logf("%d changes were made, %d refused, and %d not reviewed", done, refused, unasked)
	if done == 0 || refused == 0 || unasked == 0 {
		t.Error("one of the cases did not occur")
	}
	for i := range gateways {
		a := gateways[i].Load().must(`{ notes(first: 100) { nodes { spec { text } } } }`)
		nodes, _ := a.get("notes", "nodes").([]any)
		if len(nodes) == 0 {
			t.Error("there are no notes")
		}
		for n := range nodes {
			if text := fmt.Sprint(a.get("notes", "nodes", n, "spec", "text")); !r.hasAccepted(text) {
				t.Errorf("gateway %d shows %q, which was not accepted", i, text)
			}
		}
	}
}
