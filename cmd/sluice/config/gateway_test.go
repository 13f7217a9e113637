package config_test

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/sluicegw/sluice/cmd/sluice/config"
)

var update = flag.Bool("update", false, "write the documentation anew")

func TestAllSettingsAreDocumented(t *testing.T) {
	path := filepath.Join("..", "..", "..", "docs", "operations.md")
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "-run Documented -update -->\n", "<!-- end -->"
	before, rest, ok1 := strings.Cut(string(raw), begin)
	was, after, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		t.Fatal("the marks of the table are missing")
	}
	want := markdown(config.NewGateway().Settings())
	if *update {
		if err := os.WriteFile(path, []byte(before+begin+want+end+after), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, was); diff != "" {
		t.Errorf("go test ./cmd/sluice/config -run Documented -update\n%s", diff)
	}
}

func TestAllLimitsAreDocumentedWithTheirReasons(t *testing.T) {
	settings := config.NewGateway().Settings()
	for _, s := range settings {
		if strings.HasPrefix(s.Name, "limit-") != (s.Why != "") {
			t.Errorf("%s: a limit has a reason, another setting has none", s.Name)
		}
	}
	path, want := filepath.Join("..", "..", "..", "docs", "limits.md"), limits(settings, fixedLimits(&config.NewGateway().Server.Limits))
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(raw)); diff != "" {
		t.Errorf("go test ./cmd/sluice/config -run Documented -update\n%s", diff)
	}
}

// given are the flags of a gateway after a command line.
func given(t *testing.T, args ...string) (*config.Gateway, *pflag.FlagSet) {
	t.Helper()
	g := config.NewGateway()
	f := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	config.Register(f, g.Settings())
	f.StringVar(&g.File, config.FileFlag, "", "")
	if err := f.Parse(args); err != nil {
		t.Fatal(err)
	}
	return g, f
}

func TestEverySettingIsOneOfEach(t *testing.T) {
	_, f := given(t)
	for _, s := range config.NewGateway().Settings() {
		if f.Lookup(s.Name) == nil || s.Help == "" {
			t.Errorf("%+v", s)
		}
	}
}

func TestTheDefaultsAreAccepted(t *testing.T) {
	g, f := given(t)
	if err := g.Validate(f); err != nil {
		t.Error(err)
	}
}

func TestWhatCannotBeMeantIsRefusedByItsName(t *testing.T) {
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"--data", ""}, "data: it is empty"},
		{[]string{"--catalogue", ""}, "catalogue: it is empty"},
		{[]string{"--data", "x", "--redis", "redis://127.0.0.1"}, "data, redis: choose one"},
		{[]string{"--redis-prefix", "x"}, "redis-prefix: has no effect without redis"},
		{[]string{"--redis-password-file", "x"}, "redis-password-file: has no effect without redis"},
		{[]string{"--redis", "redis://127.0.0.1", "--redis-durability", "both"}, `redis-durability: "both"; accepted are async, replica`},
		{[]string{"--limit-depth", "-1"}, "limit-depth: -1 is negative"},
		{[]string{"--limit-time", "-1s"}, "limit-time: -1s is negative"},
		{[]string{"--retain-entries", "-5"}, "retain-entries: -5 is negative"},
		{[]string{"--index-memory", "-5"}, "index-memory: -5 is negative; 0 is for no index"},
		{[]string{"--log-level", "loud"}, "log-level"},
		{[]string{"--listen", "8080"}, `listen: "8080" is not an address`},
		{[]string{"--listen", "0.0.0.0:80"}, "or allow everybody with --allow-anonymous"},
		{[]string{"--debug-listen", "6060"}, `debug-listen: "6060" is not an address like 127.0.0.1:6060`},
		{[]string{"--debug-listen", ":6060"}, "debug-listen: :6060 is not loopback"},
		{[]string{"--debug-listen", "10.0.0.1:6060", "--allow-anonymous"}, "kubectl port-forward"},
		{[]string{"--allowed-hosts", "*"}, "allowed-hosts: \"*\": wildcards"},
		{[]string{"--allowed-hosts", "gateway.example.com:8443"}, "leave it out"},
		{[]string{"--allowed-hosts", "https://gateway.example.com"}, "not a URL"},
		{[]string{"--allowed-hosts", "gateway.example.com/"}, "without a path"},
		{[]string{"--allowed-origins", "https://app.example.com/"}, "allowed-origins: \"https://app.example.com/\": an origin ends"},
		{[]string{"--allowed-origins", "app.example.com"}, "it is no origin"},
		{[]string{"--allowed-origins", "https://*.example.com"}, "wildcards"},
		{[]string{"--allowed-origins", "https://app.example.com:443"}, "the usual port"},
		{[]string{"--allowed-origins", "null"}, "sandboxed"},
		{[]string{"--limit-memory", "1000"}, "limit-memory: 1000 bytes are less than eight requests"},
		{[]string{"--trusted-only"}, "trusted-only: needs trusted-documents"},
		{[]string{"--audit-compress"}, "audit-compress: has no effect without audit"},
		{[]string{"--audit", "stdout", "--audit-max-files", "2"}, "audit-max-files: has no effect with audit: stdout"},
		{[]string{"--audit", "a.log", "--audit-max-age", "-1s"}, "audit-max-age: -1s is negative"},
	} {
		g, f := given(t, c.args...)
		if err := g.Validate(f); err == nil || !strings.Contains(err.Error(), c.says) || strings.Count(err.Error(), "\n") != 0 {
			t.Errorf("%v: %v", c.args, err)
		}
	}
}

