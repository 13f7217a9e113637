package access_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/internal/span"
)

const requestTrace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

// actorOf returns the actor of a request.
func actorOf(request, trace string) access.Actor {
	return access.ActorFrom(access.WithCaller(context.Background(), access.Caller{
		Identity: &access.Identity{Name: "oidc:corp:alice"}, Address: netip.MustParseAddr("192.0.2.7"), Request: request, Trace: trace,
	}))
}

func TestActor_CarriesTheTraceOfARecordedRequestInFewBytes(t *testing.T) {
	for _, c := range []struct {
		request, trace string
		more           int
	}{
		{span.TraceID(requestTrace), requestTrace, 9},
		{"mine", requestTrace, 25},
		{span.TraceID(requestTrace), strings.TrimSuffix(requestTrace, "1") + "0", 0},
		{"mine", "", 0},
	} {
		plain := len("oidc:corp:alice\t192.0.2.7\t" + c.request)
		text := actorOf(c.request, c.trace).String()
		if len(text) != plain+c.more {
			t.Errorf("%s %s: %d bytes more, want %d", c.request, c.trace, len(text)-plain, c.more)
		}
		want := access.Actor{Name: "oidc:corp:alice", Address: "192.0.2.7", Request: c.request}
		if c.more > 0 {
			want.Trace = c.trace
		}
		if got := access.ParseActor(text); got != want {
			t.Errorf("%q became %+v", text, got)
		}
		if got := access.TraceOf(text); got != want.Trace {
			t.Errorf("%q has the trace %q", text, got)
		}
	}
}

func TestActor_AnyTraceComesBack(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	const rounds = 20_000
	extra := 0
	for range rounds {
		trace := fmt.Sprintf("00-%016x%016x-%016x-01", rnd.Uint64(), rnd.Uint64(), rnd.Uint64())
		for _, request := range []string{"mine", span.TraceID(trace)} {
			want := actorOf(request, trace)
			text := want.String()
			if strings.ContainsAny(text, "\n%") || strings.Count(text, "\t") != 3 {
				t.Fatalf("%q", text)
			}
			if got := access.ParseActor(text); got != want {
				t.Fatalf("%+v became %+v", want, got)
			}
			if request == "mine" {
				extra += len(text) - len("oidc:corp:alice\t192.0.2.7\tmine")
			}
		}
	}
	if average := float64(extra) / rounds; average > 25.6 {
		t.Errorf("%f bytes on average", average)
	}
}

func TestParseActor_ReadsWhatReleasesWithoutTracesWrote(t *testing.T) {
	want := access.Actor{Name: "token:ci", Address: "192.0.2.7", Request: "req-1"}
	if got := access.ParseActor("token:ci\t192.0.2.7\treq-1"); got != want {
		t.Errorf("%+v", got)
	}
	if got := access.ParseActor("token:ci\t192.0.2.7\treq-1\tgarbage"); got != want {
		t.Errorf("%+v", got)
	}
	if got := access.ParseActor(""); got != (access.Actor{Name: access.Gateway}) {
		t.Errorf("%+v", got)
	}
}
