package server_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/memory"
	"github.com/sluicegw/sluice/graph/identity"
	"github.com/sluicegw/sluice/graph/server"
)

// telling is the story of an error code.
type telling struct {
	on   stage
	tell func(*teller)
}

// failing is a store that fails as told.
func failing(err error) stage {
	return stage{wrap: func(s backend.Store) backend.Store { return broken{s, err} }}
}

// contested is a store in which others are always faster.
type contested struct{ backend.Store }

func (s contested) Apply(_ context.Context, b backend.Batch) (backend.Result, error) {
	return backend.Result{}, &backend.ConditionError{Key: b.Actions[0].Key, Err: backend.ErrConflict}
}

// errorStories are the stories of all codes but CATALOGUE_CHANGED, which needs
// another server.
func errorStories() map[string]telling {
	update := mutation("updateNetwork", "UpdateNetworkInput", "network { id }")
	create := mutation("createNetwork", "CreateNetworkInput", "network { id }")
	const read = `{ network(name: "net-a") { id } }`
	return map[string]telling{
		"NOT_FOUND": {tell: func(c *teller) {
			c.Tell("An update names a network that is not there.")
			c.ask(update, with(map[string]any{"name": "nobody", "expectedRevision": "1-1", "spec": spec(map[string]any{})}))
		}},
		"ALREADY_EXISTS": {tell: func(c *teller) {
			c.begin()
			c.Tell("A create names a network that is there.")
			c.ask(create, with(map[string]any{"name": "net-a", "spec": spec(map[string]any{})}))
		}},
		"UNAUTHENTICATED": {on: stage{cfg: server.Config{Identities: identity.Authenticator{Certificates: true}}}, tell: func(c *teller) {
			c.Tell("The gateway serves clients with certificates, and this one has none.")
			c.ask(read, nil)
		}},
		"CONFLICT": {tell: func(c *teller) {
			revision := c.begin()
			c.Tell("Two clients have read the same revision. The first one updates the network.")
			c.ask(update, with(map[string]any{"name": "net-a", "expectedRevision": revision, "spec": spec(map[string]any{"mtu": 1400})}))
			c.Tell("The second one is told which revision is current.")
			c.ask(update, with(map[string]any{"name": "net-a", "expectedRevision": revision, "spec": spec(map[string]any{"mtu": 9000})}))
		}},
		"ABORTED": {on: stage{wrap: func(s backend.Store) backend.Store { return contested{s} }, cfg: server.Config{Limits: server.Limits{Time: 50 * time.Millisecond}}}, tell: func(c *teller) {
			c.Tell("Other gateways change the network all the time. This one tries until the time of the request is over. The client expected no revision, so none was stale.")
			c.ask(mutation("upsertNetwork", "UpsertNetworkInput", "created"), with(map[string]any{"name": "net-a", "spec": spec(map[string]any{})}))
		}},
		"BEING_DELETED": {tell: func(c *teller) {
			c.begin()
			revision := c.rewrite("net-a", func(p *backend.Put) { p.Deleting = true })
			c.Tell("The network is being deleted, and waits for others to let go of it.")
			c.ask(update, with(map[string]any{"name": "net-a", "expectedRevision": revision, "spec": spec(map[string]any{"mtu": 1400})}))
		}},
		"VALIDATION_FAILED": {tell: func(c *teller) {
			c.Tell("All that is wrong with a spec comes at once, one error for each value.")
			c.ask(create, with(map[string]any{"name": "Net_A", "spec": spec(map[string]any{})}))
			c.ask(create, with(map[string]any{"name": "net-a", "spec": spec(map[string]any{"mtu": 67, "tags": []any{"a", "b", "a"}, "name": "a,b"})}))
			c.Tell("A rule of the kind.")
			c.ask(create, with(map[string]any{"name": "net-a", "spec": map[string]any{"managementPolicy": "UNMANAGED", "cloudCredentialsRef": map[string]any{"secretName": "s", "cloudName": "c"}}}))
		}},
		"BAD_USER_INPUT": {tell: func(c *teller) {
			c.Tell("A page that is too large.")
			c.ask(`{ networks(first: 1001) { nodes { id } } }`, nil)
			c.Tell("A kind that is not known.")
			c.ask(`{ resource(kind: "Nettwork", name: "net-a") { id } }`, nil)
			c.Tell("A filter with an operator that is null: it must not list everything.")
			c.ask("query ($name: String) {\n  networks(filter: {name: {eq: $name}}) { nodes { id } }\n}", map[string]any{"name": nil})
			c.Tell("A manifest that does not parse.")
			c.ask(mutation("applyManifest", "ApplyManifestInput", "outcome"), with(map[string]any{"manifest": "kind: Network\n\tmetadata: {}\n"}))
		}},
		"POSITION_EXPIRED": {on: stage{store: memory.Config{LogEntries: 5}}, tell: func(c *teller) {
			old := textIn(c.t, c.must(`{ networks { changeCursor } }`, nil), "changeCursor")
			for i := range 10 {
				c.must(create, with(map[string]any{"name": fmt.Sprint("net-", i), "spec": spec(map[string]any{})}))
			}
			c.Tell("A client resumes after a long time. The log does not reach back that far.")
			c.listen(`subscription ($after: String) { networkChanges(after: $after) { type } }`, map[string]any{"after": old})
		}},
		"LAGGED": {on: stage{wrap: func(s backend.Store) backend.Store { return lagging{s} }}, tell: func(c *teller) {
			c.Tell("A client reads so slowly that the gateway has no room for more of its changes. The stream ends with the cursor to resume from.")
			c.listen(`subscription { networkChanges { type cursor } }`, nil)
		}},
		"CURSOR_INVALID": {tell: func(c *teller) {
			c.begin()
			c.must(create, with(map[string]any{"name": "net-b", "spec": spec(map[string]any{})}))
			c.Tell("A text that is no cursor.")
			c.ask(`{ networks(after: "page two") { nodes { id } } }`, nil)
			c.Tell("A cursor of a page with another order.")
			end := textIn(c.t, c.must(`{ networks(first: 1) { pageInfo { endCursor } } }`, nil), "endCursor")
			c.ask(fmt.Sprintf(`{ networks(after: %q, orderBy: {field: CREATED_AT}) { nodes { id } } }`, end), nil)
			c.Tell("A text that is no cursor of a change stream.")
			c.listen(`subscription { networkChanges(after: "yesterday") { type } }`, nil)
		}},
		"UNREADABLE": {tell: func(c *teller) {
			c.begin()
			c.rewrite("net-a", func(p *backend.Put) { p.Body = backend.EncodeBody([]byte(`{"version":"v1","spec":`)) })
			c.Tell("What is stored was damaged, or is of a gateway that is newer.")
			c.ask(read, nil)
		}},
		"FORBIDDEN": {tell: func(c *teller) {
			c.Tell("A page of another origin asks.")
			c.ask(read, nil, "Origin", "https://elsewhere.example.org")
		}},
		"LIMIT_EXCEEDED": {on: stage{cfg: server.Config{Limits: server.Limits{Aliases: 2, Objects: 3}}}, tell: func(c *teller) {
			c.Tell("An order with more criteria than there may be.")
			c.ask("query ($order: [NetworkOrder!]) {\n  networks(orderBy: $order) { nodes { id } }\n}", map[string]any{"order": criteria(6)})
			c.Tell("A document with more aliases than this gateway accepts.")
			c.ask(`{ a: __typename b: __typename c: __typename }`, nil)
			c.Tell("An answer with more resources than an operation of this gateway may return.")
			for i := range 4 {
				c.must(create, with(map[string]any{"name": fmt.Sprint("net-", i), "spec": spec(map[string]any{})}))
			}
			c.ask(`{ networks { nodes { id } } }`, nil)
		}},
		"UNAVAILABLE": {on: failing(fmt.Errorf("%w: dial tcp 10.0.0.7:6379: connection refused", backend.ErrUnavailable)), tell: func(c *teller) {
			c.Tell("The store does not answer. What it said goes to the log alone.")
			c.ask(read, nil)
			c.ask(create, with(map[string]any{"name": "net-a", "spec": spec(map[string]any{})}))
		}},
		"UNAVAILABLE-UNKNOWN": {on: failing(backend.ErrUnknown), tell: func(c *teller) {
			c.Tell("The store's answer to a write was lost, and nobody can tell what became of it.")
			c.ask(create, with(map[string]any{"name": "net-a", "spec": spec(map[string]any{})}))
		}},
		"TIMEOUT": {on: stage{wrap: func(s backend.Store) backend.Store { return slow{s} }, cfg: server.Config{Limits: server.Limits{Time: 20 * time.Millisecond}}}, tell: func(c *teller) {
			c.Tell("The store is slower than a request may be.")
			c.ask(read, nil)
		}},
		"INTERNAL": {on: failing(errors.New("a page is not where it should be")), tell: func(c *teller) {
			c.Tell("Something that nobody expected. The log has its cause under the id of the request.")
			c.ask(read, nil)
		}},
		"GRAPHQL_PARSE_FAILED": {tell: func(c *teller) {
			c.Tell("A document that is no GraphQL.")
			c.ask(`{ networks { nodes { id }`, nil)
		}},
		"GRAPHQL_VALIDATION_FAILED": {tell: func(c *teller) {
			c.Tell("A field that there is not, and a variable of another type.")
			c.ask(`{ networks { nodes { nme } } }`, nil)
			c.ask(`query ($first: Int) { networks(first: $first) { totalCount } }`, map[string]any{"first": "ten"})
		}},
		"PERSISTED_QUERY_NOT_FOUND": {tell: func(c *teller) {
			c.Tell("A client sends the hash of a document in its stead. The gateway has not seen it yet.")
			path := "/v1/graphql?extensions=" + url.QueryEscape(`{"persistedQuery":{"version":1,"sha256Hash":"`+strings.Repeat("0", 64)+`"}}`)
			c.Sent("GET " + path)
			c.answered(c.get(path, "application/graphql-response+json"))
		}},
	}
}

