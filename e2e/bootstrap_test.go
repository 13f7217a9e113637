package e2e_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/internal/redistest"
)

// manifestFolder writes manifests with secrets and references, those that refer before those that are referred to.
func manifestFolder(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	subnet := `apiVersion: openstack.k-orc.cloud/v1alpha1
kind: Subnet
metadata: {name: sub}
spec:
  cloudCredentialsRef: {secretName: s, cloudName: c}
  resource: {networkRef: net-a, ipVersion: 4, cidr: 10.0.0.0/24}
`
	secret := "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {clouds.yaml: planted-secret}\n"
	writeFile(t, filepath.Join(folder, "a.yaml"), subnet+"---\n"+network("net-a", "x", 1500))
	writeFile(t, filepath.Join(folder, "b.yml"), secret)
	return folder
}

// TestBootstrap_WithManifests fills Redis with manifests by two gateways at once, and an embedded store.
func TestBootstrap_WithManifests(t *testing.T) {
	t.Parallel()
	sameOnEachStore(t)
	folder := manifestFolder(t)
	redis := redistest.Start(t)
	flags := []string{"--encryption-keys-file", keysFile(t, "a"), "--bootstrap", folder}
	shared := append([]string{"--redis", redis.URL()}, flags...)
	var second *gateway
	starting := make(chan error, 1)
	go func() {
		var err error
		second, err = tryStart(t, "", shared...)
		starting <- err
	}()
	first, err := tryStart(t, "", shared...)
	if err := errors.Join(err, <-starting); err != nil {
		t.Fatal(err)
	}
	embedded := start(t, "", append([]string{"--data", t.TempDir()}, flags...)...)
	for _, g := range []*gateway{first, second, embedded} {
		out, errOut, code := g.cli("", "get", "subnet", "sub", "-o", "yaml")
		if code != 0 || strings.Contains(out, "to be created") {
			t.Errorf("exit %d: it waits for a manifest that comes later: %s%s", code, out, errOut)
		}
		out, errOut, code = g.cli("", "reveal", "secret", "s")
		if code != 0 || !strings.Contains(out, "planted-secret") {
			t.Errorf("exit %d %s%s", code, out, errOut)
		}
		out, errOut, code = g.cli("", "apply", "-R", "-f", folder)
		if code != 0 || strings.Count(out, "UNCHANGED") != 3 {
			t.Errorf("exit %d %s%s", code, out, errOut)
		}
	}
	for key, line := range exportedLines(t, exported(t, first)) {
		if strings.Contains(line, "planted-secret") {
			t.Errorf("%s is stored in plain form", key)
		}
	}
	if _, errOut, code := first.cli("", "delete", "subnet", "sub"); code != 0 {
		t.Fatal(errOut)
	}
	first.stop()
	again := start(t, "", shared...)
	if _, _, code := again.cli("", "get", "subnet", "sub"); code != 3 {
		t.Errorf("what was deleted is back: exit %d", code)
	}
}

// TestBootstrap_ARefusedFileLeavesRedisUntouched tries an export that is cut off, and manifests of which one is refused.
func TestBootstrap_ARefusedFileLeavesRedisUntouched(t *testing.T) {
	t.Parallel()
	sameOnEachStore(t)
	folder := manifestFolder(t)
	writeFile(t, filepath.Join(folder, "c.json"), `{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "S S"}}`)
	redis := redistest.Start(t)
	g := start(t, "", "--data", t.TempDir(), "--bootstrap", manifestFolder(t))
	raw, err := os.ReadFile(exported(t, g, "--no-secrets"))
	if err != nil {
		t.Fatal(err)
	}
	cut := filepath.Join(t.TempDir(), "state.gz")
	writeFile(t, cut, string(raw[:len(raw)-9]))
	for file, says := range map[string]string{
		folder: filepath.Join(folder, "c.json") + ":1: Secret S S: metadata.name",
		cut:    "bootstrap: " + cut + ": it is cut off",
	} {
		out, errOut, code := sluice(t, "", "serve", "--redis", redis.URL(), "--listen", "127.0.0.1:0", "--bootstrap", file)
		if code == 0 || !strings.Contains(out+errOut, says) {
			t.Errorf("exit %d, want %q in\n%s%s", code, says, out, errOut)
		}
		if keys := redis.Do("KEYS", "*"); fmt.Sprint(keys) != "[]" {
			t.Errorf("%v is left", keys)
		}
	}
}

// TestBootstrap_ASharedStoreThatIsServed: while another gateway may serve a store without resources, nothing fills it. It
// is filled once all gateways were stopped and Redis was emptied.
func TestBootstrap_ASharedStoreThatIsServed(t *testing.T) {
	t.Parallel()
	sameOnEachStore(t)
	folder := manifestFolder(t)
	redis := redistest.Start(t)
	serving := start(t, "", "--redis", redis.URL())
	out, errOut, code := sluice(t, "", "serve", "--redis", redis.URL(), "--listen", "127.0.0.1:0", "--bootstrap", folder)
	if code != 1 || !strings.Contains(out+errOut, "but gateways have served it") {
		t.Errorf("exit %d %s%s", code, out, errOut)
	}
	if _, errOut, code := serving.cli(network("net-b", "x", 1500), "apply", "-f", "-"); code != 0 {
		t.Errorf("the gateway does not serve on: %s", errOut)
	}
	serving.stop()
	redis.Do("FLUSHALL")
	filling := start(t, "", "--redis", redis.URL(), "--bootstrap", folder)
	if _, errOut, code := filling.cli("", "get", "network", "net-a"); code != 0 {
		t.Error(errOut)
	}
	if _, _, code := filling.cli("", "get", "network", "net-b"); code != 3 {
		t.Errorf("what was removed is there: exit %d", code)
	}
}
