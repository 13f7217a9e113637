package e2e_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestCreateAndDeleteFromTheCommandLine(t *testing.T) {
	g := start(t, "")
	if out, errOut, code := g.cli(networkManifest, "create", "-f", "-"); code != 0 || !strings.Contains(out, "Network default/net-a CREATED") {
		t.Fatalf("exit %d %s%s", code, out, errOut)
	}
	changed := strings.Replace(networkManifest, "- bar", "- baz", 1)
	if _, errOut, code := g.cli(changed, "create", "-f", "-"); code != 1 || !strings.Contains(errOut, "already exists (ALREADY_EXISTS; sluice apply replaces it") {
		t.Errorf("exit %d %s", code, errOut)
	}
	if out, _, _ := g.cli("", "get", "network", "net-a", "-o", "yaml"); !strings.Contains(out, "- bar") {
		t.Errorf("it was replaced:\n%s", out)
	}
	if _, errOut, code := g.cli("", "delete", "network", "net-a", "--revision", "1-1"); code != 1 || !strings.Contains(errOut, "was changed since you read it") {
		t.Errorf("exit %d %s", code, errOut)
	}
	out, errOut, code := g.cli("", "delete", "networks", "net-a", "nobody")
	if code != 3 || !strings.Contains(out, "Network net-a DELETED") || !strings.Contains(errOut, `Network "nobody" in namespace "default" does not exist`) {
		t.Errorf("exit %d %s%s", code, out, errOut)
	}
}

// editor is a program that changes the file it is given by a sed expression.
func editor(t *testing.T, script string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "editor")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SLUICE_EDITOR", path)
}

func TestEditChangesKeepsAndRefuses(t *testing.T) {
	g := start(t, "")
	g.cli(networkManifest, "apply", "-f", "-")
	editor(t, `sed -i 's/- bar/- baz/' "$1"`)
	if out, errOut, code := g.cli("", "edit", "network", "net-a"); code != 0 || !strings.Contains(out, "UPDATED") {
		t.Errorf("exit %d %s%s", code, out, errOut)
	}
	if out, _, code := g.cli("", "edit", "network", "net-a"); code != 0 || !strings.Contains(out, "no changes made") {
		t.Errorf("exit %d %s", code, out)
	}
	editor(t, `sed -i 's/name: net-a/name: net-b/' "$1"`)
	if _, errOut, code := g.cli("", "edit", "network", "net-a"); code != 1 || !strings.Contains(errOut, "cannot be changed") || !strings.Contains(errOut, "kept in") {
		t.Errorf("exit %d %s", code, errOut)
	}
	// Another user is faster: the edited text is kept and both sides are shown.
	path, _ := binary()
	editor(t, fmt.Sprintf(`sed 's/- baz/- theirs/' "$1" | %s apply --server %s -f - >/dev/null; sed -i 's/- baz/- mine/' "$1"`, path, g.address))
	_, errOut, code := g.cli("", "edit", "network", "net-a")
	if code != 1 || !strings.Contains(errOut, "+    - theirs") || !strings.Contains(errOut, "+    - mine") {
		t.Errorf("exit %d\n%s", code, errOut)
	}
	_, kept, _ := strings.Cut(strings.TrimSpace(errOut), "your text is kept in ")
	if text, err := os.ReadFile(kept); err != nil || !strings.Contains(string(text), "- mine") {
		t.Errorf("%q: %s %v", kept, text, err)
	}
	_ = os.Remove(kept)
}

func TestWhatIsRemovedInAnEditIsCleared(t *testing.T) {
	g := start(t, "")
	manifest := strings.Replace(networkManifest, "  name: net-a\n", "  name: net-a\n  description: soon gone\n  annotations: {keep: me}\n", 1)
	if out, errOut, code := g.cli(manifest, "apply", "-f", "-"); code != 0 {
		t.Fatalf("exit %d %s%s", code, out, errOut)
	}
	editor(t, `sed -i '/description: soon gone/d' "$1"`)
	if out, errOut, code := g.cli("", "edit", "network", "net-a"); code != 0 || !strings.Contains(out, "UPDATED") {
		t.Errorf("exit %d %s%s", code, out, errOut)
	}
	out, _, _ := g.cli("", "get", "network", "net-a", "-o", "yaml")
	if strings.Contains(out, "soon gone") || !strings.Contains(out, "keep: me") {
		t.Errorf("after the edit:\n%s", out)
	}
}

