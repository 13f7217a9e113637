package gateway

import (
	"crypto/x509"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluicegw/sluice/cmd/sluice/config"
	"github.com/sluicegw/sluice/graph/identity"
)

var update = flag.Bool("update", false, "write docs/metrics.md")

// metric is a metric as the documentation has it.
type metric struct {
	name, typ, help string
	labels          []string
}

// allMetrics returns the metrics of a gateway that has everything that can be measured, by their names: a store on Redis,
// an audit log, TLS, static tokens and resource services.
func allMetrics(t *testing.T) map[string]metric {
	t.Helper()
	s := openShop(t, shelves)
	s.post(`{ shelves { nodes { id } } }`)
	on := shared{
		store:    measuredRedis{},
		audit:    &auditing{},
		owners:   &owners{certificates: []shownCertificate{{setting: "services: stock"}}},
		measures: newMeasures(),
		security: &redisTLS{files: &identity.Files{Setting: "redis-cert", Paths: []string{"", ""}}, authorities: []*x509.Certificate{}},
	}
	on.measures.store.call("get").duration.Observe(0)
	settings := config.NewGateway()
	settings.Server.TLS = &identity.TLS{Files: &identity.Files{Setting: "tls-cert"}}
	settings.Server.Identities.Tokens = &identity.Tokens{Files: &identity.Files{Setting: "tokens"}}
	served := prometheus.NewRegistry()
	served.MustRegister((&Gateway{Gateway: settings}).collectors(s.catalogues, on)...)
	histograms := prometheus.NewRegistry() // those that need nothing to be collected
	histograms.MustRegister(on.measures.collectors()...)
	types := map[string]string{}
	for _, from := range []prometheus.Gatherer{histograms, s.registry} {
		families, err := from.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, of := range families {
			types[of.GetName()] = strings.ToLower(of.GetType().String())
		}
	}
	out := map[string]metric{}
	for _, from := range []prometheus.Collector{served, s.registry} {
		descs := make(chan *prometheus.Desc)
		go func() {
			defer close(descs)
			from.Describe(descs)
		}()
		for desc := range descs {
			m := described(t, desc)
			if !strings.HasPrefix(m.name, "sluice_") {
				continue
			}
			m.typ = types[m.name]
			switch {
			case m.typ != "":
			case strings.HasSuffix(m.name, "_total"):
				m.typ = "counter"
			case strings.HasSuffix(m.name, "_duration_seconds"):
				m.typ = "histogram" // one with labels that has not observed anything
			default:
				m.typ = "gauge"
			}
			if before, ok := out[m.name]; ok && before.help != m.help {
				t.Errorf("%s has two texts: %s; %s", m.name, before.help, m.help)
			}
			out[m.name] = m
		}
	}
	return out
}

var descPattern = regexp.MustCompile(
	`^Desc\{fqName: ("(?:[^"\\]|\\.)*"), help: ("(?:[^"\\]|\\.)*"), (?:unit: "[^"]*", )?constLabels: \{(.*)\}, variableLabels: \{(.*)\}\}$`,
)

// described reads what a Desc says of itself, which has no other way to be read.
func described(t *testing.T, desc *prometheus.Desc) (m metric) {
	t.Helper()
	parts := descPattern.FindStringSubmatch(desc.String())
	if parts == nil {
		t.Fatalf("%s", desc)
	}
	m.name, _ = strconv.Unquote(parts[1])
	m.help, _ = strconv.Unquote(parts[2])
	for _, label := range regexp.MustCompile(`(\w+)="`).FindAllStringSubmatch(parts[3], -1) {
		m.labels = append(m.labels, label[1])
	}
	for label := range strings.SplitSeq(parts[4], ",") {
		if label != "" {
			m.labels = append(m.labels, label)
		}
	}
	return m
}

// documented is docs/metrics.md.
func documented(all map[string]metric) string {
	var b strings.Builder
	b.WriteString(`# Metrics

Generated from the code: go test ./cmd/sluice/gateway -run Documented -update

These are the metrics of Sluice at ` + "`/metrics`" + `. [observability.md](observability.md#metrics) says how to scrape them, and has
alerts, dashboards, and help for slow writes. For example, this is how long the slowest hundredth of writes takes:

` + "```promql" + `
histogram_quantile(0.99, sum by (le) (rate(sluice_store_call_duration_seconds_bucket{operation="apply"}[5m])))
` + "```" + `

A metric with labels appears once it has counted something. Metrics about Redis, the audit log, certificates, tokens and
resource services appear only if the gateway uses these.

| metric | type | labels | meaning |
|---|---|---|---|
`)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		m := all[name]
		labels := make([]string, len(m.labels))
		for i, label := range m.labels {
			labels[i] = "`" + label + "`"
		}
		help := strings.ReplaceAll(m.help, "|", `\|`)
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", m.name, m.typ, strings.Join(labels, ", "), help)
	}
	return b.String()
}

