package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/sluicegw/sluice/internal/redistest"
	"github.com/sluicegw/sluice/internal/span/spantest"
)

const (
	callersTrace = "0af7651916cd43dd8448eb211c80319c"
	sampledTrace = "00-" + callersTrace + "-b7ad6b7169203331-01"
)

// exportSoon makes the gateways of a test export each span at once.
func exportSoon(t *testing.T) { t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "20") }

// traced sends an operation with headers, and returns the headers of the answer.
func (g *gateway) traced(query string, header ...string) (answer, http.Header) {
	g.t.Helper()
	body, err := json.Marshal(map[string]any{"query": query})
	if err != nil {
		g.t.Fatal(err)
	}
	res, text := g.do(http.MethodPost, "/graphql", string(body), append(header, "Content-Type", "application/json")...)
	var a answer
	if err := json.Unmarshal([]byte(text), &a); err != nil {
		g.t.Fatalf("%s: %v", text, err)
	}
	return a, res.Header
}

func newNetwork(name string) string {
	return fmt.Sprintf(`mutation Make { createNetwork(input: {name: %q, spec: {cloudCredentialsRef: {secretName: "s", cloudName: "c"}, resource: {mtu: 1400}}}) { network { id } } }`, name)
}

// TestTrace_AWriteIsFollowedFromTheRequestToTheStoreAndToSubscriptions has two gateways on Redis, and one on the
// embedded store, which is subscribed to itself.
func TestTrace_AWriteIsFollowedFromTheRequestToTheStoreAndToSubscriptions(t *testing.T) {
	sameOnEachStore(t)
	exportSoon(t)
	for _, c := range []struct {
		name, group string
		flags       func(t *testing.T) []string
	}{
		{"bolt", "commit", func(t *testing.T) []string { return []string{"--data", t.TempDir()} }},
		{"redis", "pipeline", func(t *testing.T) []string { return []string{"--redis", redistest.Start(t).URL()} }},
	} {
		t.Run(c.name, func(t *testing.T) {
			collector := spantest.New(t)
			audit := filepath.Join(t.TempDir(), "audit.log")
			flags := append(c.flags(t), "--otel-endpoint", collector.URL)
			writer := start(t, "", append(slices.Clone(flags), "--audit", audit, "--access-log")...)
			listener := writer
			if c.name == "redis" {
				listener = start(t, "", flags...)
			}
			s := listener.dial()
			defer s.close()
			s.subscribe("1", `subscription Watch { networkChanges { type network { metadata { name } } } }`, nil)
			s.next("1") // IN_SYNC

			_, header := writer.traced(newNetwork("net-a"))
			id := header.Get("X-Request-Id")
			if got := s.next("1").get("networkChanges", "type"); got != "ADDED" {
				t.Fatal(got)
			}
			spans := collector.Await(t, id, "POST /graphql", "mutation", "CREATE Network", "store Apply", "queue", c.group)
			t.Logf("\n%s", spantest.Tree(spans))
			parents := []string{"POST /graphql", "mutation", "CREATE Network", "store Apply", c.group}
			for i, name := range parents[1:] {
				if of := spantest.Find(t, spans, parents[i]); spantest.Find(t, spans, name).ParentID != of.SpanID {
					t.Errorf("%s is not below %s", name, of.Name)
				}
			}
			if first := spantest.Find(t, spans, "POST /graphql"); first.ParentID != "" || first.Service != "sluice" {
				t.Errorf("%+v", first)
			}
			verb := spantest.Find(t, spans, "CREATE Network")
			deliveries := collector.AwaitAll(t, func(s spantest.Span) bool { return s.Attributes["sluice.write.trace_id"] == id }, "deliver")
			t.Logf("\n%s", spantest.Tree(deliveries))
			delivery := spantest.Find(t, deliveries, "deliver")
			if !slices.Equal(delivery.Links, []string{id + "-" + verb.SpanID}) || delivery.Kind != "consumer" || delivery.TraceID == id ||
				delivery.Attributes["graphql.operation.name"] != "Watch" || delivery.Attributes["sluice.change"] != "ADDED" ||
				delivery.Attributes["sluice.resource.uid"] != verb.Attributes["sluice.resource.uid"] {
				t.Errorf("the delivery %+v is not of the write %s", delivery, verb.SpanID)
			}
			for _, s := range collector.Spans() {
				if text := fmt.Sprint(s); strings.Contains(text, "net-a") || strings.Contains(text, "1400") {
					t.Errorf("a value is in a span: %s", text)
				}
			}
			if !writer.log.await(`"msg":"access","requestId":"` + id + `"`) {
				t.Errorf("the access log lacks %s:\n%s", id, writer.log)
			}

			// A caller that names its request finds it by that id and by the one of its trace.
			_, header = writer.traced(newNetwork("net-b"), "X-Request-Id", "req-42", "Traceparent", sampledTrace)
			if header.Get("X-Request-Id") != "req-42" || header.Get("X-Trace-Id") != callersTrace {
				t.Errorf("%v", header)
			}
			spans = collector.Await(t, callersTrace, "POST /graphql", "CREATE Network")
			if first := spantest.Find(t, spans, "POST /graphql"); first.ParentID != "b7ad6b7169203331" || first.Attributes["sluice.request.id"] != "req-42" {
				t.Errorf("%+v", first)
			}
			redistest.Await(t, "the audit log has both changes", func() error {
				lines, err := auditLines(audit)
				if err != nil {
					return err
				}
				found := map[string]string{}
				for _, line := range lines {
					if line.Event == "ADDED" {
						found[line.Name] = line.RequestID + " " + line.TraceID
					}
				}
				if found["net-a"] != id+" " || found["net-b"] != "req-42 "+callersTrace {
					return fmt.Errorf("%v", found)
				}
				return nil
			})
		})
	}
}

