package e2e_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/sluicegw/sluice/backend/service/owner/standard/standardtest"
)

// fooApps is a kind of the gateway whose resources need Foos of the service.
const fooApps = `type App @resource(plural: "apps", group: "example.org", version: "v1", scope: GLOBAL) {
  spec: AppSpec!
}

type AppSpec {
  fooRef: String! @ref(kind: "Foo", guarded: true, inverse: "apps")
}
`

// serveFoos serves the service of RFD 153, which knows nothing of the gateway, and writes its descriptors into a folder.
func serveFoos(t *testing.T, dir string) (*standardtest.Server, string) {
	t.Helper()
	raw := standardtest.Compile(t, nil, standardtest.FooFile)
	foos, handler := standardtest.New(t, standardtest.Config{
		Descriptors: raw,
		Services:    []string{"teleport.foo.v1.FooService"},
		Message:     "teleport.foo.v1.Foo",
		Name:        "metadata.name",
		Tag:         "metadata.revision",
		TagPresent:  true,
		Validate: func(foo protoreflect.Message) error {
			spec, baz := standardtest.Field(foo, "spec.baz")
			if spec.Get(baz).Int() > 100 {
				return connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("baz: at most 100"))
			}
			return nil
		},
	})
	server := httptest.NewUnstartedServer(handler)
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetHTTP1(true)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	t.Cleanup(server.Close)
	if err := os.WriteFile(filepath.Join(dir, "foos.binpb"), raw, 0o600); err != nil {
		t.Fatal(err)
	}
	return foos, server.URL
}

// TestGRPCServicesGuide_TheLinesRun runs the blocks of docs/grpc-services.md in a folder that has the descriptors.
func TestGRPCServicesGuide_TheLinesRun(t *testing.T) {
	t.Parallel()
	sameOnEachStore(t)
	raw, err := os.ReadFile("../docs/grpc-services.md")
	if err != nil {
		t.Fatal(err)
	}
	script := "set -e\n"
	for _, part := range strings.Split(string(raw), "```sh\n")[1:] {
		block, _, _ := strings.Cut(part, "```")
		script += block
	}
	script = strings.ReplaceAll(script, "sluice service test ", "sluice service test --patience 30s ")
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	_, service := serveFoos(t, dir)
	address := freeAddress(t)
	cmd := exec.Command("sh", "-c", script)
	cmd.Dir = dir
	cmd.Env = append(cmd.Environ(), "FOOS="+service, "SLUICE_LISTEN="+address, "SLUICE_SERVER=http://"+address,
		"PATH="+filepath.Dir(path)+":"+os.Getenv("PATH"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var out bytes.Buffer
	cmd.Stdout = &out
	cmd.Stderr = &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }()
	late := time.AfterFunc(10*time.Minute, func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	defer late.Stop()
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	for _, want := range []string{
		" 0 broken, ", "bar: here", "left out: Foo.spec.anything: values of google.protobuf.Any have no type",
		"limit of --max-length and --max-items: Foo.spec.bar: maxLength 1000",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it does not print %q:\n%s", want, &out)
		}
	}
}

// startFoos starts a gateway that serves the Foos of a service, and Apps, over GraphQL and gRPC. It compares the
// service every five seconds.
func startFoos(t *testing.T, dir, address string) *gateway {
	t.Helper()
	kinds := filepath.Join(dir, "kinds")
	if err := os.MkdirAll(kinds, 0o700); err != nil {
		t.Fatal(err)
	}
	write := func(path, text string) {
		if err := os.WriteFile(filepath.Join(dir, path), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, errOut, code := sluice(t, "", "service", "pull", "--grpc", filepath.Join(dir, "foos.binpb"), "--kind", "Foo", "--name",
		"foos", "--to", filepath.Join(kinds, "foos.graphqls"), "--mapping", filepath.Join(dir, "foos.yaml"))
	if code != 0 {
		t.Fatal(errOut)
	}
	write("kinds/apps.graphqls", fooApps)
	write("sluice.yaml", "services: {foos: {address: '"+address+"', mapping: "+filepath.Join(dir, "foos.yaml")+
		", compare-interval: 5s}}\n")
	numbers := filepath.Join(dir, "numbers.txt")
	if _, errOut, code := sluice(t, "", "proto", "print", kinds, "--numbers", numbers); code != 0 {
		t.Fatal(errOut)
	}
	return start(t, "", "--config", filepath.Join(dir, "sluice.yaml"), "--catalogue", kinds,
		"--service-listen", "127.0.0.1:0", "--field-numbers", numbers)
}

// eventually waits until something is so.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(4 * patience); !is(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it is not so in time: %s", what)
		}
	}
}