// rewrite changes what is stored of a network, as a later gateway would, and
// returns the revision.
func (c *teller) rewrite(name string, change func(*backend.Put)) string {
	c.t.Helper()
	key := backend.Key{Kind: "Network", Namespace: "default", Name: name}
	stored, err := c.store.Get(context.Background(), key)
	if err != nil {
		c.t.Fatal(err)
	}
	put := backend.Put{UID: stored[0].UID, Body: stored[0].Body}
	change(&put)
	res, err := c.store.Apply(context.Background(), backend.Batch{
		RequestID: "rewrite", Deadline: c.store.Now().Add(time.Minute),
		Actions: []backend.Action{{Key: key, Op: backend.OpPut, Put: put}},
	})
	if err != nil {
		c.t.Fatal(err)
	}
	return res.Resources[0].Revision.String()
}

// get asks for a path.
func (c *teller) get(path, accept string, header ...string) *http.Response {
	c.t.Helper()
	req, err := http.NewRequestWithContext(c.t.Context(), http.MethodGet, c.url+path, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("Accept", accept)
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	return res
}

// lagging is a store whose listeners are always too slow.
type lagging struct{ backend.Store }

func (s lagging) Watch(ctx context.Context, w backend.Watch) (backend.Watcher, error) {
	watcher, err := s.Store.Watch(ctx, w)
	return &late{Watcher: watcher}, err
}

type late struct {
	backend.Watcher
	delivered bool
	// position is the position of the delivery.
	position backend.Position
}

func (l *late) Next(ctx context.Context) (backend.Delivery, error) {
	if l.delivered {
		return backend.Delivery{}, &backend.LaggedError{Position: l.position}
	}
	d, err := l.Watcher.Next(ctx)
	l.delivered, l.position = true, d.Position
	return d, err
}

func TestTranscriptsOfTheErrors(t *testing.T) {
	files := map[string]bool{ // of TestTranscriptOfACatalogueThatChanges and TestTranscriptOfAVersionThatIsNotServed
		"CATALOGUE_CHANGED.txt": true, "UNSUPPORTED_VERSION.txt": true,
	}
	for code, story := range errorStories() {
		files[code+".txt"] = true
		t.Run(code, func(t *testing.T) {
			c := tell(t, "errors/"+code+".txt", "The error "+code+", and what a client gets", story.on)
			story.tell(c)
			if name, _, _ := strings.Cut(code, "-"); !strings.Contains(strings.ReplaceAll(c.String(), " ", ""), `"code":"`+name+`"`) {
				t.Errorf("nobody is told %s:\n%s", name, c)
			}
		})
	}
	wantFiles(t, "errors", files)
	table, err := os.ReadFile(filepath.Join("..", "..", "docs", "errors.md"))
	if err != nil {
		t.Fatal(err)
	}
	codes := regexp.MustCompile(`(?m)^\| ([A-Z_]+) \|`).FindAllStringSubmatch(string(table), -1)
	if len(codes) < 16 {
		t.Errorf("only %d codes in docs/errors.md", len(codes))
	}
	for _, code := range codes {
		if !files[code[1]+".txt"] {
			t.Errorf("there is no transcript of %s; tell its story in errorStories", code[1])
		}
	}
}

func TestTranscriptOfACatalogueThatChanges(t *testing.T) {
	clock := &clock{}
	s := newChangingForAll(t, server.Config{AfterFunc: clock.afterFunc})
	c := &teller{story: newStory(t, "errors/CATALOGUE_CHANGED.txt", "The error CATALOGUE_CHANGED, and what a client gets"), t: t, url: s.url, now: new(atomic.Int64)}
	c.Tell("A client follows the shelves. The kinds of the gateway are replaced; the stream goes on for ten minutes, and ends then.")
	c.listenWhile(`subscription { shelfChanges { type cursor } }`, nil, func() {
		s.replace(wide)
		clock.pass(time.Hour)
	})
}

func TestTranscriptOfAVersionThatIsNotServed(t *testing.T) {
	s := newChangingForAll(t, server.Config{})
	serveVersions(s, "v1.0: {withdrawn: 2030-01-31, why: it shows depths wrong}", narrow, narrow, wide)
	c := &teller{story: newStory(t, "errors/UNSUPPORTED_VERSION.txt", "The error UNSUPPORTED_VERSION, and what a client gets"), t: t, url: s.url, now: new(atomic.Int64)}
	c.Tell("A client asks a version that was withdrawn, and one that there never was.")
	for _, path := range []string{"/v1.0/graphql?query=%7B__typename%7D", "/v1.7/graphql?query=%7B__typename%7D"} {
		c.Sent("GET " + path)
		c.answered(c.get(path, "application/graphql-response+json"))
	}
}
