//go:build clients

package e2e_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/sluicegw/sluice/graph/client"
)

// TestClientsGuideOfControllers runs the two small controllers that docs/controllers.md names.
func TestClientsGuideOfControllers(t *testing.T) {
	t.Run("in Go", func(t *testing.T) {
		program := filepath.Join(t.TempDir(), "folder")
		if out, err := exec.Command("go", "build", "-o", program, "../examples/folder").CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		testFolderController(t, program)
		testFolderControllerOfNetworksAlone(t, program)
	})
	t.Run("in JavaScript", func(t *testing.T) {
		testFolderController(t, "node", "../examples/folder/folder.mjs")
		testFolderControllerOfNetworksAlone(t, "node", "../examples/folder/folder.mjs")
	})
}

// testFolderController has one of the controllers keep a file for each network, while
// it and the gateway are killed.
func testFolderController(t *testing.T, command string, args ...string) {
	data, address, folder := t.TempDir(), freeAddress(t), t.TempDir()
	g := start(t, data, "--listen", address)
	t.Setenv("SLUICE_SERVER", g.address)
	h := &controlled{T: t}
	var err error
	if h.client, err = client.New(client.Config{Server: g.address}); err != nil {
		t.Fatal(err)
	}
	h.credentials()
	h.controller = launch(t, command, append(args, folder)...)
	h.until("the controller has networks", func() error {
		if h.kinds, err = h.client.Kinds(t.Context()); err == nil && !h.kind("Network").Controlled {
			err = fmt.Errorf("nobody has them")
		}
		return err
	})
	files := func(want int) {
		t.Helper()
		h.until("the files are right", func() error {
			found, err := filepath.Glob(filepath.Join(folder, "*.json"))
			if err == nil && len(found) != want {
				err = fmt.Errorf("there are %d, not %d", len(found), want)
			}
			return err
		})
	}
	available := func(name string) {
		t.Helper()
		h.until(name+" is available", func() error {
			r := h.get("Network", name)
			if a := r.Condition("Available"); a.Status != "True" || a.Message != "The file is there" || a.ObservedGeneration != r.Metadata.Generation || statusOf(r).ID != r.Metadata.UID {
				return fmt.Errorf("%s", r.Status)
			}
			if _, err := os.Stat(filepath.Join(folder, r.Metadata.UID+".json")); err != nil {
				return err
			}
			return nil
		})
	}
	h.spec("Network", "waits", `resource: {projectRef: project}`)
	h.spec("Network", "free", `resource: {}`)
	available("free")
	if got := h.get("Network", "waits").Condition("Progressing").Message; got != "Waiting for Project/project to be created" {
		t.Errorf("waits says %q", got)
	}
	files(1)
	h.spec("Project", "project", `resource: {}`)
	available("waits")

	g.kill()
	start(t, data, "--listen", address)
	h.spec("Network", "after", `resource: {}`)
	available("after")

	h.controller.kill()
	h.delete("Network", "free")
	h.spec("Network", "after", `resource: {mtu: 1400}`)
	h.controller.start()
	h.gone("Network", "free")
	available("after")
	files(2)
	h.delete("Network", "after")
	h.delete("Network", "waits")
	h.gone("Network", "waits")
	h.gone("Network", "after")
	files(0)
}

// testFolderControllerOfNetworksAlone has a controller that may see only networks keep the file of a deleted network
// while a subnet, which is hidden from it, relies on the network.
func testFolderControllerOfNetworksAlone(t *testing.T, command string, args ...string) {
	g, folder := startGuarded(t), t.TempDir()
	g.may(rule{Kinds: []string{"Network"}, Verbs: []string{"GET", "LIST", "WATCH", "STATUS", "FINALIZE", "CONTROL"}})
	t.Setenv("SLUICE_SERVER", g.address)
	h := &controlled{T: t}
	var err error
	if h.client, err = client.New(client.Config{Server: g.address, Token: client.FixedToken(g.adminToken)}); err != nil {
		t.Fatal(err)
	}
	if h.kinds, err = h.client.Kinds(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.credentials()
	h.spec("Network", "net", `resource: {}`)
	h.spec("Subnet", "subnet", `resource: {networkRef: net, ipVersion: 4, cidr: 10.0.0.0/24}`)
	t.Setenv("SLUICE_TOKEN", g.userToken)
	launch(t, command, append(args, folder)...)
	available := func(name string) {
		t.Helper()
		h.until(name+" is available", func() error {
			if a := h.get("Network", name).Condition("Available"); a.Message != "The file is there" {
				return fmt.Errorf("%+v", a)
			}
			return nil
		})
	}
	available("net")
	h.until("the subnet relies on the network", func() error {
		got, err := h.client.Delete(t.Context(), client.DeleteRequest{Kind: h.kind("Network"), Name: "net", DryRun: true})
		if err == nil && len(got.BlockedBy.Nodes) == 0 {
			err = fmt.Errorf("it is %s", got.State)
		}
		return err
	})
	h.delete("Network", "net")
	h.spec("Network", "later", `resource: {}`)
	available("later") // so the controller has seen the deletion before
	if files, _ := filepath.Glob(filepath.Join(folder, "*.json")); len(files) != 2 {
		t.Errorf("it has the files %q", files)
	}
	h.delete("Subnet", "subnet")
	h.gone("Network", "net")
	if files, _ := filepath.Glob(filepath.Join(folder, "*.json")); len(files) != 1 {
		t.Errorf("it has the files %q", files)
	}
}