func TestMetrics_AreDocumented(t *testing.T) {
	path, want := filepath.Join("..", "..", "..", "docs", "metrics.md"), documented(allMetrics(t))
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	was, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(was)); diff != "" {
		t.Errorf("go test ./cmd/sluice/gateway -run Documented -update\n%s", diff)
	}
}

// series matches the names of our metrics, and descriptions the texts of alerts, which name metrics and not their series.
var (
	series       = regexp.MustCompile(`\bsluice_\w+`)
	descriptions = regexp.MustCompile(`description: >-\n(?: {12,}.*\n)+`)
)

// TestMetrics_OfDashboardsAndAlertsAreThere: a renamed metric leaves no empty panel and no silent alert.
func TestMetrics_OfDashboardsAndAlertsAreThere(t *testing.T) {
	known := map[string]bool{}
	for name, m := range allMetrics(t) {
		known[name] = m.typ != "histogram"
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			known[name+suffix] = m.typ == "histogram"
		}
	}
	deploy := filepath.Join("..", "..", "..", "deploy")
	var files []string
	for _, pattern := range []string{"grafana/*.json", "prometheus/*.yaml"} {
		found, err := filepath.Glob(filepath.Join(deploy, pattern))
		if err != nil || len(found) == 0 {
			t.Fatal(pattern, err)
		}
		files = append(files, found...)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, description := range descriptions.FindAllString(string(text), -1) {
			for _, name := range series.FindAllString(description, -1) {
				if _, ok := known[name]; !ok {
					t.Errorf("%s: a description names %s, which is no metric", file, name)
				}
			}
		}
		names := series.FindAllString(descriptions.ReplaceAllString(string(text), ""), -1)
		if len(names) == 0 {
			t.Errorf("%s names no metric", file)
		}
		for _, name := range names {
			if !known[name] {
				t.Errorf("%s: there is no series %s", file, name)
			}
		}
	}
}

// dashboard is what a test wants to know of a dashboard of Grafana.
type dashboard struct {
	UID, Title string
	Panels     []struct {
		ID      int
		Type    string
		Title   string
		GridPos struct{ H, W, X, Y int }
		Targets []struct{ Expr string }
		// FieldConfig has the colours of values from a step on.
		FieldConfig struct {
			Defaults struct {
				Thresholds struct{ Steps []struct{ Color string } }
			}
		}
	}
	Templating struct {
		List []struct{ Name, Type string }
	}
}

// TestMetrics_DashboardsCanBeImported: they are JSON with ids of their own, a data source that is chosen at the import, and
// panels that ask for something, lie beside each other, and change their colour at a threshold.
func TestMetrics_DashboardsCanBeImported(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", "..", "deploy", "grafana", "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	uids := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var d dashboard
		if err := json.Unmarshal(text, &d); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if d.UID == "" || uids[d.UID] || d.Title == "" {
			t.Errorf("%s: uid %q, title %q", file, d.UID, d.Title)
		}
		uids[d.UID] = true
		if len(d.Templating.List) == 0 || d.Templating.List[0].Type != "datasource" {
			t.Errorf("%s: the data source cannot be chosen", file)
		}
		ids, taken := map[int]bool{}, map[[2]int]string{}
		for _, p := range d.Panels {
			if ids[p.ID] || p.Title == "" || p.Type != "row" && len(p.Targets) == 0 {
				t.Errorf("%s: panel %d %q has no title, asks for nothing, or has the id of another", file, p.ID, p.Title)
			}
			ids[p.ID] = true
			steps := p.FieldConfig.Defaults.Thresholds.Steps
			for i := 1; i < len(steps); i++ {
				if steps[i].Color == steps[i-1].Color {
					t.Errorf("%s: %q is as %s below a threshold as above it", file, p.Title, steps[i].Color)
				}
			}
			for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
				for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
					if other := taken[[2]int{x, y}]; other != "" || x >= 24 {
						t.Fatalf("%s: %q lies on %q, or beyond the right edge", file, p.Title, other)
					}
					taken[[2]int{x, y}] = p.Title
				}
			}
		}
	}
}
