package operate

import (
	"context"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/backend/service/owner"
	"github.com/sluicegw/sluice/backend/service/owner/ownertest"
	"github.com/sluicegw/sluice/backend/service/owner/remote"
	"github.com/sluicegw/sluice/cmd/sluice/commandtest"
)

// shelfService is a service of the kind of [shelves], with its SDL.
type shelfService struct {
	*ownertest.Service
	sdl string
}

func (s shelfService) Describe(ctx context.Context) (owner.Description, error) {
	d, err := s.Service.Describe(ctx)
	d.SDL = s.sdl
	return d, err
}

// serve returns the address of a service.
func (s shelfService) serve(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(remote.Handler(s))
	t.Cleanup(server.Close)
	return server.URL
}

func newShelfService() shelfService {
	return shelfService{ownertest.New("storage", ownertest.Full("Shelf")), shelves}
}

func TestServiceTest_TellsWhichPromisesAreKept(t *testing.T) {
	s := newShelfService()
	address := s.serve(t)
	marker := filepath.Join(t.TempDir(), "restarted")
	out, errOut, code := commandtest.Run(t, newRoot, "service", "test", address, "--seed", "7", "--restart", "echo > "+marker)
	if code != 0 || errOut != "" {
		t.Errorf("exit %d %s%s", code, out, errOut)
	}
	for _, want := range []string{
		"service storage, seed 7\n", "ok       Shelf      if-tag-once        of writes with one tag at once, exactly one is DONE\n",
		"ok       Shelf      unknown-fields ", "ok       Shelf      restart ", "no resource is unreadable\n",
		" 0 broken, 2 skipped\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("it does not say %q:\n%s", want, out)
		}
	}
	if n := len(s.All()); n != 0 {
		t.Errorf("%d resources are left", n)
	}
	if found, _ := filepath.Glob(marker); len(found) != 1 {
		t.Error("the service was not restarted")
	}
}

func TestServiceTest_ABrokenPromiseIsNamedAndIsExitCode1(t *testing.T) {
	s := newShelfService()
	s.SetHooks(ownertest.Hooks{Admit: func(r *owner.Resource) { r.Annotations = nil }})
	out, _, code := commandtest.Run(t, newRoot, "service", "test", s.serve(t))
	if code != 1 || !strings.Contains(out, "FAILED   Shelf      keeps-metadata ") || !strings.Contains(out, "annotations is") {
		t.Errorf("exit %d %s", code, out)
	}
}

func TestServiceTest_SpecsOfExamplesAreUsed(t *testing.T) {
	s := newShelfService()
	s.SetHooks(ownertest.Hooks{Write: func(w owner.Write) *owner.Answer {
		if strings.Contains(string(w.Resource.Spec), `"oak"`) {
			return nil
		}
		return &owner.Answer{Outcome: owner.Invalid, Violations: []owner.Violation{{Path: "spec", Message: "oak is wanted"}}}
	}})
	address := s.serve(t)
	out, _, code := commandtest.Run(t, newRoot, "service", "test", address)
	if code != 1 || !strings.Contains(out, "give an example") || !strings.Contains(out, "oak is wanted") {
		t.Errorf("without an example: exit %d %s", code, out)
	}
	file := filepath.Join(t.TempDir(), "shelf.yaml")
	commandtest.WriteFile(t, filepath.Dir(file), "shelf.yaml", "apiVersion: example.org/v1\nkind: Shelf\nmetadata: {name: a}\nspec: {label: oak}\n")
	out, errOut, code := commandtest.Run(t, newRoot, "service", "test", address, "--example", file)
	if code != 0 {
		t.Errorf("with an example: exit %d %s%s", code, out, errOut)
	}
}

func TestServiceTest_WhatCannotBeTestedIsSaid(t *testing.T) {
	s := newShelfService()
	address := s.serve(t)
	empty := filepath.Join(t.TempDir(), "empty.yaml")
	commandtest.WriteFile(t, filepath.Dir(empty), "empty.yaml", "kind: Shelf\nmetadata: {name: a}\n")
	for args, want := range map[string]string{
		address + " --kind Desk":             `2 the service has no kind "Desk", but ["Shelf"]`,
		"localhost:1":                        "2 ",
		address + " --client-cert x":         "2 --client-cert, --client-key: both are needed",
		address + " --ca /nonexistent/x":     "2 ca: ",
		address + " --example " + empty:      "2 " + empty + ":1: a manifest with a kind and a spec is wanted",
		"http://127.0.0.1:1":                 "1 ",
		address + " --protocol carrier-bird": "2 ",
		address + " --patience 0s":           "2 --patience is 0s; more than 0s is accepted",
	} {
		_, errOut, code := commandtest.Run(t, newRoot, append([]string{"service", "test"}, strings.Fields(args)...)...)
		status, text, _ := strings.Cut(want, " ")
		if got := string(rune('0' + code)); got != status || !strings.Contains(errOut, text) {
			t.Errorf("%s: exit %d %s", args, code, errOut)
		}
	}
	s.sdl = "type Shelf"
	_, errOut, code := commandtest.Run(t, newRoot, "service", "test", s.serve(t))
	if code != 1 || !strings.Contains(errOut, "the SDL of the service: ") {
		t.Errorf("with bad SDL: exit %d %s", code, errOut)
	}
}