func TestTrace_ARequestThatIsNotSampledLeavesNoSpan(t *testing.T) {
	exportSoon(t)
	t.Setenv("OTEL_TRACES_SAMPLER", "parentbased_always_off")
	collector := spantest.New(t)
	g := start(t, "", "--otel-endpoint", collector.URL)
	s := g.dial()
	defer s.close()
	s.subscribe("1", watchNetworks, nil)
	s.next("1")
	g.must(newNetwork("net-a"))
	s.next("1")
	g.traced(newNetwork("net-b"), "Traceparent", strings.TrimSuffix(sampledTrace, "1")+"0")
	s.next("1")
	g.traced(newNetwork("net-c"), "Traceparent", sampledTrace)
	s.next("1")
	collector.AwaitAll(t, func(s spantest.Span) bool { return s.Attributes["sluice.write.trace_id"] == callersTrace }, "deliver")
	collector.Await(t, callersTrace, "POST /graphql")
	if code := g.stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	var requests, deliveries int
	for _, s := range collector.Spans() {
		switch s.Name {
		case "POST /graphql":
			requests++
		case "deliver":
			deliveries++
		}
	}
	if requests != 1 || deliveries != 1 {
		t.Errorf("%d requests and %d deliveries were exported:\n%s", requests, deliveries, spantest.Tree(collector.Spans()))
	}
}

func TestTrace_TheLastSpansAreExportedWhenAGatewayStops(t *testing.T) {
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "3600000")
	t.Setenv("OTEL_SERVICE_NAME", "edge")
	collector := spantest.New(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	g := start(t, "")
	_, header := g.traced(`{ __typename }`)
	if code := g.stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	spans := collector.Await(t, header.Get("X-Request-Id"), "POST /graphql", "query")
	if service := spans[0].Service; service != "edge" {
		t.Errorf("service %s", service)
	}
}

func TestTrace_ADeadCollectorIsSaidOnceAndStopsNothing(t *testing.T) {
	exportSoon(t)
	t.Setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1000")
	var calls atomic.Int64
	dead := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		calls.Add(1)
		http.Error(w, "secret text", http.StatusForbidden)
	}))
	defer dead.Close()
	g := start(t, "", "--otel-endpoint", dead.URL)
	redistest.Await(t, "several batches are refused", func() error {
		g.must(`{ __typename }`)
		if n := calls.Load(); n < 3 {
			return fmt.Errorf("%d", n)
		}
		return nil
	})
	const text = "traces are lost: the collector does not take them"
	if !g.log.await(text) {
		t.Errorf("it is not said:\n%s", g.log)
	}
	if code := g.stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if n := strings.Count(g.log.String(), text); n != 1 {
		t.Errorf("it is said %d times:\n%s", n, g.log)
	}
}

func TestTrace_VariablesThatAreNotAcceptedAreNamed(t *testing.T) {
	for _, c := range []struct{ name, value, want string }{
		{"OTEL_TRACES_SAMPLER", "jaeger_remote", "accepted are always_on, always_off and traceidratio"},
		{"OTEL_TRACES_SAMPLER_ARG", "2", "a number from 0 to 1 is accepted"},
		{"OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "accepted is http/protobuf"},
		{"OTEL_TRACES_EXPORTER", "zipkin", "accepted are otlp and none"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
			t.Setenv("OTEL_TRACES_SAMPLER", "traceidratio")
			t.Setenv(c.name, c.value)
			g, err := tryStart(t, "")
			if err == nil {
				g.kill()
				t.Fatal("the gateway started")
			}
			if !strings.Contains(err.Error(), c.name) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v", err)
			}
		})
	}
}
