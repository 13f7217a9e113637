package e2e_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/sluicegw/sluice/internal/redistest"
)

// compose is the part of a compose file that the tests look at.
type compose struct {
	Services map[string]struct {
		Image     string
		Command   []string
		Volumes   []string
		Build     struct{ Context string }
		DependsOn map[string]any `yaml:"depends_on"`
	}
	Volumes map[string]any
}

// TestCompose_NamesWhatIsThere looks at deploy/compose.yaml where no builder is.
func TestCompose_NamesWhatIsThere(t *testing.T) {
	text, err := os.ReadFile("../deploy/compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file compose
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	for name, service := range file.Services {
		var inside []string
		for _, volume := range service.Volumes {
			parts := strings.Split(volume, ":")
			inside = append(inside, parts[1])
			_, known := file.Volumes[parts[0]]
			if _, err := os.Stat(filepath.Join("../deploy", parts[0])); !known && err != nil {
				t.Errorf("%s: %s is neither a volume nor a file", name, parts[0])
			}
		}
		for other := range service.DependsOn {
			if _, ok := file.Services[other]; !ok {
				t.Errorf("%s waits for %s, which is no service", name, other)
			}
		}
		for _, argument := range service.Command {
			if strings.HasPrefix(argument, "/") && !slices.Contains(inside, argument) {
				t.Errorf("%s: nothing is at %s", name, argument)
			}
		}
	}
	want := []string{"caddy", "gateway-1", "gateway-2", "grafana", "oidc", "prometheus", "redis", "secrets"}
	if got := slices.Sorted(maps.Keys(file.Services)); !slices.Equal(got, want) {
		t.Errorf("the services are %v", got)
	}
}

// TestCompose_TheImageIsMadeOfWhatIsThere looks at the Dockerfile where no builder is.
func TestCompose_TheImageIsMadeOfWhatIsThere(t *testing.T) {
	text, err := os.ReadFile("../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	module, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	release := regexp.MustCompile(`(?m)^go (\S+)$`).FindSubmatch(module)
	if release == nil || !bytes.Contains(text, append([]byte("FROM golang:"), release[1]...)) {
		t.Errorf("the image is not built with the release of Go in go.mod")
	}
	for _, line := range regexp.MustCompile(`(?m)^COPY ([^-\n].*) \S+$`).FindAllSubmatch(text, -1) {
		for _, path := range strings.Fields(string(line[1])) {
			if _, err := os.Stat(filepath.Join("..", path)); err != nil {
				t.Errorf("COPY %s: %v", path, err)
			}
		}
	}
	variable := regexp.MustCompile(`-X (\S+)=`).FindSubmatch(text)
	if variable == nil || !strings.Contains(string(variable[1]), "cmd/sluice/version.release") {
		t.Error("the image does not say its version")
	}
}

// TestCompose_TwoGatewaysServeBehindCaddy runs the processes of the compose file with its files, on this machine.
func TestCompose_TwoGatewaysServeBehindCaddy(t *testing.T) {
	t.Parallel()
	sameOnEachStore(t)
	for _, program := range []string{"caddy", "openssl"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("there is no %s", program)
		}
	}
	secrets := composeSecrets(t)
	token := composeToken(t, secrets, "tester")
	args := append(composeSettings(t, secrets), "--redis", redistest.Start(t).URL())
	gateways := []*gateway{start(t, "", args...), start(t, "", args...)}
	var addresses []string
	for _, g := range gateways {
		g.token = token
		addresses = append(addresses, strings.TrimPrefix(g.address, "http://"))
	}
	port := freePort(t)
	caddy := exec.CommandContext(t.Context(), "caddy", "run", "--adapter", "caddyfile", "--config", "../deploy/compose/Caddyfile")
	caddy.Env = append(
		caddy.Environ(), "SITE=sluice.localhost:"+port, "SECRETS="+secrets, "OIDC=127.0.0.1:1",
		"GATEWAYS="+strings.Join(addresses, " "), "HOME="+t.TempDir(), "XDG_DATA_HOME="+t.TempDir(), "XDG_CONFIG_HOME="+t.TempDir(),
	)
	startProgram(t, caddy)
	client := behind(t, filepath.Join(secrets, "ca.crt"), port)
	ask := func(query string) error {
		body := fmt.Sprintf(`{"query":%q}`, query)
		request, err := http.NewRequestWithContext(
			t.Context(), http.MethodPost, "https://sluice.localhost:"+port+"/v1/graphql", strings.NewReader(body),
		)
		if err != nil {
			return err
		}
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Authorization", "Bearer "+token)
		answer, err := client.Do(request)
		if err != nil {
			return err
		}
		defer func() { _ = answer.Body.Close() }()
		text, err := io.ReadAll(answer.Body)
		if err == nil && (answer.StatusCode != http.StatusOK || bytes.Contains(text, []byte(`"errors"`))) {
			err = errors.New(answer.Status + " " + string(text))
		}
		return err
	}
	redistest.Await(t, "Caddy answers", func() error { return ask("{ viewer { name } }") })
	if err := ask(`mutation { createProject(input: {namespace: "a", name: "b", spec: {cloudCredentialsRef: {secretName: "s", cloudName: "c"}, resource: {}}}) { project { id } } }`); err != nil {
		t.Error(err)
	}
	gateways[0].stop()
	redistest.Await(t, "the other gateway answers", func() error {
		return ask(`{ project(namespace: "a", name: "b") { id } }`)
	})
}

// composeSecrets makes the secrets of the compose file, and returns their folder.
func composeSecrets(t *testing.T) string {
	t.Helper()
	secrets := t.TempDir()
	if out, err := exec.Command("sh", "../deploy/compose/secrets.sh", secrets).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return secrets
}

// composeToken adds a token of administrators to those of the compose file.
func composeToken(t *testing.T, secrets, name string) string {
	t.Helper()
	if out, err := runLine(t, "sluice token create "+name+" --group ops --tokens tokens > "+name, secrets); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	text, err := os.ReadFile(filepath.Join(secrets, name))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

// composeSettings returns the settings of a gateway of the compose file, without its store.
func composeSettings(t *testing.T, secrets string) []string {
	t.Helper()
	issuers, err := os.ReadFile("../deploy/compose/oidc.yaml")
	if err != nil {
		t.Fatal(err)
	}
	dir := folder(t, map[string]string{"oidc.yaml": strings.ReplaceAll(string(issuers), "/secrets", secrets)})
	return []string{
		"--config", "../deploy/compose/gateway.yaml", "--oidc", filepath.Join(dir, "oidc.yaml"),
		"--tokens", filepath.Join(secrets, "tokens"), "--admin-group", "token:ops",
	}
}

// behind returns a client that trusts a CA alone, and reaches every host at a port of this machine.
func behind(t *testing.T, ca, port string) *http.Client {
	t.Helper()
	text, err := os.ReadFile(ca)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		t.Fatalf("%s holds no certificate", ca)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = &tls.Config{RootCAs: pool}
	dialer := &net.Dialer{}
	transport.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return dialer.DialContext(ctx, network, net.JoinHostPort("127.0.0.1", port))
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}