// shownFoos returns how many Foos the gateway shows.
func (g *gateway) shownFoos() int {
	g.t.Helper()
	n, _ := g.must(`{ foos(first: 0) { totalCount } }`).get("foos", "totalCount").(float64)
	return int(n)
}

func TestGRPCService_IsServedAsItIs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	foos, address := serveFoos(t, dir)
	many := 10_000
	if testing.Short() {
		many = 300
	}
	for i := range many {
		foos.Put(fmt.Sprintf("foo-%05d", i), func(foo protoreflect.Message) {
			standardtest.SetText(foo, "spec.bar", fmt.Sprint("bar-", i%10))
		})
	}
	g := startFoos(t, dir, address)
	eventually(t, "all Foos are mirrored", func() bool { return g.shownFoos() == many })

	created := g.must(`mutation { createFoo(input: {name: "a", spec: {bar: "x", baz: 7}}) {
		foo { metadata { revision } spec { bar baz qux } status { attempts } } } }`)
	if n, _ := created.get("createFoo", "foo", "spec", "baz").(float64); n != 7 || foos.Show("a") == nil {
		t.Fatalf("%+v", created)
	}
	revision, _ := created.get("createFoo", "foo", "metadata", "revision").(string)
	if out, errOut, code := g.cli("", "get", "foo", "a", "-o", "yaml"); code != 0 || !strings.Contains(out, "bar: x") {
		t.Fatalf("%d %s %s", code, out, errOut)
	}
	foos.Put("a", func(foo protoreflect.Message) { standardtest.SetText(foo, "spec.bar", "by another") })
	const patch = `mutation($revision: String!) { patchFoo(input: {name: "a", expectedRevision: $revision, spec: {baz: 8}}) {
		foo { metadata { revision } spec { bar baz } } } }`
	if a := g.post(patch, map[string]any{"revision": revision}); a.codes() != "CONFLICT" {
		t.Fatalf("a change of an older revision: %+v", a)
	}
	shown := g.must(`{ foo(name: "a") { spec { bar } metadata { revision } } }`)
	revision, _ = shown.get("foo", "metadata", "revision").(string)
	if bar := shown.get("foo", "spec", "bar"); bar != "by another" {
		t.Errorf("after a conflict %v is shown", bar)
	}
	if a := g.post(patch, map[string]any{"revision": revision}); a.codes() != "" {
		t.Errorf("a change of the present revision: %+v", a)
	}
	refused := g.post(`mutation { patchFoo(input: {name: "a", expectedRevision: "`+revision+`", spec: {baz: 101}}) { foo { id } } }`, nil)
	if refused.codes() == "" {
		t.Errorf("what the service refuses: %+v", refused)
	}
	if a := g.post(`mutation { createFoo(input: {name: "a", spec: {}}) { foo { id } } }`, nil); a.codes() != "ALREADY_EXISTS" {
		t.Errorf("a second create: %+v", a)
	}

	g.must(`mutation { createApp(input: {name: "shop", spec: {fooRef: "a"}}) { app { id } } }`)
	if state := g.must(`mutation { deleteFoo(input: {name: "a"}) { state } }`).get("deleteFoo", "state"); state != "PENDING" {
		t.Errorf("the delete of a Foo that an App needs is %v", state)
	}
	if foos.Show("a") == nil {
		t.Error("the service was asked to delete it")
	}
	g.must(`mutation { deleteApp(input: {name: "shop"}) { state } }`)
	eventually(t, "the Foo is deleted at the service", func() bool { return foos.Show("a") == nil })
	eventually(t, "the Foo is gone at the gateway", func() bool { return g.shownFoos() == many })
	testEachWay(t, g, foos)
	testCompared(t, g, foos)
}

// fooChanges is a stream of the changes of Foos.
const fooChanges = `subscription { event: fooChanges { type foo { metadata { name } spec { bar } } } }`

