package e2e_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestACatalogueIsAppliedOverTheNetworkByWhoMay: by administrators and by callers who have the verb CATALOGUE.
func TestACatalogueIsAppliedOverTheNetworkByWhoMay(t *testing.T) {
	dir := ownContexts(t)
	tokens := newTokenFile(t)
	credential := map[string]string{}
	for name, group := range map[string]string{"admin": "admins", "viewer": "viewers", "ci": "ci"} {
		credential[name] = filepath.Join(dir, name)
		put(t, credential[name], tokens.add(name, group, time.Time{}))
	}
	audit := filepath.Join(dir, "audit.log")
	s := openShop(t, racks, "--tokens", tokens.path, "--admin-group", "token:admins", "--audit", audit)
	over := func(name string, args ...string) (out, errOut string, code int) {
		t.Helper()
		return s.cli("", append(args, "--token-file", credential[name])...)
	}
	const policy = `apiVersion: access.sluice.dev/v1
kind: AccessRole
metadata: {name: publisher}
spec: {rules: [{kinds: ["*"], verbs: [CATALOGUE]}]}
---
apiVersion: access.sluice.dev/v1
kind: AccessBinding
metadata: {name: publishers}
spec: {roles: [publisher], groups: ["token:ci"], namespaces: ["*"]}
---
apiVersion: access.sluice.dev/v1
kind: AccessBinding
metadata: {name: viewers}
spec: {roles: [viewer], groups: ["token:viewers"], namespaces: ["*"]}
`
	if out, errOut, code := s.cli(policy, "apply", "-f", "-", "--token-file", credential["admin"]); code != 0 {
		t.Fatalf("%d %s%s", code, out, errOut)
	}
	wider := strings.Replace(racks, "  height: Int\n", "  height: Int\n  width: Int\n", 1)
	next, narrow := s.write("next", wider), s.write("narrow", strings.Replace(racks, "  label: String @constraint(maxLength: 20)\n", "", 1))
	isNew := next + "/racks.graphqls:7: Rack.spec.width is new\n"

	for _, args := range [][]string{{"apply", next}, {"apply", next, "--dry-run"}, {"reload"}, {"diff", next}} {
		out, errOut, code := over("viewer", append([]string{"catalogue"}, args...)...)
		if want := "sluice: you do not have the verb CATALOGUE; an administrator can give it by an AccessBinding (FORBIDDEN)\n"; code != 1 || out != "" || errOut != want {
			t.Errorf("a viewer, %v: %d %s%s", args, code, out, errOut)
		}
	}
	if _, errOut, code := s.cli("", "catalogue", "apply", next); code != 1 || !strings.Contains(errOut, "UNAUTHENTICATED") {
		t.Errorf("nobody: %d %s", code, errOut)
	}
	if s.sdl() != racks {
		t.Fatal("the folder is another one")
	}

	if out, errOut, code := over("admin", "catalogue", "diff", next); code != 0 || out != isNew || errOut != "" {
		t.Errorf("diff: %d %s%s", code, out, errOut)
	}
	lost := "Rack.spec.label is gone: what is stored of it is not shown any more"
	if out, errOut, code := over("admin", "catalogue", "diff", narrow, "-o", "json"); code != 1 || !strings.Contains(out, `"severity": "BREAKS_STORED"`) || !strings.Contains(out, `"path": "spec.label"`) || errOut != "" {
		t.Errorf("diff of a break: %d %s%s", code, out, errOut)
	}
	if out, errOut, code := over("admin", "catalogue", "apply", narrow); code != 2 || !strings.Contains(errOut, lost) || out != "" {
		t.Errorf("a break: %d %s%s", code, out, errOut)
	}
	if out, errOut, code := over("admin", "catalogue", "apply", next, "--dry-run"); code != 0 || !strings.HasPrefix(out, isNew) || !strings.HasSuffix(out, " would be served; nothing was changed\n") || s.sdl() != racks {
		t.Errorf("dry run: %d %s%s", code, out, errOut)
	}
	if s.sdl() != racks {
		t.Fatal("the folder is another one")
	}
	out, errOut, code := over("admin", "catalogue", "apply", next)
	if code != 0 || !strings.HasPrefix(out, isNew) || !strings.HasSuffix(out, " is served now\n") || errOut != "" || s.sdl() != wider {
		t.Fatalf("apply: %d %s%s", code, out, errOut)
	}
	if !s.log.await(`"caller":"token:admin","address":"127.0.0.1"`) {
		t.Errorf("the log does not say who it was: %s", s.log)
	}
	if out, errOut, code := over("ci", "catalogue", "apply", narrow, "--allow-breaking"); code != 0 || !strings.Contains(out, lost) {
		t.Errorf("with the verb alone: %d %s%s", code, out, errOut)
	}
	s.write("kinds", racks)
	done(t, "context", "set", "prod", "--server", s.address, "--token-file", credential["ci"])
	if out, errOut, code := sluice(t, "", "catalogue", "reload", "--context", "prod"); code != 0 || !strings.Contains(out, "Rack.spec.label is new\n") {
		t.Errorf("reload by a context: %d %s%s", code, out, errOut)
	}
	if out, errOut, code := s.catalogue("reload"); code != 0 || !strings.HasSuffix(out, " is served already\n") {
		t.Errorf("over the socket: %d %s%s", code, out, errOut)
	}
	lines, err := auditLines(audit)
	if err != nil {
		t.Fatal(err)
	}
	var replaced []string
	for _, line := range lines {
		if line.Catalogue != "" {
			replaced = append(replaced, line.Event+" by "+line.By)
		}
	}
	if want := []string{"CATALOGUE_REPLACED by token:admin", "CATALOGUE_REPLACED by token:ci", "CATALOGUE_REPLACED by token:ci"}; !slices.Equal(replaced, want) {
		t.Errorf("the audit log has %v, want %v", replaced, want)
	}
}

func TestWithoutCallersACatalogueIsNotAppliedOverTheNetwork(t *testing.T) {
	ownContexts(t)
	s := openShop(t, racks)
	out, errOut, code := s.cli("", "catalogue", "reload")
	if want := "sluice: this gateway does not know its callers, so its catalogue is changed over its admin socket only (FORBIDDEN)\n"; code != 1 || errOut != want || out != "" {
		t.Errorf("%d %s%s", code, out, errOut)
	}
}
