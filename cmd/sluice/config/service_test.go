package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/sluicegw/sluice/backend/service/mirror"
	"github.com/sluicegw/sluice/backend/service/owner/remote"
	"github.com/sluicegw/sluice/cmd/sluice/config"
)

// loadServices reads the setting from a command line and a configuration file, and checks it.
func loadServices(t *testing.T, file string, args ...string) (config.Services, string, error) {
	t.Helper()
	g := config.NewGateway()
	flags := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	config.Register(flags, g.Settings())
	path := filepath.Join(t.TempDir(), "sluice.yaml")
	flags.String(config.FileFlag, "", "")
	if file != "" {
		if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, "--config", path)
	}
	if err := flags.Parse(args); err != nil {
		return nil, "", config.Refusal(flags, err)
	}
	err := config.Load(t.Context(), flags, config.Variables{Own: []string{"SLUICE_SERVICES"}}, func(string) {})
	if err == nil {
		err = g.Validate(flags)
	}
	return g.Services, flags.Lookup("services").Value.String(), err
}

func TestServices_AreAMappingInTheConfigurationFile(t *testing.T) {
	services, text, err := loadServices(t, `
services:
  teams:
    address: http://127.0.0.1:9310
  crm:
    address: https://crm.example:8443/v2
    protocol: grpc
    ca: ca.pem
    cert: gateway.pem
    key: gateway-key.pem
    server-name: crm.internal
    timeout: 2s
    in-flight: 8
`)
	if err != nil {
		t.Fatal(err)
	}
	want := config.Services{
		"teams": {Address: "http://127.0.0.1:9310"},
		"crm": {
			Address: "https://crm.example:8443/v2", Protocol: remote.GRPC, CA: "ca.pem", Cert: "gateway.pem",
			Key: "gateway-key.pem", ServerName: "crm.internal", Timeout: 2 * time.Second, InFlight: 8,
		},
	}
	if diff := cmp.Diff(want, services); diff != "" {
		t.Error(diff)
	}
	again, _, err := loadServices(t, "", "--services", text)
	if err != nil || !cmp.Equal(want, again) {
		t.Errorf("%s is read as %+v, %v", text, again, err)
	}
}

func TestServices_AreDocumentedWithAnExample(t *testing.T) {
	doc, err := os.ReadFile("../../../docs/services.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(doc), "\n## Settings of the gateway\n")
	_, example, _ := strings.Cut(section, "```yaml\n")
	example, _, _ = strings.Cut(example, "```")
	services, _, err := loadServices(t, example)
	if err != nil || len(services) != 2 {
		t.Fatalf("%+v, %v", services, err)
	}
	crm := services["crm"]
	defaults := crm
	defaults.Protocol = remote.Protocols()[0]
	defaults.Timeout = remote.DefaultTimeout
	defaults.InFlight = remote.DefaultInFlight
	defaults.CompareInterval = mirror.DefaultCompareInterval
	if crm != defaults {
		t.Errorf("the example has %+v, the defaults are %+v", crm, defaults)
	}
}

func TestServices_AreNamesAndAddressesOnTheCommandLine(t *testing.T) {
	services, _, err := loadServices(t, "services: {crm: {address: 'http://other'}}",
		"--services", "teams=http://127.0.0.1:9310,crm=https://crm.example")
	want := config.Services{"teams": {Address: "http://127.0.0.1:9310"}, "crm": {Address: "https://crm.example"}}
	if err != nil || !cmp.Equal(want, services) {
		t.Errorf("%+v, %v", services, err)
	}
	t.Setenv("SLUICE_SERVICES", "teams=http://127.0.0.1:9310")
	services, _, err = loadServices(t, "")
	if err != nil || len(services) != 1 {
		t.Errorf("%+v, %v", services, err)
	}
}

func TestServices_RefusalsNameThePlace(t *testing.T) {
	for _, one := range []struct{ file, says string }{
		{
			"services: teams",
			`sluice.yaml: services: "teams" is not NAME=ADDRESS`,
		},
		{
			"services: [teams]",
			`sluice.yaml: services: "teams" is not NAME=ADDRESS`,
		},
		{
			"services: {teams: http://a}",
			"services: teams: it is no mapping; a mapping with an address is accepted",
		},
		{
			"services: {teams: }",
			"services: teams: it is no mapping",
		},
		{
			"services: {teams: {}}",
			"services: teams: address: it is missing",
		},
		{
			"services: {teams: {adress: http://a}}",
			`services: teams: unknown key "adress"; did you mean "address"?`,
		},
		{
			"services: {teams: {address: }}",
			"services: teams: address: there is no value; leave the key out",
		},
		{
			"services: {teams: {address: 7}}",
			"services: teams: address: 7 is no text",
		},
		{
			"services: {teams: {address: 'http://a', compare-interval: 1s}}",
			"services: teams: compare-interval: 1s; 5s to 24h0m0s is accepted",
		},
		{
			"services: {teams: {address: 'http://a', compare-interval: 25h}}",
			"services: teams: compare-interval: 25h0m0s; 5s to 24h0m0s is accepted",
		},
		{
			"services: {teams: {address: 'http://a', compare-interval: often}}",
			`services: teams: compare-interval: "often" is not a duration like 5s`,
		},
		{
			"services: {teams: {address: 'a:b'}}",
			`services: teams: address: "a:b" has the scheme "a"; http and https are accepted`,
		},
		{
			"services: {Teams: {address: http://a}}",
			"services: Teams: a name of small letters",
		},
		{
			"services: {t: {address: http://a, timeout: 5}}",
			"services: t: timeout: 5 is not a duration like 5s",
		},
		{
			"services: {t: {address: http://a, timeout: 0s}}",
			`services: t: timeout: "0s" is not a duration like 5s`,
		},
		{
			"services: {t: {address: http://a, timeout: 31s}}",
			"services: t: timeout: 31s; at most 30s is accepted",
		},
		{
			"services: {t: {address: http://a, in-flight: 0}}",
			"services: t: in-flight: 0 is not a whole number above 0",
		},
		{
			"services: {t: {address: http://a, in-flight: 1e9}}",
			"services: t: in-flight:",
		},
		{
			"services: {t: {address: http://a, protocol: soap}}",
			`services: t: protocol: "soap"; accepted: connect+json, connect, grpc, grpc-web`,
		},
		{
			"services: {t: {address: https://a, cert: x}}",
			"services: t: cert, key: both are needed",
		},
		{
			"services: {t: {address: http://a, ca: x}}",
			"services: t: ca, cert, key, server-name: they have no effect",
		},
		{
			"services: {a: {}, b: {address: ftp://x, in-flight: 'x'}}",
			`services: b: in-flight: "x" is not a whole number`,
		},
		{
			"services: {a: {}, b: {address: ftp://x}}",
			"a: address: it is missing; a URL such as",
		},
	} {
		_, _, err := loadServices(t, one.file)
		if err == nil || !strings.Contains(err.Error(), one.says) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", one.file, err)
		}
	}
	_, _, err := loadServices(t, "", "--services", "a=http://a,a=http://b")
	if err == nil || err.Error() != "--services: a: it is there twice" {
		t.Errorf("%v", err)
	}
}
