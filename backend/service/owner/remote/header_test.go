package remote_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/owner/ownertest"
	"github.com/sluicegw/sluice/backend/service/owner/remote"
)

const trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

func TestHeader_TellsWhoAsks(t *testing.T) {
	eachProtocol(t, func(t *testing.T, protocol remote.Protocol) {
		var mu sync.Mutex
		var caller access.Caller
		var headers http.Header
		service := newTeams()
		service.SetHooks(ownertest.Hooks{Before: func(ctx context.Context, _ ownertest.Call) error {
			mu.Lock()
			defer mu.Unlock()
			caller = access.CallerFrom(ctx)
			return nil
		}})
		inner := remote.Handler(service)
		address := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			headers = r.Header.Clone()
			mu.Unlock()
			inner.ServeHTTP(w, r)
		}))
		client := connect(t, remote.Config{Address: address, Protocol: protocol})
		ask := func(ctx context.Context) {
			t.Helper()
			if _, err := client.Describe(ctx); err != nil {
				t.Fatal(err)
			}
		}

		ann := access.Caller{
			Identity: &access.Identity{Name: "oidc:corp:Änn, A. ", Groups: []string{"oidc:corp:ops", "a, b", "50%"}},
			Request:  "r-1",
			Trace:    trace,
			Decided:  true,
		}
		ask(access.WithCaller(t.Context(), ann))
		if diff := cmp.Diff(ann, caller, cmp.Comparer(func(a, b access.Caller) bool {
			return a.Identity.Name == b.Identity.Name && slices.Equal(a.Identity.Groups, b.Identity.Groups) &&
				a.Request == b.Request && a.Trace == b.Trace
		})); diff != "" {
			t.Error(diff)
		}
		if got := headers.Get("sluice-user"); got != "oidc:corp:%C3%84nn%2C%20A.%20" {
			t.Errorf("sluice-user: %q", got)
		}

		ask(access.WithCaller(t.Context(), access.Caller{Request: "r-2", Trace: trace}))
		if got := headers.Get("traceparent"); got != "" {
			t.Errorf("a trace of which nobody has decided whether it is recorded is sent: %s", got)
		}
		if got := headers.Get("sluice-user"); got != "anonymous" || caller.Identity != nil || caller.Request != "r-2" {
			t.Errorf("an anonymous caller: %q, %+v", got, caller)
		}

		ask(t.Context())
		if got := headers.Get("sluice-user"); got != "system:gateway" || caller.Identity != nil || caller.Request != "" {
			t.Errorf("the gateway itself: %q, %+v", got, caller)
		}
	})
}

func TestHeader_GroupsMayBeJoined(t *testing.T) {
	var caller access.Caller
	service := newTeams()
	service.SetHooks(ownertest.Hooks{Before: func(ctx context.Context, _ ownertest.Call) error {
		caller = access.CallerFrom(ctx)
		return nil
	}})
	address := serve(t, remote.Handler(service)) + "/sluice.resource.v1.ResourceService/Describe"
	req, err := http.NewRequest(http.MethodPost, address, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Sluice-User", "token:ci")
	req.Header.Set("Sluice-Group", "a, b%2Cc")
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	http.DefaultClient.CloseIdleConnections()
	if caller.Identity == nil || !slices.Equal(caller.Identity.Groups, []string{"a", "b,c"}) {
		t.Errorf("%d: %+v", res.StatusCode, caller)
	}
}

func FuzzHeader(f *testing.F) {
	f.Add("token:ci")
	f.Add(" a,b%2C\r\n\x00ä ")
	f.Fuzz(func(t *testing.T, text string) {
		out := remote.Escape(text)
		for _, b := range []byte(out) {
			if b <= ' ' || b >= 0x7f || b == ',' {
				t.Fatalf("%q has %q", out, b)
			}
		}
		if back := remote.Unescape(out); back != text {
			t.Fatalf("%q became %q", text, back)
		}
		_ = remote.Unescape(text)
	})
}