func TestAValueThatCannotBeReadIsRefusedByWhatIsAccepted(t *testing.T) {
	for _, c := range []struct{ name, value, says string }{
		{"limit-depth", "x", `"x" is not a whole number of 64 bits`},
		{"retain-bytes", "99999999999999999999", `"99999999999999999999" is not a number of bytes like 1048576, 512KiB, 8MiB or 1GiB`},
		{"retain-bytes", "8MB", `"8MB" is not a number of bytes like 1048576, 512KiB, 8MiB or 1GiB`},
		{"limit-time", "5", `"5" is not a duration like 90s, 10m, 1h30m or 7d`},
		{"trusted-only", "maybe", `"maybe" is not true or false`},
	} {
		f := pflag.NewFlagSet("sluice", pflag.ContinueOnError)
		config.Register(f, config.NewGateway().Settings())
		if err := config.Refusal(f, f.Parse([]string{"--" + c.name + "=" + c.value})); err == nil || err.Error() != "--"+c.name+": "+c.says {
			t.Errorf("%v, want %s", err, c.says)
		}
		t.Setenv(config.EnvName(c.name), c.value)
		_, f = given(t)
		if err := config.Load(t.Context(), f, known(f), unexpected(t)); err == nil || !strings.Contains(err.Error(), config.EnvName(c.name)+": "+c.says) {
			t.Errorf("%v, want %s", err, c.says)
		}
	}
}

func TestAFlagTakesPrecedenceOverTheEnvironmentAndThatOverTheFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "sluice.yaml")
	if err := os.WriteFile(file, []byte("retain-age: 1h\nlimit-depth: 7\nlimit-fields: 8\nallowed-hosts: [a, b]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SLUICE_LIMIT_DEPTH", "9")
	t.Setenv("SLUICE_LIMIT_FIELDS", "10")
	g, f := given(t, "--config", file, "--limit-depth", "11")
	if err := config.Load(t.Context(), f, known(f), unexpected(t)); err != nil {
		t.Fatal(err)
	}
	if l := g.Server.Limits; l.Depth != 11 || l.Fields != 10 || g.Store.LogAge != time.Hour || !slices.Equal(g.Server.AllowedHosts, []string{"a", "b"}) {
		t.Errorf("%+v", g)
	}
}

func known(f *pflag.FlagSet) config.Variables {
	v := config.Variables{Others: []string{"SLUICE_FOR"}}
	f.VisitAll(func(f *pflag.Flag) { v.Own = append(v.Own, config.EnvName(f.Name)) })
	return v
}

// unexpected fails the test at a warning.
func unexpected(t *testing.T) func(string) {
	return func(text string) { t.Errorf("warning: %s", text) }
}

