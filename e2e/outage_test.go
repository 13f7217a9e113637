package e2e_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/internal/redistest"
)

// TestAGatewayLivesThroughAnOutageOfRedis kills the server, and another time
// cuts it off without a word.
func TestAGatewayLivesThroughAnOutageOfRedis(t *testing.T) {
	t.Parallel()
	sameOnEachStore(t)
	if testing.Short() {
		t.Skip("long: make test-all")
	}
	const list = `{ networks { nodes { id } } }`
	for name, outage := range map[string]struct {
		begin, end func(*redistest.Server)
		refused    []string
	}{
		"killed and started again": {(*redistest.Server).Kill, (*redistest.Server).Restart, []string{list, `mutation { deleteNetwork(input: {name: "before"}) { state } }`}},
		// A change may wait there to be made: it is answered UNKNOWN when the request's time is over.
		"silent for a while": {(*redistest.Server).Stop, (*redistest.Server).Cont, []string{list}},
	} {
		t.Run(name, func(t *testing.T) {
			server := redistest.Start(t, redistest.AOF("always"))
			g := newCallers(t).start(t, "", "--redis", server.URL())
			g.create("before", nil)
			s := g.dial()
			defer s.close()
			s.subscribe("1", watchNetworks, nil)
			if a := s.next("1"); a.get("networkChanges", "type") != "IN_SYNC" {
				t.Fatalf("%+v", a)
			}
			ready := func(want int) {
				t.Helper()
				redistest.Await(t, fmt.Sprint("/readyz to say ", want), func() error {
					if res, body := g.do("GET", "/readyz", ""); res.StatusCode != want {
						return fmt.Errorf("%d %s", res.StatusCode, body)
					}
					return nil
				})
			}
			ready(http.StatusOK)

			outage.begin(server)
			ready(http.StatusServiceUnavailable)
			if res, _ := g.do("GET", "/healthz", ""); res.StatusCode != http.StatusOK {
				t.Errorf("/healthz %d", res.StatusCode)
			}
			for _, query := range outage.refused {
				a := g.post(query, nil)
				if a.codes() != "UNAVAILABLE" || a.Errors[0].Extensions["retryable"] != true {
					t.Errorf("%s: %+v", query, a)
				}
			}

			outage.end(server)
			ready(http.StatusOK)
			g.create("after", nil)
			a := s.next("1")
			for a.get("networkChanges", "type") == "BOOKMARK" {
				a = s.next("1")
			}
			if a.get("networkChanges", "network", "metadata", "name") != "after" {
				t.Errorf("the listener was told %+v", a)
			}
			if got := g.post(`{ networks { totalCount } }`, nil); got.get("networks", "totalCount") != 2.0 {
				t.Errorf("%+v", got)
			}
			if !strings.Contains(g.log.String(), "the store or a resource service is not available") {
				t.Error("the log does not say why")
			}
		})
	}
}
