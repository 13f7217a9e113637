package standard_test

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/sluicegw/sluice/backend/service/owner/kit"
	"github.com/sluicegw/sluice/backend/service/owner/remote"
)

func httpProtocols() *http.Protocols {
	var out http.Protocols
	out.SetHTTP1(true)
	out.SetUnencryptedHTTP2(true)
	return &out
}

func refused(code connect.Code, text string) error { return connect.NewError(code, errors.New(text)) }

// patience is how long the kit waits for what must happen.
const patience = 30 * time.Second

// broken runs the kit over a world, and returns the promises that failed.
func broken(t *testing.T, w *world, all bool) map[string]kit.Result {
	t.Helper()
	out := map[string]kit.Result{}
	found, err := kit.Run(t.Context(), kit.Config{
		Service: w.client, Descriptors: w.described(t), Seed: 1, Patience: patience,
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range found {
		if r.Status == kit.Failed || all {
			out[r.Promise] = r
		}
	}
	return out
}

func TestClient_KeepsThePromisesOfItsServiceByEachProtocol(t *testing.T) {
	for _, protocol := range remote.Protocols() {
		t.Run(string(protocol), func(t *testing.T) {
			w := newWorld(t, fooConfig(t), protocol, nil)
			passed := 0
			for name, r := range broken(t, w, true) {
				t.Logf("%-8s %-18s %s", r.Status, name, r.Detail)
				if r.Status == kit.Failed {
					t.Errorf("%s: %s", name, r.Detail)
				}
				if r.Status == kit.Passed {
					passed++
				}
			}
			if passed < 20 {
				t.Errorf("%d promises were kept", passed)
			}
			if n := w.server.Len(); n != 0 {
				t.Errorf("%d resources are left", n)
			}
		})
	}
}