func TestWatchSurvivesARestartOfTheGateway(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	g := start(t, data)
	g.create("before", nil)
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "watch", "networks", "-o", "json", "--server", g.address)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	events := make(chan string, 100)
	go func() {
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			var e struct {
				Type     string
				Resource struct{ Metadata struct{ Name string } }
			}
			_ = json.Unmarshal(lines.Bytes(), &e)
			events <- strings.TrimSpace(e.Type + " " + e.Resource.Metadata.Name)
		}
		close(events)
	}()
	want := func(expected string) {
		t.Helper()
		select {
		case e := <-events:
			if e != expected {
				t.Fatalf("event %q, want %q", e, expected)
			}
		case <-time.After(patience):
			t.Fatalf("no event, want %q", expected)
		}
	}
	want("RESET")
	want("SNAPSHOT before")
	want("IN_SYNC")
	g.create("one", nil)
	want("ADDED one")
	g.kill()
	g = start(t, data, "--listen", strings.TrimPrefix(g.address, "http://"))
	g.create("two", nil)
	for e := range events {
		if e == "IN_SYNC" {
			continue
		}
		if e != "ADDED two" {
			t.Fatalf("event %q after the restart, want the one that was missed, once", e)
		}
		break
	}
	g.create("three", nil)
	for e := range events {
		if e != "IN_SYNC" {
			if e != "ADDED three" {
				t.Fatalf("event %q", e)
			}
			break
		}
	}
}

func TestWatchSaysWhenItHasToStartOver(t *testing.T) {
	t.Parallel()
	g := start(t, "", "--retain-entries", "5")
	old := g.position()
	for i := range 10 {
		g.create(fmt.Sprintf("n%d", i), nil)
	}
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "watch", "networks", "--after", old, "--server", g.address)
	errOut, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	if line, err := bufio.NewReader(errOut).ReadString('\n'); err != nil || !strings.Contains(line, "starting over from the present state") {
		t.Errorf("%q %v", line, err)
	}
}

func TestGetOfAllNamespacesAndByLabel(t *testing.T) {
	t.Parallel()
	g := start(t, "")
	for _, ns := range []string{"a", "b"} {
		g.cli(networkManifest, "apply", "-n", ns, "-f", "-")
	}
	if out, _, _ := g.cli("", "get", "networks", "-A"); strings.Count(out, "net-a") != 2 {
		t.Errorf("%s", out)
	}
	g.cli(strings.Replace(networkManifest, "  name: net-a", "  name: net-l\n  labels: {team: web}", 1), "apply", "-f", "-")
	if out, errOut, _ := g.cli("", "get", "networks", "-l", "team=web", "-o", "name"); out != "network/net-l\n" {
		t.Errorf("%s%s", out, errOut)
	}
	for selector, found := range map[string]bool{
		"team": true, "!team": false, "!other": true, "team==web": true, "team!=db": true, "team != web": false, "team in (db, web)": true, "team in (db)": false,
		"team notin (db,x)": true, "team notin (web)": false, "team=web,!other": true, "team in (web,db),other": false, "other!=x": true,
	} {
		if out, errOut, code := g.cli("", "get", "networks", "-l", selector, "-o", "name"); code != 0 || strings.Contains(out, "net-l") != found {
			t.Errorf("%s: exit %d %q %s", selector, code, out, errOut)
		}
	}
	if out, _, _ := g.cli("", "get", "networks", "-l", "team=db"); strings.Contains(out, "net-l") {
		t.Errorf("%s", out)
	}
	if out, _, code := sluice(t, "", "completion", "bash"); code != 0 || !strings.Contains(out, "sluice") {
		t.Errorf("completion: exit %d", code)
	}
}

