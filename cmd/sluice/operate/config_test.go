package operate

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/cmd/sluice/commandtest"
	"github.com/sluicegw/sluice/cmd/sluice/config"
)

func TestConfigPrint_SaysWhereEachValueIsFrom(t *testing.T) {
	file := commandtest.WriteFile(t, t.TempDir(), "sluice.yaml",
		"retain-age: 2d\nlimit-body: 8MiB\nallowed-hosts: [a.example, b.example]\nlimit-rows: 5\n")
	t.Setenv("SLUICE_LIMIT_ROWS", "150000")
	t.Setenv("SLUICE_REDIS", "redis://user:hunter2@10.0.0.1:6379/3")
	t.Setenv(config.KeysVariable, "k1:c2VjcmV0")
	t.Setenv("SLUICE_OTEL_ENDPOINT", "https://user:hunter2@collector.example:4318")
	t.Setenv("SLUICE_SERVICES", `{"crm": {"address": "https://user:hunter2@crm.example"}}`)
	args := []string{"config", "print", "--config", file, "--limit-depth", "7", "--redis-password-file", "/run/password"}
	out := commandtest.Must(t, newRoot, append(args, "-o", "json")...)
	var all []config.Effective
	if err := json.Unmarshal([]byte(out), &all); err != nil {
		t.Fatal(err)
	}
	got := map[string]config.Effective{}
	for _, one := range all {
		got[one.Name] = one
	}
	for name, want := range map[string][2]string{
		"listen":              {"127.0.0.1:8080", "default"},
		"retain-age":          {"2d", file},
		"limit-body":          {"8MiB", file},
		"allowed-hosts":       {"a.example,b.example", file},
		"limit-rows":          {"150000", "SLUICE_LIMIT_ROWS"},
		"limit-depth":         {"7", "flag"},
		"redis":               {"redis://10.0.0.1:6379/3", "SLUICE_REDIS"},
		"redis-password-file": {"/run/password", "flag"},
		"encryption-keys":     {"(not shown)", config.KeysVariable},
		"index-memory":        {"", "default"},
		"otel-endpoint":       {"https://(not shown)@collector.example:4318", "SLUICE_OTEL_ENDPOINT"},
	} {
		if one := got[name]; one.Value != want[0] || one.Source != want[1] {
			t.Errorf("%s is %q from %q, want %q", name, one.Value, one.Source, want)
		}
	}
	if len(all) != len(config.NewGateway().Settings())+1 || !strings.Contains(got["index-memory"].Auto, "a quarter") {
		t.Errorf("%d settings, %+v", len(all), got["index-memory"])
	}
	table := commandtest.Must(t, newRoot, args...)
	for _, secret := range []string{"hunter2", "c2VjcmV0"} {
		if strings.Contains(out+table, secret) {
			t.Errorf("%s is printed", secret)
		}
	}
	if !strings.Contains(table, "SETTING") || !strings.Contains(table, "SLUICE_LIMIT_ROWS") {
		t.Errorf("%s", table)
	}
}

func TestConfigPrint_HidesTheCredentialsOfMalformedURLs(t *testing.T) {
	for given, want := range map[string]string{
		"https://user:hun/ter2@a.example":  "https://(not shown)@a.example",
		"https://user:hun ter2@a.example":  "https://(not shown)@a.example",
		"https://user:hun?ter2@a.example":  "https://(not shown)@a.example",
		"https://user:hun@ter2@a.example":  "https://(not shown)@a.example",
		"user:ter2@a.example":              "(not shown)@a.example",
		"https://a.example/b?token=ter2":   "https://a.example/b?(not shown)",
		"https://a.example/b#ter2":         "https://a.example/b#(not shown)",
		"https://a.example:4318/v1/traces": "https://a.example:4318/v1/traces",
	} {
		t.Setenv("SLUICE_OTEL_ENDPOINT", given)
		t.Setenv("SLUICE_SERVICES", `{"crm": {"address": "`+given+`"}, "teams": {"address": "https://b.example"}}`)
		out := commandtest.Must(t, newRoot, "config", "print")
		services := `{"crm":{"address":"` + want + `"},"teams":{"address":"https://b.example"}}`
		if !strings.Contains(out, " "+want+" ") || !strings.Contains(out, services) || strings.Contains(out, "ter2") {
			t.Errorf("%s: %s", given, out)
		}
		if lines, notes, _ := checkServe(t, "--data", t.TempDir()); strings.Contains(strings.Join(lines, "")+notes, "ter2") {
			t.Errorf("%s: a check shows it: %q %s", given, lines, notes)
		}
	}
	t.Setenv("SLUICE_SERVICES", "https://user:hunter2@a.example")
	if _, text, _ := commandtest.Run(t, newRoot, "config", "print"); strings.Contains(text, "hunter2") {
		t.Error(text)
	}
}