// followFoos begins a stream of the changes of Foos.
func (g *gateway) followFoos() *socket {
	g.t.Helper()
	s := g.dial()
	g.t.Cleanup(s.close)
	s.subscribe("foos", fooChanges, nil)
	if got := s.nextFoo(); got != "IN_SYNC  " {
		g.t.Fatalf("the stream begins with %q", got)
	}
	return s
}

// nextFoo returns the next change of a Foo: its type, the name and the text.
func (s *socket) nextFoo() string {
	s.t.Helper()
	for {
		a := s.next("foos")
		text := func(path ...any) string {
			out, _ := a.get(append([]any{"event"}, path...)...).(string)
			return out
		}
		if text("type") != "BOOKMARK" {
			return text("type") + " " + text("foo", "metadata", "name") + " " + text("foo", "spec", "bar")
		}
	}
}

// testEachWay creates Foos over GraphQL, with the command line and over gRPC at once. One of them is contested: only one
// way creates it.
func testEachWay(t *testing.T, g *gateway, foos *standardtest.Server) {
	t.Helper()
	s := g.followFoos()
	rpc := g.grpcClient(nil)
	rpc.service = "FooService"
	const each = 5
	var created atomic.Int32
	ways := map[string]func(name string) error{
		"graphql": func(name string) error {
			const create = `mutation($name: String!) {
				createFoo(input: {name: $name, spec: {bar: "x"}}) { foo { id } } }`
			a, err := g.send(create, map[string]any{"name": name})
			if err == nil && a.codes() != "" {
				err = errors.New(a.codes())
			}
			return err
		},
		"cli": func(name string) error {
			manifest := "apiVersion: foo.teleport/v1\nkind: Foo\nmetadata: {name: " + name + "}\nspec: {bar: x}\n"
			_, errOut, code := g.cli(manifest, "create", "-f", "-")
			if code != 0 {
				return errors.New(errOut)
			}
			return nil
		},
		"grpc": func(name string) error {
			_, err := rpc.call("CreateFoo", `{"foo": {"metadata": {"name": "`+name+`"}, "spec": {"bar": "x"}}}`)
			return err
		},
	}
	var all sync.WaitGroup
	for way, create := range ways {
		all.Go(func() {
			for i := range each {
				if err := create(fmt.Sprintf("%s-%d", way, i)); err != nil {
					t.Errorf("%s: %v", way, err)
				}
			}
			if create("contested") == nil {
				created.Add(1)
			}
		})
	}
	all.Wait()
	if n := created.Load(); n != 1 {
		t.Errorf("%d have created the same Foo", n)
	}
	events := map[string]int{}
	for range each*len(ways) + 1 {
		events[s.nextFoo()]++
	}
	for way := range ways {
		for i := range each {
			name := fmt.Sprintf("%s-%d", way, i)
			if foos.Show(name) == nil || events["ADDED "+name+" x"] != 1 {
				t.Errorf("%s is missing at the service, or not told once", name)
			}
		}
	}
	if events["ADDED contested x"] != 1 {
		t.Errorf("the stream tells %v", events)
	}
	got, err := rpc.call("GetFoo", `{"name": "graphql-0"}`)
	if err != nil || !strings.Contains(got, `"bar":"x"`) {
		t.Errorf("over gRPC %s is shown: %v", got, err)
	}
}

// testCompared changes Foos without the gateway. The service has no stream of events, so the changes are found by
// comparing, and each is told once.
func testCompared(t *testing.T, g *gateway, foos *standardtest.Server) {
	t.Helper()
	s := g.followFoos()
	set := func(bar string) func(protoreflect.Message) {
		return func(foo protoreflect.Message) { standardtest.SetText(foo, "spec.bar", bar) }
	}
	for _, step := range []struct {
		change func()
		want   string
	}{
		{func() { foos.Put("by-itself", set("one")) }, "ADDED by-itself one"},
		{func() { foos.Put("by-itself", set("two")) }, "MODIFIED by-itself two"},
		{func() { foos.Remove("by-itself") }, "DELETED by-itself two"},
	} {
		step.change()
		if got := s.nextFoo(); got != step.want {
			t.Fatalf("the stream tells %q, want %q", got, step.want)
		}
	}
}