func TestPatchUpsertAndStatusByHTTP(t *testing.T) {
	t.Parallel()
	g := start(t, "")
	r := g.create("net-a", map[string]any{"mtu": 1400, "tags": []string{"x"}}).get("createNetwork", "network", "metadata", "revision").(string)
	patch := func(revision string, spec map[string]any) answer {
		return g.post(`mutation($input: PatchNetworkInput!) { patchNetwork(input: $input) { network { metadata { revision labels { key } } spec { resource { mtu tags description } } } } }`,
			map[string]any{"input": map[string]any{"name": "net-a", "expectedRevision": revision, "spec": spec}})
	}
	a := patch(r, map[string]any{"resource": map[string]any{"mtu": nil, "description": "d"}})
	if a.codes() != "" || a.get("patchNetwork", "network", "spec", "resource", "mtu") != nil || a.get("patchNetwork", "network", "spec", "resource", "description") != "d" || len(a.get("patchNetwork", "network", "spec", "resource", "tags").([]any)) != 1 {
		t.Fatalf("clear by null: %+v", a)
	}
	r = a.get("patchNetwork", "network", "metadata", "revision").(string)
	if a = patch(r, map[string]any{"cloudCredentialsRef": nil}); a.codes() != "VALIDATION_FAILED" || a.Errors[0].Extensions["field"] != "input.spec.cloudCredentialsRef" {
		t.Errorf("null for a required field: %+v", a)
	}
	if a = patch(r, map[string]any{"resource": nil}); a.codes() != "VALIDATION_FAILED" || a.Errors[0].Extensions["rule"] != "rule" {
		t.Errorf("a patch that breaks a cross-field rule: %+v", a)
	}
	for i, created := range []bool{true, false} {
		a := g.post(`mutation($input: UpsertNetworkInput!) { upsertNetwork(input: $input) { created network { metadata { generation } } } }`,
			map[string]any{"input": map[string]any{"name": "net-u", "spec": spec(map[string]any{"mtu": 1400 + i})}})
		if a.get("upsertNetwork", "created") != created {
			t.Errorf("upsert %d: %+v", i, a)
		}
	}
	status := g.post(`mutation($input: UpdateNetworkStatusInput!) { updateNetworkStatus(input: $input) { network { metadata { generation } status { cloudId resource { revisionNumber } conditions { type status } } } } }`,
		map[string]any{"input": map[string]any{"name": "net-a", "expectedRevision": r, "status": map[string]any{
			"cloudId": "x", "resource": map[string]any{"revisionNumber": 9007199254740991}, "conditions": []any{map[string]any{"type": "Available", "status": "True"}},
		}}})
	if status.codes() != "" || status.get("updateNetworkStatus", "network", "status", "resource", "revisionNumber") != 9007199254740991.0 {
		t.Errorf("status: %+v", status)
	}
	if a = patch(r, map[string]any{"resource": map[string]any{"mtu": 1500}}); a.codes() != "" {
		t.Errorf("a status write in between is no conflict: %+v", a)
	}
}

func TestFiltersOrdersReferencesAndInversesByHTTP(t *testing.T) {
	t.Parallel()
	g := start(t, "")
	for i, mtu := range []any{1400, 1500, nil} {
		resource := map[string]any{"external": i == 0}
		if mtu != nil {
			resource["mtu"] = mtu
		}
		if a := g.create(fmt.Sprintf("net-%d", i), resource); a.codes() != "" {
			t.Fatalf("%+v", a)
		}
	}
	for i, network := range []string{"net-0", "net-0", "net-1", "nowhere"} {
		a := g.post(`mutation($input: CreateSubnetInput!) { createSubnet(input: $input) { subnet { id } } }`, map[string]any{"input": map[string]any{
			"name": fmt.Sprintf("subnet-%d", i), "spec": spec(map[string]any{"networkRef": network, "ipVersion": 4, "cidr": fmt.Sprintf("10.%d.0.0/16", i)}),
		}})
		if a.codes() != "" {
			t.Fatalf("%+v", a)
		}
	}
	a := g.post(`{
		sorted: networks(orderBy: [{field: SPEC_RESOURCE_MTU, direction: DESC}]) { nodes { metadata { name } } }
		big: networks(filter: {spec: {resource: {mtu: {gte: 1500}}}}) { totalCount nodes { metadata { name } } }
		inverse: network(name: "net-0") { subnets(first: 1) { totalCount nodes { metadata { name } network { metadata { name } } } pageInfo { hasNextPage } } }
		missing: subnet(name: "subnet-3") { network { id } }
		kinds { name references { path kind } }
	}`, nil)
	if a.codes() != "" {
		t.Fatalf("%+v", a)
	}
	for _, c := range []struct {
		got  any
		want string
	}{
		{a.get("sorted", "nodes"), "[map[metadata:map[name:net-1]] map[metadata:map[name:net-0]] map[metadata:map[name:net-2]]]"},
		{a.get("big"), "map[nodes:[map[metadata:map[name:net-1]]] totalCount:1]"},
		{a.get("inverse", "subnets"), "map[nodes:[map[metadata:map[name:subnet-0] network:map[metadata:map[name:net-0]]]] pageInfo:map[hasNextPage:true] totalCount:2]"},
		{a.get("missing"), "map[network:<nil>]"},
	} {
		if got := fmt.Sprint(c.got); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}
