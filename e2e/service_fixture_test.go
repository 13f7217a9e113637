package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/sluicegw/sluice/backend/service/owner/remote"
	"github.com/sluicegw/sluice/graph/client"
	"github.com/sluicegw/sluice/internal/redistest"
)

// servicePath is where the calls of a resource service are.
const servicePath = "/sluice.resource.v1.ResourceService/"

// apps are resources of the gateway itself, each of which refers to a team and keeps it.
const apps = `
type App @resource(plural: "apps", group: "example.org", version: "v1", scope: NAMESPACED) { spec: AppSpec!, status: AppStatus }
type AppSpec { teamRef: String! @ref(kind: "Team", guarded: true) }
type AppStatus { conditions: [Condition!] }
`

// teamService is the service of examples/service/python, which can be killed and started again.
type teamService struct {
	t       *testing.T
	port    int
	folder  string
	address string

	mu    sync.Mutex // guards all below
	cmd   *exec.Cmd
	ended chan struct{} // is closed when cmd has ended
}

func startTeams(t *testing.T) *teamService {
	t.Helper()
	port, err := redistest.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	s := &teamService{t: t, port: port, folder: t.TempDir(), address: fmt.Sprintf("http://127.0.0.1:%d", port)}
	t.Cleanup(s.kill)
	s.start()
	return s
}

// start runs the service and waits until it answers. If it ends, as when another process has its port for a moment, it
// is run again.
func (s *teamService) start(flags ...string) {
	s.t.Helper()
	s.run(flags)
	redistest.Await(s.t, "the service answers", func() error {
		if s.hasEnded() {
			s.run(flags)
		}
		_, err := s.ask("Describe", map[string]any{})
		return err
	})
}

// run starts the process of the service.
func (s *teamService) run(flags []string) {
	s.t.Helper()
	program, err := filepath.Abs("../examples/service/python/teams.py")
	if err != nil {
		s.t.Fatal(err)
	}
	args := append([]string{program, "--port", fmt.Sprint(s.port), "--file", filepath.Join(s.folder, "teams.db")}, flags...)
	cmd := exec.Command("python3", args...)
	if err := cmd.Start(); err != nil {
		s.t.Fatalf("the tests of resource services need Python 3.9 or newer: %v", err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cmd = cmd
	s.ended = ended
}

func (s *teamService) hasEnded() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.ended:
		return true
	default:
		return false
	}
}

// kill ends the service as a crash does, if it was started.
func (s *teamService) kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Kill()
	<-s.ended
}

// files returns what the service has stored; it must not run.
func (s *teamService) files() map[string][]byte {
	s.t.Helper()
	out := map[string][]byte{}
	found, err := filepath.Glob(filepath.Join(s.folder, "teams.db*"))
	if err != nil {
		s.t.Fatal(err)
	}
	for _, path := range found {
		raw, err := os.ReadFile(path)
		if err != nil {
			s.t.Fatal(err)
		}
		out[path] = raw
	}
	return out
}

// restore replaces what the service has stored; it must not run.
func (s *teamService) restore(files map[string][]byte) {
	s.t.Helper()
	for path := range s.files() {
		if err := os.Remove(path); err != nil {
			s.t.Fatal(err)
		}
	}
	for path, raw := range files {
		if err := os.WriteFile(path, raw, 0o600); err != nil {
			s.t.Fatal(err)
		}
	}
}