func TestAnUnknownVariableIsWarnedOf(t *testing.T) {
	for name, says := range map[string]string{
		"SLUICE_LISEN": `unknown environment variable SLUICE_LISEN; did you mean "SLUICE_LISTEN"?`,
		"SLUICE_FOO":   "unknown environment variable SLUICE_FOO; known are SLUICE_",
		"SLUICE_FOR":   "",
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(name, "1")
			var warnings []string
			_, f := given(t)
			if err := config.Load(t.Context(), f, known(f), func(text string) { warnings = append(warnings, text) }); err != nil {
				t.Error(err)
			}
			if got := strings.Join(warnings, "\n"); !strings.HasPrefix(got, says) || says == "" && got != "" {
				t.Errorf("%q", warnings)
			}
		})
	}
}

func TestSizesAndDurationsHaveUnits(t *testing.T) {
	g, f := given(t, "--limit-body", "8MiB", "--limit-answer=3 KiB", "--retain-bytes", "5", "--retain-age", "1d12h", "--limit-time=90s")
	if g.Server.Limits.Body != 8<<20 || g.Server.Limits.Answer != 3<<10 || g.Store.LogBytes != 5 || g.Store.LogAge != 36*time.Hour || g.Server.Limits.Time != 90*time.Second {
		t.Errorf("%+v", g)
	}
	for name, want := range map[string]string{"limit-body": "8MiB", "retain-bytes": "5", "retain-age": "36h", "limit-time": "1m30s"} {
		if got := f.Lookup(name).Value.String(); got != want {
			t.Errorf("%s is shown as %s, want %s", name, got, want)
		}
	}
	for _, wrong := range []string{"--limit-body=8MB", "--limit-body=9999999999GiB", "--limit-body=MiB", "--limit-body=8KMiB", "--limit-body=8iB", "--limit-body=iB", "--limit-body=1.5MiB", "--retain-age=1d-2h", "--retain-age=d", "--retain-age=-1d", "--retain-age=65535d2562047h"} {
		f := pflag.NewFlagSet("serve", pflag.ContinueOnError)
		config.Register(f, config.NewGateway().Settings())
		if err := f.Parse([]string{wrong}); err == nil {
			t.Errorf("%s is accepted", wrong)
		}
	}
}

func TestWhatIsNotKnownIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		file, says string
	}{
		"a key":              {file: "lisen: x", says: `unknown key "lisen"; did you mean "listen"?`},
		"a key twice":        {file: "listen: a\nlisten: b", says: "sluice.yaml: not acceptable as YAML: line 2: a key is given twice"},
		"a key without more": {file: "listen:", says: "listen: there is no value"},
		"another type":       {file: "limit-depth: deep", says: "limit-depth"},
		"no mapping":         {file: "- a", says: "sluice.yaml: there are no settings in it, written as key: value"},
		"no YAML":            {file: "listen: [", says: "sluice.yaml: not acceptable as YAML: line 1: did not find"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "sluice.yaml")
			if err := os.WriteFile(path, []byte(c.file), 0o600); err != nil {
				t.Fatal(err)
			}
			_, f := given(t, "--config", path)
			if err := config.Load(t.Context(), f, known(f), unexpected(t)); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestVariablesOfOthersAreLeftAlone(t *testing.T) {
	for _, name := range []string{
		"SLUICE_SERVICE_HOST", "SLUICE_SERVICE_PORT", "SLUICE_SERVICE_PORT_HTTP", "SLUICE_PORT", "SLUICE_PORT_8080_TCP", "SLUICE_PORT_8080_TCP_ADDR",
		"SLUICE_GATEWAY_SERVICE_HOST", "SLUICE_GATEWAY_PORT_80_TCP_PROTO", "SLUICE_TEST_STORE", "SLUICED", "OTHER",
	} {
		t.Setenv(name, "x")
	}
	_, f := given(t)
	if err := config.Load(t.Context(), f, known(f), unexpected(t)); err != nil {
		t.Error(err)
	}
}

// TestAFileWithoutAnEndIsNotRead as it would take all memory.
func TestAFileWithoutAnEndIsNotRead(t *testing.T) {
	_, f := given(t, "--config", "/dev/zero")
	if err := config.Load(t.Context(), f, known(f), unexpected(t)); err == nil || !strings.Contains(err.Error(), "more than the 1048576 bytes") {
		t.Error(err)
	}
}
