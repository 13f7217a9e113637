package e2e_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicegw/sluice/internal/redistest"
)

// examples are the programs of that folder, built once for all tests.
var examples = sync.OnceValues(func() (string, error) {
	path, err := binary()
	if err != nil {
		return "", err
	}
	dir := filepath.Dir(path) // which is removed at the end
	if out, err := exec.Command("go", "build", "-o", dir, "../examples/cloud", "../examples/controller").CombinedOutput(); err != nil {
		return "", fmt.Errorf("build: %w\n%s", err, out)
	}
	return dir, nil
})

// program is a process that is killed and started again, with the same arguments.
type program struct {
	t    *testing.T
	path string
	args []string
	log  *lockedBuffer // what the last process said

	cmd    *exec.Cmd
	exited chan error
}

func example(t *testing.T, name string, args ...string) *program {
	t.Helper()
	dir, err := examples()
	if err != nil {
		t.Fatal(err)
	}
	return launch(t, filepath.Join(dir, name), args...)
}

// launch starts any program.
func launch(t *testing.T, path string, args ...string) *program {
	t.Helper()
	p := &program{t: t, path: path, args: args}
	p.start()
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			lines := strings.Split(p.log.String(), "\n")
			t.Logf("the last lines of %s:\n%s", filepath.Base(path), strings.Join(lines[max(0, len(lines)-20):], "\n"))
		}
	})
	return p
}

func (p *program) start() {
	p.t.Helper()
	p.log, p.exited = &lockedBuffer{grown: make(chan struct{})}, make(chan error, 1)
	cmd, exited := exec.Command(p.path, p.args...), p.exited
	cmd.Stdout, cmd.Stderr = p.log, p.log
	if err := cmd.Start(); err != nil {
		p.t.Error(err)
	}
	go func() { exited <- cmd.Wait() }()
	p.cmd = cmd
}

// kill ends the process as a crash would, and waits for its end.
func (p *program) kill() {
	_ = p.cmd.Process.Kill()
	<-p.exited
	p.exited <- nil
}

// freeAddress is one on which nobody listens now.
func freeAddress(t *testing.T) string { return net.JoinHostPort("127.0.0.1", freePort(t)) }

// freePort is a port of this machine on which nobody listens.
func freePort(t *testing.T) string {
	t.Helper()
	port, err := redistest.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	return strconv.Itoa(port)
}

// cloudObject is what the simulated cloud shows.
type cloudObject struct {
	ID, Kind, Owner, State string
	Uses                   []string
	Properties             map[string]any
}

// cloudToken is what the cloud wants to see in each request.
const cloudToken = "token-of-the-cloud"

// simulatedCloud is the process, and a client of it.
type simulatedCloud struct {
	*program
	address string
}

func startCloud(t *testing.T, args ...string) *simulatedCloud {
	t.Helper()
	address := freeAddress(t)
	c := &simulatedCloud{address: "http://" + address}
	c.program = example(t, "cloud", append([]string{"--token", cloudToken, "--listen", address, "--state", filepath.Join(t.TempDir(), "cloud.jsonl")}, args...)...)
	return c
}

// do asks the cloud, again and again while it does not answer. What is made is asked of a
// cloud without faults, so that it is made once.
func (c *simulatedCloud) do(method, path string, in, out any) error {
	raw, err := json.Marshal(in)
	if err != nil {
		return err
	}
	late := time.Now().Add(patience)
	for {
		req, err := http.NewRequest(method, c.address+path, bytes.NewReader(raw))
		if err != nil {
			return err
		}
		req.Header.Set("Authorization", "Bearer "+cloudToken)
		res, err := http.DefaultClient.Do(req)
		if err == nil {
			var body []byte
			body, err = io.ReadAll(res.Body)
			_ = res.Body.Close()
			switch {
			case err != nil:
			case res.StatusCode == http.StatusOK:
				return json.Unmarshal(body, out)
			case res.StatusCode == http.StatusServiceUnavailable:
				err = fmt.Errorf("%s", body)
			default:
				return fmt.Errorf("%s %s: %s %s", method, path, res.Status, body)
			}
		}
		if time.Now().After(late) {
			return err
		}
		<-time.After(5 * time.Millisecond)
	}
}

func (c *simulatedCloud) all() (out []cloudObject, err error) {
	return out, c.do(http.MethodGet, "/v1/objects", nil, &out)
}

// make makes an object that no controller owns, and returns its id.
func (c *simulatedCloud) make(kind string, properties map[string]any) string {
	c.t.Helper()
	var out cloudObject
	if err := c.do(http.MethodPost, "/v1/"+kind, map[string]any{"properties": properties}, &out); err != nil {
		c.t.Fatal(err)
	}
	return out.ID
}

// of are the objects that are there for a resource.
func (c *simulatedCloud) of(uid string) (out []cloudObject) {
	c.t.Helper()
	all, err := c.all()
	if err != nil {
		c.t.Fatal(err)
	}
	for _, o := range all {
		if o.Owner == uid {
			out = append(out, o)
		}
	}
	return out
}
