package e2e_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// issuer is a running OpenID provider, see e2e/provider.
type issuer struct {
	t *testing.T
	// URL is the issuer's, Control that of its second port.
	URL, Control string

	args []string
	cmd  *exec.Cmd
	log  *lockedBuffer
}

// startIssuer runs a provider until the test ends. Its keys outlive a restart.
func startIssuer(t *testing.T, args ...string) *issuer {
	t.Helper()
	i := &issuer{t: t, args: append([]string{"-keys", filepath.Join(t.TempDir(), "keys.json")}, args...)}
	i.run("127.0.0.1:0")
	return i
}

func (i *issuer) run(listen string) {
	i.t.Helper()
	path, err := providerBinary()
	if err != nil {
		i.t.Fatal(err)
	}
	i.log = &lockedBuffer{grown: make(chan struct{})}
	cmd := exec.Command(path, append([]string{"-listen", listen}, i.args...)...)
	cmd.Stderr = i.log
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		i.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		i.t.Fatal(err)
	}
	i.cmd = cmd
	i.t.Cleanup(func() { endProcess(cmd) })
	late := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	line, err := bufio.NewReader(stdout).ReadBytes('\n')
	if err != nil {
		i.t.Fatalf("the provider did not start: %v\n%s", err, i.log)
	}
	if err := json.Unmarshal(line, i); err != nil {
		i.t.Fatal(err)
	}
}

// endProcess kills a process once, and waits for it.
func endProcess(cmd *exec.Cmd) {
	if cmd.ProcessState == nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
}

// down ends the process; its port refuses connections.
func (i *issuer) down() { endProcess(i.cmd) }

// up starts it again on the same port.
func (i *issuer) up() {
	i.t.Helper()
	at, err := url.Parse(i.URL)
	if err != nil {
		i.t.Fatal(err)
	}
	i.run(at.Host)
}

// order says which token a test needs; the provider's own tests name the fields.
type order struct {
	User     string         `json:"user"`
	Audience string         `json:"audience"`
	Lifetime string         `json:"lifetime,omitempty"`
	Claims   map[string]any `json:"claims,omitempty"`
}

// mint returns a signed token. The audience is sluice by default.
func (i *issuer) mint(o order) string {
	i.t.Helper()
	if o.Audience == "" {
		o.Audience = "sluice"
	}
	body, err := json.Marshal(o)
	if err != nil {
		i.t.Fatal(err)
	}
	return i.control("/mint", body)
}

// token is a token of a user that is good for an hour.
func (i *issuer) token(user string) string {
	i.t.Helper()
	return i.mint(order{User: user})
}

func (i *issuer) control(path string, body []byte) string {
	i.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, i.Control+path, bytes.NewReader(body))
	if err != nil {
		i.t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		i.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	raw, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		i.t.Fatalf("%s: %d %s %v", path, res.StatusCode, raw, err)
	}
	return string(raw)
}

// rotate makes a new key sign; the old ones go unless keep is true.
func (i *issuer) rotate(keep bool, alg string) {
	i.t.Helper()
	i.control(fmt.Sprintf("/rotate?keep=%t&alg=%s", keep, alg), nil)
}

// clock sets how far the provider's clock is ahead.
func (i *issuer) clock(ahead time.Duration) {
	i.t.Helper()
	i.control("/set?clock="+ahead.String(), nil)
}

// keyFetches is how often the keys were asked for since the provider started.
func (i *issuer) keyFetches() int {
	i.t.Helper()
	var count struct{ Keys int }
	i.get(i.Control+"/fetches", &count)
	return count.Keys
}

func (i *issuer) get(address string, into any) {
	i.t.Helper()
	res, err := http.Get(address)
	if err != nil {
		i.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	if err := json.NewDecoder(res.Body).Decode(into); err != nil {
		i.t.Fatal(err)
	}
}
