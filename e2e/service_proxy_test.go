package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/sluicegw/sluice/backend/service/owner/remote"
	"github.com/sluicegw/sluice/graph/client"
)

// hostileProxy stands before a service: Changes come late, repeated and in another order, List is old, and half of the
// answers to Write are lost.
type hostileProxy struct {
	service *teamService
	// old is how old lists are.
	old time.Duration

	mu       sync.Mutex // guards all below
	random   *rand.Rand
	lists    map[string]oldList
	reported []json.RawMessage
}

// oldList is the answer to a call of List.
type oldList struct {
	made time.Time
	body []byte
}

func (p *hostileProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	path := r.URL.Path
	if path == servicePath+"List" {
		if kept, ok := p.kept(string(body)); ok {
			_, _ = w.Write(kept)
			return
		}
	}
	answer, status, err := p.forward(r, body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	switch path {
	case servicePath + "List":
		p.keep(string(body), answer)
	case servicePath + "Changes":
		answer = p.disorder(answer)
	case servicePath + "Write":
		if p.chance(2) {
			panic(http.ErrAbortHandler) // it was made, and nobody hears of it
		}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(answer)
}

// chance reports true in one of n cases.
func (p *hostileProxy) chance(n int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.random.IntN(n) == 0
}

func (p *hostileProxy) kept(request string) ([]byte, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	list, ok := p.lists[request]
	return list.body, ok && time.Since(list.made) < p.old
}

func (p *hostileProxy) keep(request string, body []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lists[request] = oldList{time.Now(), body}
}

func (p *hostileProxy) forward(r *http.Request, body []byte) (answer []byte, status int, err error) {
	req, err := http.NewRequestWithContext(r.Context(), http.MethodPost, p.service.address+r.URL.Path, bytes.NewReader(body))
	if err != nil {
		return nil, 0, err
	}
	req.Header = r.Header.Clone()
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = res.Body.Close() }()
	answer, err = io.ReadAll(res.Body)
	return answer, res.StatusCode, err
}

// disorder delays an answer to Changes, adds keys that were told before, and shuffles all.
func (p *hostileProxy) disorder(answer []byte) []byte {
	const (
		remembered = 50
		longest    = 150 // milliseconds
	)
	var c map[string]json.RawMessage
	var keys []json.RawMessage
	if json.Unmarshal(answer, &c) != nil {
		return answer
	}
	_ = json.Unmarshal(c["keys"], &keys)
	p.mu.Lock()
	p.reported = append(p.reported, keys...)
	p.reported = p.reported[max(0, len(p.reported)-remembered):]
	if len(keys) > 0 {
		for range 3 {
			keys = append(keys, p.reported[p.random.IntN(len(p.reported))])
		}
	}
	p.random.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	late := time.Duration(p.random.IntN(longest)) * time.Millisecond
	p.mu.Unlock()
	time.Sleep(late)
	raw, err := json.Marshal(keys)
	if err != nil {
		return answer
	}
	c["keys"] = raw
	out, err := json.Marshal(c)
	if err != nil {
		return answer
	}
	return out
}

// uidHistory is which uids each team has had, as a subscriber is told.
type uidHistory struct {
	mu   sync.Mutex
	uids map[string][]string
	// old are teams that have a uid again which another one had followed, with what was told of them.
	old map[string]string
}

// take notes the uid of a resource that has changed. One that was followed by another must not come back to stay: while
// there is no record, a gateway that was held up may add what it has seen before, and the other one corrects it.
func (h *uidHistory) take(change *client.Change) {
	if change.Resource == nil {
		return
	}
	key := keyOfChange(change)
	uid := change.Resource.Metadata.UID
	h.mu.Lock()
	defer h.mu.Unlock()
	had := h.uids[key]
	if change.Type == "DELETED" {
		delete(h.old, key)
	}
	if len(had) > 0 && had[len(had)-1] == uid {
		return
	}
	delete(h.old, key)
	if slices.Contains(had, uid) {
		h.old[key] = fmt.Sprintf("%s has the uid %s again, after %q", key, uid, had)
	}
	h.uids[key] = append(had, uid)
}

func TestResourceService_AHostileProxyMakesNoFalseSuccess(t *testing.T) {
	t.Parallel()
	sameOnEachStore(t)
	seeds, long := uint64(3), 5*time.Second
	if testing.Short() {
		seeds, long = 1, 2*time.Second
	}
	for seed := range seeds {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			proxy := &hostileProxy{old: long, random: rand.New(rand.NewPCG(seed, 99)), lists: map[string]oldList{}}
			front := httptest.NewServer(proxy)
			t.Cleanup(front.Close) // after the gateways, which wait in it for changes
			c := newChaos(t, seed, remote.ConnectJSON, func(s *teamService) string {
				proxy.service = s
				return front.URL
			})
			ctx, stop := context.WithCancel(t.Context())
			history := &uidHistory{uids: map[string][]string{}, old: map[string]string{}}
			ended := c.gateways[0].Load().followTeams(ctx, client.ChangesRequest{}, history.take)
			c.work(seed, func() { time.Sleep(long) })
			owned := c.agree()
			c.checkCounts(owned)
			stop()
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Errorf("the stream ended with %v", err)
			}
			for _, old := range history.old {
				t.Error(old)
			}
			if len(history.uids) == 0 {
				t.Error("the subscriber was told nothing")
			}
		})
	}
}