// team is a team as its service shows it.
type team struct {
	Key struct {
		Kind      string `json:"kind"`
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
	} `json:"key"`
	Tag    string            `json:"tag,omitempty"`
	UID    string            `json:"uid,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
	Spec   struct {
		Email string `json:"email"`
		Size  int    `json:"size"`
	} `json:"spec"`
}

func newTeam(namespace, name string, size int) team {
	var out team
	out.Key.Kind = "Team"
	out.Key.Namespace = namespace
	out.Key.Name = name
	out.Spec.Email = "a@example.org"
	out.Spec.Size = size
	return out
}

// serviceAnswer is what the calls of a service answer.
type serviceAnswer struct {
	Outcome   string
	Resource  *team
	Got       []struct{ Resource *team }
	Resources []team
	Next      string `json:"nextPageToken"`
}

// ask calls the service as its own team does, past every gateway.
func (s *teamService) ask(call string, request any) (a serviceAnswer, err error) {
	body, err := json.Marshal(request)
	if err != nil {
		return a, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.address+servicePath+call, bytes.NewReader(body))
	if err != nil {
		return a, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Close = true // a connection to a service that was killed would fail the next call
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return a, err
	}
	defer func() { _ = res.Body.Close() }()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		return a, err
	}
	if res.StatusCode != http.StatusOK {
		return a, fmt.Errorf("%s: %s: %s", call, res.Status, raw)
	}
	return a, json.Unmarshal(raw, &a)
}

// teams returns all that the service has, by namespace and name.
func (s *teamService) teams() (map[string]team, error) {
	out := map[string]team{}
	for token := ""; ; {
		page, err := s.ask("List", map[string]any{"kind": "Team", "pageToken": token})
		if err != nil {
			return nil, err
		}
		for _, r := range page.Resources {
			out[r.Key.Namespace+"/"+r.Key.Name] = r
		}
		token = page.Next
		if token == "" {
			return out, nil
		}
	}
}

// followTeams tells take of the changes of teams at a gateway until ctx is done. It returns when the stream is in sync,
// so that a gateway that is killed later interrupts it and it goes on. ended receives the error with which it ended.
func (g *gateway) followTeams(
	ctx context.Context, request client.ChangesRequest, take func(*client.Change),
) (ended <-chan error) {
	g.t.Helper()
	c, err := client.New(client.Config{Server: g.address})
	if err != nil {
		g.t.Fatal(err)
	}
	request.Kind, err = c.Kind(ctx, "Team")
	if err != nil {
		g.t.Fatal(err)
	}
	inSync := make(chan struct{})
	ending := make(chan error, 1)
	go func() {
		begun := sync.OnceFunc(func() { close(inSync) })
		for change, err := range c.Changes(ctx, request) {
			if err != nil {
				ending <- err
				return
			}
			take(change)
			if change.Type == "IN_SYNC" {
				begun()
			}
		}
		ending <- errors.New("the stream ended")
	}()
	select {
	case <-inSync:
	case err := <-ending:
		g.t.Fatalf("the stream ended before it was in sync: %v", err)
	case <-time.After(patience):
		g.t.Fatal("the stream is not in sync in time")
	}
	return ending
}

// teamCatalogue returns a folder with the kind Team of the service and with apps.
func teamCatalogue(t *testing.T) string {
	t.Helper()
	sdl, err := os.ReadFile("../examples/service/python/teams.graphqls")
	if err != nil {
		t.Fatal(err)
	}
	return folder(t, map[string]string{"teams.graphqls": string(sdl), "apps.graphqls": apps})
}

// servicesFile returns a configuration with the service teams at an address, which is asked by a protocol.
func servicesFile(t *testing.T, address string, protocol remote.Protocol) string {
	t.Helper()
	text := fmt.Sprintf("services:\n  teams:\n    address: %s\n    protocol: %s\n", address, protocol)
	return filepath.Join(folder(t, map[string]string{"sluice.yaml": text}), "sluice.yaml")
}

// shownTeams returns what a gateway shows of the teams, as [teamService.teams] does.
func (g *gateway) shownTeams() (map[string]team, error) {
	out := map[string]team{}
	const query = `query($after: String) { teams(first: 200, after: $after) {
		nodes { metadata { namespace name uid labels { key value } } spec { email size } }
		pageInfo { hasNextPage endCursor } } }`
	for after := any(nil); ; {
		a, err := g.send(query, map[string]any{"after": after})
		if err != nil {
			return nil, err
		}
		if len(a.Errors) > 0 {
			return nil, fmt.Errorf("%v", a.Errors)
		}
		raw, err := json.Marshal(a.get("teams"))
		if err != nil {
			return nil, err
		}
		var page struct {
			Nodes []struct {
				Metadata struct {
					Namespace, Name, UID string
					Labels               []struct{ Key, Value string }
				}
				Spec struct {
					Email string
					Size  *int
				}
			}
			PageInfo struct {
				HasNextPage bool
				EndCursor   string
			}
		}
		if err := json.Unmarshal(raw, &page); err != nil {
			return nil, err
		}
		for _, node := range page.Nodes {
			shown := newTeam(node.Metadata.Namespace, node.Metadata.Name, 0)
			shown.UID = node.Metadata.UID
			shown.Spec.Email = node.Spec.Email
			if node.Spec.Size != nil {
				shown.Spec.Size = *node.Spec.Size
			}
			for _, label := range node.Metadata.Labels {
				if shown.Labels == nil {
					shown.Labels = map[string]string{}
				}
				shown.Labels[label.Key] = label.Value
			}
			out[shown.Key.Namespace+"/"+shown.Key.Name] = shown
		}
		if !page.PageInfo.HasNextPage {
			return out, nil
		}
		after = page.PageInfo.EndCursor
	}
}

// sameTeams returns an error that names a team which two sides have differently; tags are the service's alone.
func sameTeams(a, b map[string]team) error {
	names := slices.Sorted(maps.Keys(a))
	for name := range b {
		if _, there := a[name]; !there {
			return fmt.Errorf("%s is there on one side alone", name)
		}
	}
	for _, name := range names {
		x, y := a[name], b[name]
		_, there := b[name]
		if !there || x.UID != y.UID || x.Spec != y.Spec || !maps.Equal(x.Labels, y.Labels) {
			return fmt.Errorf("%s is %+v and %+v (there: %v)", name, x, y, there)
		}
	}
	return nil
}
