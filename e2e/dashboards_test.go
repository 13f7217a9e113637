package e2e_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/internal/redistest"
)

// dashboards are the dashboards of Grafana.
const dashboards = "../deploy/grafana/*.json"

// absent matches the queries that have no data here: the gateways have no services and no released versions, and what
// the others count has not happened.
var absent = regexp.MustCompile(strings.Join([]string{
	`sluice_service_`, `sluice_version_operations_total`, `sluice_deprecated_uses_total`, `sluice_catalogue_reloads_total`,
	`sluice_unreadable_total`, `sluice_store_errors_total`, `code="POSITION_EXPIRED"`,
	`sluice_(backup_last|certificate_expiry|token_expiry)_timestamp_seconds`,
}, "|"))

// TestDashboards_ShowGatewaysAndAnAlertFires has Prometheus scrape three gateways, two of them on one Redis, as the
// compose file does, asks it what the dashboards ask, and stops Redis.
func TestDashboards_ShowGatewaysAndAnAlertFires(t *testing.T) {
	if os.Getenv(storeVariable) != "" {
		t.Skip("it brings its own stores")
	}
	if _, err := exec.LookPath("prometheus"); err != nil {
		t.Skip("there is no prometheus")
	}
	secrets := composeSecrets(t)
	token := composeToken(t, secrets, "tester")
	settings := append(composeSettings(t, secrets), "--audit", filepath.Join(t.TempDir(), "audit.log"))
	redis := redistest.Start(t)
	gateways := []*gateway{
		start(t, "", append(settings, "--redis", redis.URL())...),
		start(t, "", append(composeSettings(t, secrets), "--redis", redis.URL())...),
		start(t, "", append(composeSettings(t, secrets), "--redis", "", "--data", t.TempDir())...),
	}
	var targets []string
	for _, g := range gateways {
		g.token = token
		targets = append(targets, fmt.Sprintf("%q", strings.TrimPrefix(g.address, "http://")))
	}
	p := startPrometheus(t, secrets, targets)

	// The first sample of a counter is not enough for a rate, so the traffic goes on until all panels have data.
	left, n := panelQueries(t), 0
	redistest.Await(t, "all panels have data", func() error {
		for i, g := range gateways {
			g.traffic(fmt.Sprintf("net-%d-%d", i, n))
		}
		n++
		var errs []error
		left = slices.DeleteFunc(left, func(query string) bool {
			err := p.hasSeries(query)
			if errors.Is(err, errNoData) && absent.MatchString(query) {
				return true
			}
			errs = append(errs, err)
			return err == nil
		})
		return errors.Join(errs...)
	})

	redis.Kill()
	redistest.Await(t, "an alert fires", func() error {
		if a := gateways[0].post(newNetwork("late"), nil); len(a.Errors) == 0 {
			t.Fatalf("a write without Redis: %+v", a)
		}
		return p.hasSeries(`ALERTS{alertname="SluiceErrorBudgetBurnsFast", alertstate="firing"}`)
	})
	p.rules(t)
}

// traffic makes a gateway write, read and deliver.
func (g *gateway) traffic(name string) {
	g.t.Helper()
	s := g.dial()
	defer s.close()
	s.subscribe("1", `subscription { networkChanges { type } }`, nil)
	s.next("1") // IN_SYNC
	g.must(newNetwork(name))
	s.next("1")
	g.must(`{ networks(first: 1) { nodes { id } } }`)
	g.post(`{ node(id: "none") { id } }`, nil)
}

// prometheus is a running Prometheus.
type prometheus struct {
	address string
	client  *http.Client
}

// startPrometheus runs Prometheus by the file of the compose file, which it adapts to this machine.
func startPrometheus(t *testing.T, secrets string, targets []string) *prometheus {
	t.Helper()
	text, err := os.ReadFile("../deploy/compose/prometheus.yaml")
	if err != nil {
		t.Fatal(err)
	}
	alerts, err := filepath.Abs("../deploy/prometheus/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	adapted := strings.NewReplacer(
		"/etc/prometheus/alerts.yaml", alerts, "/secrets", secrets,
		`"gateway-1:8080", "gateway-2:8080"`, strings.Join(targets, ", "),
		"interval: 5s", "interval: 300ms",
	).Replace(string(text))
	dir := folder(t, map[string]string{"prometheus.yaml": adapted})
	port := freePort(t)
	cmd := exec.CommandContext(
		t.Context(), "prometheus", "--config.file="+filepath.Join(dir, "prometheus.yaml"), "--storage.tsdb.path="+t.TempDir(),
		"--web.listen-address=127.0.0.1:"+port, "--web.console.templates="+dir, "--web.console.libraries="+dir,
	)
	startProgram(t, cmd)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &prometheus{address: "http://127.0.0.1:" + port, client: &http.Client{Transport: transport}}
}

// get decodes an answer of the API of Prometheus.
func (p *prometheus) get(path string, to any) error {
	res, err := p.client.Get(p.address + path)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	answer := struct {
		Error string
		Data  any
	}{Data: to}
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil {
		return err
	}
	if answer.Error != "" {
		return errors.New(answer.Error)
	}
	return nil
}

// errNoData means that a query has no series.
var errNoData = errors.New("no data")

// hasSeries returns an error if Prometheus does not accept a query, or has no series for it.
func (p *prometheus) hasSeries(query string) error {
	var data struct{ Result []any }
	err := p.get("/api/v1/query?"+url.Values{"query": {query}}.Encode(), &data)
	if err == nil && len(data.Result) == 0 {
		err = errNoData
	}
	if err != nil {
		return fmt.Errorf("%s: %w", query, err)
	}
	return nil
}

// panelQueries returns what the panels of all dashboards ask, for all gateways.
func panelQueries(t *testing.T) (queries []string) {
	t.Helper()
	files, err := filepath.Glob(dashboards)
	if err != nil || len(files) == 0 {
		t.Fatalf("%v %v", files, err)
	}
	variables := strings.NewReplacer("$job", ".+", "$instance", ".+", "$__rate_interval", "1m", "$__range", "1h")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var d struct {
			Panels []struct{ Targets []struct{ Expr string } }
		}
		if err := json.Unmarshal(text, &d); err != nil {
			t.Fatal(err)
		}
		for _, panel := range d.Panels {
			for _, target := range panel.Targets {
				queries = append(queries, variables.Replace(target.Expr))
			}
		}
	}
	return queries
}

// rules fails the test if Prometheus could not evaluate a rule.
func (p *prometheus) rules(t *testing.T) {
	t.Helper()
	var data struct {
		Groups []struct {
			Rules []struct{ Name, Health, LastError string }
		}
	}
	if err := p.get("/api/v1/rules", &data); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, group := range data.Groups {
		for _, rule := range group.Rules {
			n++
			if rule.Health != "ok" {
				t.Errorf("%s is %s: %s", rule.Name, rule.Health, rule.LastError)
			}
		}
	}
	if n < 20 {
		t.Errorf("there are %d rules", n)
	}
}
