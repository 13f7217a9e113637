package e2e_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sluicegw/sluice/internal/redistest"
)

// racks is a catalogue that everything can be taken away from.
const racks = `type Rack @resource(plural: "racks", group: "example.org", version: "v1", scope: NAMESPACED) {
  spec: RackSpec!
}

type RackSpec {
  height: Int
  label: String @constraint(maxLength: 20)
  token: String @constraint(maxLength: 20) @writeOnly
  finish: Finish
}

enum Finish {
  GALVANISED
  PAINTED
}

type Note @resource(plural: "notes", group: "example.org", version: "v1", scope: NAMESPACED) {
  spec: NoteSpec!
}

type NoteSpec {
  text: String @constraint(maxLength: 20)
}
`

// shop is a gateway with a catalogue of its own in a folder.
type shop struct {
	*gateway
	dir, kinds, socket string
}

// openShop starts a gateway on some SDL. Paths of sockets are short.
func openShop(t *testing.T, sdl string, args ...string) *shop {
	t.Helper()
	return openShopBy(t, start, sdl, args...)
}

// openJudgedShop is openShop of a gateway that judges its callers: it is asked by one with the role editor.
func openJudgedShop(t *testing.T, sdl string, args ...string) *shop {
	t.Helper()
	return openShopBy(t, newCallers(t).start, sdl, args...)
}

func openShopBy(t *testing.T, start func(*testing.T, string, ...string) *gateway, sdl string, args ...string) *shop {
	t.Helper()
	dir, err := os.MkdirTemp("", "s")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s := &shop{dir: dir, kinds: filepath.Join(dir, "kinds"), socket: filepath.Join(dir, "admin.sock")}
	if err := os.Mkdir(s.kinds, 0o700); err != nil {
		t.Fatal(err)
	}
	s.write("kinds", sdl)
	s.gateway = start(t, filepath.Join(dir, "data"), append([]string{"--catalogue", s.kinds, "--admin-socket", s.socket}, args...)...)
	return s
}

// write writes a catalogue into a folder of the shop.
func (s *shop) write(folder, sdl string) string {
	dir := filepath.Join(s.dir, folder)
	_ = os.MkdirAll(dir, 0o700)
	if err := os.WriteFile(filepath.Join(dir, "racks.graphqls"), []byte(sdl), 0o600); err != nil {
		panic(err)
	}
	return dir
}

// catalogue runs a command of sluice catalogue against the gateway.
func (s *shop) catalogue(args ...string) (out, errOut string, code int) {
	s.t.Helper()
	return sluice(s.t, "", append(append([]string{"catalogue"}, args...), "--admin-socket", s.socket)...)
}

// details is what /readyz?verbose says once the gateway is ready and has all in memory.
func (s *shop) details() (text string) {
	s.t.Helper()
	redistest.Await(s.t, "/readyz to be ok", func() error {
		_, text = s.do("GET", "/readyz?verbose", "")
		if !strings.HasPrefix(text, "ok\ncatalogue ") {
			return errors.New(text)
		}
		return nil
	})
	return text
}

func (s *shop) sdl() string {
	text, err := os.ReadFile(filepath.Join(s.kinds, "racks.graphqls"))
	if err != nil {
		s.t.Fatal(err)
	}
	return string(text)
}

// breaks are catalogues that break something, with the line of the file and what
// would be lost.
func breaks() map[string]struct{ from, to, line, lost string } {
	return map[string]struct{ from, to, line, lost string }{
		"a kind removed":             {racks[strings.Index(racks, "type Note @"):], "", "", "kind Note is gone: its resources are kept and not served"},
		"a field removed":            {"  label: String @constraint(maxLength: 20)\n", "", "5", "Rack.spec.label is gone: what is stored of it is not shown any more"},
		"another type":               {"height: Int", "height: Float", "6", "Rack.spec.height was Int and is Float: resources that have it cannot be read"},
		"a list":                     {"label: String @constraint(maxLength: 20)", "label: [String!] @list(type: SET) @constraint(maxLength: 20, maxItems: 3)", "7", "Rack.spec.label was String and is a list of String: resources that have it cannot be read"},
		"shown":                      {" @writeOnly", "", "8", "Rack.spec.token was @writeOnly and is not: what is stored would be shown"},
		"a stored enum value":        {"  PAINTED\n", "", "12", `Rack.spec.finish has no value "PAINTED" any more: resources that have it cannot be written with it`},
		"another stored form":        {"  PAINTED\n", "  PAINTED @stored(as: \"p\")\n", "12", `Rack.spec.finish has no value "PAINTED" any more: resources that have it cannot be written with it`},
		"newly required":             {"height: Int", "height: Int!", "6", "Rack.spec.height is required now: resources without it cannot be read"},
		"a new field, required":      {"  height: Int\n", "  height: Int\n  width: Int!\n", "7", "Rack.spec.width is new and required: what is stored does not have it and cannot be read"},
		"a scope without resources":  {`type Note @resource(plural: "notes", group: "example.org", version: "v1", scope: NAMESPACED)`, `type Note @resource(plural: "notes", group: "example.org", version: "v1", scope: GLOBAL)`, "17", "kind Note was NAMESPACED and is GLOBAL: keys of its resources mean others"},
		"a scope that has resources": {`type Rack @resource(plural: "racks", group: "example.org", version: "v1", scope: NAMESPACED)`, `type Rack @resource(plural: "racks", group: "example.org", version: "v1", scope: GLOBAL)`, "1", "kind Rack "},
	}
}

// TestEveryBreakIsRefusedEverywhereWithItsPlace: by diff, by apply, at a reload and
// at a start; and nothing is as it was not before.
func TestEveryBreakIsRefusedEverywhereWithItsPlace(t *testing.T) {
	t.Parallel()
	s := openJudgedShop(t, racks)
	s.must(`mutation { createRack(input: {name: "a", spec: {height: 1, token: "secret"}}) { rack { id } } }`)
	before := s.details()
	for name, c := range breaks() {
		t.Run(name, func(t *testing.T) {
			s.t = t
			sdl := strings.Replace(racks, c.from, c.to, 1)
			if sdl == racks {
				t.Fatal("nothing was changed")
			}
			dir := s.write("next", sdl)
			place := func(dir string) string {
				if c.line == "" {
					return dir + ": "
				}
				return dir + "/racks.graphqls:" + c.line + ": "
			}
			out, errOut, code := sluice(t, "", "catalogue", "diff", dir, "--from", s.kinds)
			if code != 1 || !strings.Contains(out, place(dir)+c.lost) || errOut != "" {
				t.Errorf("diff: %d %s%s", code, out, errOut)
			}
			out, errOut, code = s.catalogue("apply", dir)
			if code != 2 || !strings.Contains(errOut, place(dir)+c.lost) || out != "" {
				t.Errorf("apply: %d %s%s", code, out, errOut)
			}
			if s.sdl() != racks {
				t.Error("the folder is another one")
			}
			s.write("kinds", sdl)
			out, errOut, code = s.catalogue("reload")
			if code != 2 || !strings.Contains(errOut, place(s.kinds)+c.lost) || out != "" {
				t.Errorf("reload: %d %s%s", code, out, errOut)
			}
			s.write("kinds", racks)
			if got := s.details(); got != before {
				t.Errorf("it serves %s", got)
			}
			if got := s.must(`{ rack(name: "a") { spec { height label finish } } }`); fmt.Sprint(got.get("rack", "spec", "height")) != "1" {
				t.Errorf("%v", got)
			}
		})
	}
	s.t = t
	if code := s.stop(); code != 0 {
		t.Fatalf("exit code %d\n%s", code, s.log)
	}
	flags := store(t, s.data)
	for name, c := range breaks() {
		t.Run(name+", at a start", func(t *testing.T) {
			s.write("kinds", strings.Replace(racks, c.from, c.to, 1))
			_, errOut, code := sluice(t, "", append([]string{"serve", "--listen", "127.0.0.1:0", "--catalogue", s.kinds, "--admin-socket", s.socket}, flags...)...)
			if code != 2 || !strings.Contains(errOut, s.kinds) || !strings.Contains(errOut, c.lost) {
				t.Errorf("%d %s", code, errOut)
			}
			n := map[bool]string{true: "resources of the kind: 1", false: "resources of the kind: 0"}[strings.Contains(c.lost, "Rack")]
			if strings.Contains(c.lost, "Rack.spec.label is gone") {
				n = "resources that have it: 0"
			}
			if !strings.Contains(errOut, n) {
				t.Errorf("it does not say %s: %s", n, errOut)
			}
		})
	}
}

var hashes = regexp.MustCompile(`catalogue [0-9a-f]{16}, files [0-9a-f]{16}`)

func TestApplyReplacesTheFolderAndWhatIsServed(t *testing.T) {
	t.Parallel()
	s := openJudgedShop(t, racks)
	socket := s.dial()
	defer socket.close()
	socket.subscribe("1", `subscription { rackChanges { type cursor rack { metadata { name } } } }`, nil)
	socket.next("1")
	next := strings.Replace(racks, "  height: Int\n", "  height: Int\n  width: Int @filterable\n", 1)
	next = next[:strings.Index(next, "type Note @")] + "type Box @resource(plural: \"boxes\", group: \"example.org\", version: \"v1\", scope: GLOBAL) { spec: BoxSpec! }\ntype BoxSpec { size: Int }\n"
	dir := s.write("next", next)
	s.must(`mutation { createNote(input: {name: "n", spec: {text: "kept"}}) { note { id } } }`)

	out, errOut, code := s.catalogue("apply", dir, "--dry-run", "--allow-breaking")
	if code != 0 || !strings.Contains(out, "kind Note is gone") || s.sdl() != racks || errOut != "" {
		t.Errorf("dry run: %d %s%s", code, out, errOut)
	}
	out, errOut, code = s.catalogue("apply", dir, "--allow-breaking")
	if code != 0 || !strings.Contains(out, dir+"/racks.graphqls:7: Rack.spec.width is new\n") || !strings.Contains(out, " is served now\n") || s.sdl() != next {
		t.Fatalf("apply: %d %s%s", code, out, errOut)
	}
	check, _, _ := sluice(t, "", "catalogue", "check", dir)
	if want := hashes.FindString(check); !strings.Contains(out, want) || !strings.Contains(s.details(), strings.Replace(want, ",", "", 1)) {
		t.Errorf("apply says %s, check %s, readyz %s", out, check, s.details())
	}
	if !s.log.await("resources of a kind that is not in the catalogue are kept and not served") {
		t.Error("nothing is said of the notes")
	}
	s.must(`mutation { createRack(input: {name: "a", spec: {width: 3}}) { rack { id } } }`)
	if got := s.must(`{ racks(filter: {spec: {width: {gt: 2}}}) { totalCount } boxes { totalCount } }`); fmt.Sprint(got.get("racks", "totalCount")) != "1" {
		t.Errorf("%v", got)
	}
	if got := s.post(`{ notes { totalCount } }`, nil); got.codes() != "GRAPHQL_VALIDATION_FAILED" {
		t.Errorf("what vanished: %v", got)
	}
	if got := socket.next("1"); got.get("rackChanges", "rack", "metadata", "name") != "a" {
		t.Errorf("the stream goes on with %v", got)
	}
	// Back to a catalogue of the record, which hides what was stored since; the note is there.
	const since = "Rack.spec.width is gone: what is stored of it is not shown any more (breaking); resources that have it: 1"
	if out, errOut, code = s.catalogue("apply", s.write("back", racks)); code != 2 || !strings.Contains(errOut, since) {
		t.Fatalf("back without the flag: %d %s%s", code, out, errOut)
	}
	if out, errOut, code = s.catalogue("apply", s.write("back", racks), "--allow-breaking"); code != 0 || !strings.Contains(out, "hidden: ") {
		t.Fatalf("back: %d %s%s", code, out, errOut)
	}
	if got := s.must(`{ note(name: "n") { spec { text } } }`); got.get("note", "spec", "text") != "kept" {
		t.Errorf("%v", got)
	}
}

func TestSIGHUPReadsTheFolderAndAcceptsNoBreak(t *testing.T) {
	t.Parallel()
	s := openJudgedShop(t, racks, "--allow-breaking")
	s.write("kinds", strings.Replace(racks, "  height: Int\n", "  height: Int\n  width: Int\n", 1))
	_ = s.cmd.Process.Signal(syscall.SIGHUP)
	if !s.log.await(`"result":"replaced"`) {
		t.Fatal(s.log)
	}
	s.must(`{ racks { nodes { spec { width } } } }`)
	s.write("kinds", strings.Replace(racks, "height: Int", "height: Float", 1))
	_ = s.cmd.Process.Signal(syscall.SIGHUP)
	if !s.log.await(`"result":"refused"`) || !strings.Contains(s.log.String(), s.kinds+"/racks.graphqls:6: Rack.spec.height was Int and is Float") {
		t.Fatal(s.log)
	}
	s.write("kinds", racks+"type Broken {\n")
	_ = s.cmd.Process.Signal(syscall.SIGHUP)
	if !s.log.await(`Expected Name`) {
		t.Fatal(s.log)
	}
	s.must(`{ racks { nodes { spec { width } } } }`)
	_, metrics := s.do("GET", "/metrics", "")
	for _, want := range []string{`sluice_catalogue_reloads_total{result="replaced"} 1`, `sluice_catalogue_reloads_total{result="refused"} 2`, `sluice_catalogue_info{files="`} {
		if !strings.Contains(metrics, want) {
			t.Errorf("/metrics does not have %s", want)
		}
	}
}

func TestApplyWithFindingsAsksNobody(t *testing.T) {
	t.Parallel()
	s := openShop(t, racks)
	dir := s.write("next", racks+"type Broken {\n")
	for _, args := range [][]string{{"apply", dir}, {"apply", filepath.Join(s.dir, "nothing")}} {
		out, errOut, code := s.catalogue(args...)
		if code != 2 || out != "" || strings.Contains(s.log.String(), "not replaced") || !strings.Contains(errOut, args[1]) {
			t.Errorf("%v: %d %s%s", args, code, out, errOut)
		}
	}
}

func TestTheFolderOfAGatewayMustBeReplaceable(t *testing.T) {
	t.Parallel()
	s := openJudgedShop(t, racks)
	next := s.write("next", strings.Replace(racks, "  height: Int\n", "  height: Int\n  width: Int\n", 1))
	before := s.details()
	writeFile(t, filepath.Join(s.kinds, "README.md"), "read me")
	out, errOut, code := s.catalogue("apply", next)
	if code != 1 || !strings.Contains(errOut, "holds README.md, which would be lost") || s.details() != before || s.sdl() != racks {
		t.Errorf("%d %s%s", code, out, errOut)
	}
}

func TestTheEmbeddedCatalogueIsNotReplaced(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "s")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "a.sock")
	g := start(t, "", "--admin-socket", socket)
	writeFile(t, filepath.Join(dir, "racks.graphqls"), racks)
	for _, args := range [][]string{{"catalogue", "reload"}, {"catalogue", "apply", dir}} {
		_, errOut, code := sluice(t, "", append(args, "--admin-socket", socket)...)
		if code != 1 || !strings.Contains(errOut, "start it with --catalogue DIR") || strings.Count(errOut, "\n") != 1 {
			t.Errorf("%v: %d %s", args, code, errOut)
		}
	}
	_ = g.cmd.Process.Signal(syscall.SIGHUP)
	if !g.log.await("start it with --catalogue DIR") {
		t.Error(g.log)
	}
	g.must(`{ networks { totalCount } }`)
}

func TestAnAdminSocketBelongsToOneGatewayThatLives(t *testing.T) {
	t.Parallel()
	s := openShop(t, racks)
	_, errOut, code := sluice(t, "", append([]string{"serve", "--listen", "127.0.0.1:0", "--admin-socket", s.socket}, store(t, t.TempDir())...)...)
	if want := "sluice: admin-socket: " + s.socket + ": it is in use by another process\n"; code != 1 || !strings.HasSuffix(errOut, want) {
		t.Errorf("%d %q; want %q", code, errOut, want)
	}
	s.kill()
	if _, err := os.Stat(s.socket); err != nil {
		t.Fatalf("it leaves no socket: %v", err)
	}
	_, errOut, code = s.catalogue("reload")
	if code != 1 || !strings.Contains(errOut, "no gateway answers at "+s.socket) {
		t.Errorf("%d %s", code, errOut)
	}
	s.gateway = start(t, s.data, "--catalogue", s.kinds, "--admin-socket", s.socket)
	if out, errOut, code := s.catalogue("reload"); code != 0 || !strings.Contains(out, "is served already") {
		t.Errorf("%d %s%s", code, out, errOut)
	}
	if code := s.stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if _, err := os.Stat(s.socket); err == nil {
		t.Error("the socket is left")
	}
}

// TestGatewaysOfOneStoreSayWhichCatalogueEachServes: they are told one after the
// other, and what one does not know yet it keeps.
func TestGatewaysOfOneStoreSayWhichCatalogueEachServes(t *testing.T) {
	t.Parallel()
	sameOnEachStore(t)
	redis := []string{"--redis", server.Server(t).URL(), "--redis-prefix", prefix(t.TempDir())}
	callers := newCallers(t)
	a := openShopBy(t, callers.start, racks, redis...)
	b := openShopBy(t, callers.start, racks, redis...)
	if a.details() != b.details() {
		t.Errorf("%s and %s", a.details(), b.details())
	}
	before := b.details()
	wider := strings.Replace(racks, "  height: Int\n", "  height: Int\n  width: Int\n", 1)
	for i, s := range []*shop{a, b} {
		if out, errOut, code := s.catalogue("apply", s.write("next", wider)); code != 0 {
			t.Fatalf("%d %s%s", code, out, errOut)
		}
		if i == 0 {
			a.must(`mutation { createRack(input: {name: "a", spec: {width: 3}}) { rack { id } } }`)
			b.must(`mutation { upsertRack(input: {name: "a", spec: {height: 1}}) { created } }`)
			if b.details() != before || a.details() == before {
				t.Errorf("after the first: %s and %s", a.details(), b.details())
			}
		}
	}
	if a.details() != b.details() {
		t.Errorf("%s and %s", a.details(), b.details())
	}
	if got := b.must(`{ rack(name: "a") { spec { width height } } }`); fmt.Sprint(got.get("rack", "spec")) != "map[height:1 width:3]" {
		t.Errorf("%v", got)
	}
}

func TestAReloadCountsWhatBreaksWhatItTightens(t *testing.T) {
	t.Parallel()
	s := openJudgedShop(t, racks)
	for i := range 3 {
		s.must(fmt.Sprintf(`mutation { createNote(input: {name: "n%d", spec: {text: "%s"}}) { note { id } } }`, i, strings.Repeat("x", 4+i)))
	}
	dir := s.write("next", strings.Replace(racks, "text: String @constraint(maxLength: 20)", "text: String @constraint(maxLength: 4)", 1))
	const says = "Note: stored resources that break what was tightened: 2; the first is Note/default/n1: spec.text: must have at most 4 characters, has 5\n"
	for _, args := range [][]string{{"apply", dir, "--dry-run"}, {"apply", dir}} {
		if out, errOut, code := s.catalogue(args...); code != 0 || !strings.Contains(out, says) {
			t.Errorf("%v: exit %d\n%s%s", args, code, out, errOut)
		}
	}
	s.expect(0, "Note default/n1 UPDATED\n", "", "label", "note", "n1", "a=b")
	if out, errOut, code := s.cli("", "patch", "note", "n1", "-p", "spec: {text: longer}"); code != 1 || !strings.Contains(errOut, "must have at most 4 characters") {
		t.Errorf("exit %d\n%s%s", code, out, errOut)
	}
}

// TestStreamsOfCallersGoOnOverReloads with access control on: of an administrator, and of a viewer whose binding changes
// after the reload.
func TestStreamsOfCallersGoOnOverReloads(t *testing.T) {
	t.Parallel()
	tokens := newTokenFile(t)
	root, user := tokens.add("root", "admins", time.Time{}), tokens.add("user", "team", time.Time{})
	s := openShop(t, racks, "--tokens", tokens.path, "--admin-group", "token:admins")
	plain := s.caller(nil)
	admin, viewer := plain.with(root), plain.with(user)
	bind := func(roles string) {
		t.Helper()
		a := admin.ask(`mutation { upsertAccessBinding(input: {name: "team", spec: {roles: [` + roles + `], users: ["token:user"], namespaces: ["*"]}}) { created } }`)
		if len(a.Errors) > 0 {
			t.Fatalf("%+v", a.Errors)
		}
	}
	bind(`"viewer"`)
	const watch = `subscription { rackChanges { type cursor rack { spec { height } } } }`
	streams := map[string]*stream{"admin, events": admin.events(watch), "admin, socket": admin.socket(watch, true), "viewer, events": viewer.events(watch), "viewer, socket": viewer.socket(watch, true)}
	for name, one := range streams {
		if got := one.next(); got.get("rackChanges", "type") != "IN_SYNC" {
			t.Fatalf("%s begins with %v", name, got)
		}
	}
	next := s.write("next", strings.Replace(racks, "  height: Int\n", "  height: Int\n  width: Int\n", 1))
	if out, errOut, code := s.catalogue("apply", next); code != 0 {
		t.Fatalf("%d %s%s", code, out, errOut)
	}
	for height := range 5 {
		if height == 3 {
			bind(`"viewer", "editor"`)
		}
		a := admin.ask(fmt.Sprintf(`mutation { upsertRack(input: {name: "a", spec: {height: %d}}) { created } }`, height))
		if len(a.Errors) > 0 {
			t.Fatalf("%+v", a.Errors)
		}
		for name, one := range streams {
			got := one.next()
			for got.get("rackChanges", "type") == "BOOKMARK" {
				got = one.next()
			}
			if fmt.Sprint(got.get("rackChanges", "rack", "spec", "height")) != fmt.Sprint(height) {
				t.Errorf("%s: event %d is %v", name, height, got)
			}
		}
	}
}

// TestCatalogue_WhatAKindThatWentHoldsIsToldAndPurged takes a kind away whose resources hold others, and its fields.
func TestCatalogue_WhatAKindThatWentHoldsIsToldAndPurged(t *testing.T) {
	t.Parallel()
	withRef := strings.Replace(racks, "type NoteSpec {\n", "type NoteSpec {\n  rackRef: String @ref(kind: \"Rack\", inverse: \"notes\", guarded: true)\n", 1)
	without := withRef[:strings.Index(withRef, "type Note @")]
	if !strings.Contains(withRef, "rackRef") || strings.Contains(without, "NoteSpec") {
		t.Fatal("the catalogues are not what they should be")
	}
	file := filepath.Join(t.TempDir(), "audit")
	s := openJudgedShop(t, withRef, "--audit", file)
	for i := range 3 {
		s.must(fmt.Sprintf(`mutation { createRack(input: {name: "r%d", spec: {height: %d}}) { rack { id } } }`, i, i))
	}
	s.must(`mutation { upsertRack(input: {name: "r1", spec: {height: 1, label: "x"}}) { rack { id } } }`)
	s.must(`mutation { createNote(input: {name: "n", spec: {rackRef: "r0"}}) { note { id } } }`)

	next := s.write("next", without)
	const says = "kind Note is gone: its resources are kept and not served (breaking); resources of the kind: 1; they keep Rack/default/r0 from being deleted"
	out, errOut, code := s.catalogue("diff", next)
	if code != 1 || !strings.Contains(out, "hidden: "+says) {
		t.Errorf("diff: %d %s%s", code, out, errOut)
	}
	if out, errOut, code = s.catalogue("apply", next); code != 2 || !strings.Contains(errOut, says) {
		t.Errorf("apply: %d %s%s", code, out, errOut)
	}
	if out, errOut, code = s.catalogue("purge", "Note"); code != 2 || !strings.Contains(errOut, "kind Note is in the catalogue") {
		t.Errorf("purge of what is served: %d %s%s", code, out, errOut)
	}
	if out, errOut, code = s.catalogue("apply", next, "--allow-breaking"); code != 0 || !strings.Contains(out, "hidden: "+says) {
		t.Errorf("apply with the flag: %d %s%s", code, out, errOut)
	}
	if out, errOut, code = s.cli("", "delete", "rack", "r0", "--wait=false"); code != 0 || !strings.Contains(out, "PENDING") {
		t.Errorf("delete: %d %s%s", code, out, errOut)
	}
	for _, c := range []struct {
		flags []string
		says  string
		code  int
	}{
		{[]string{"--dry-run"}, "Note: 1 resource would be purged, 0 kept\n", 0},
		{nil, "Note: 1 resource purged, 0 kept\n", 0},
		{nil, "sluice: nothing is stored of a kind Note\n", 1},
	} {
		if out, errOut, code = s.catalogue(append([]string{"purge", "Note"}, c.flags...)...); code != c.code || out+errOut != c.says {
			t.Errorf("purge %v: %d %s%s", c.flags, code, out, errOut)
		}
	}
	redistest.Await(t, "the rack that the note held to be gone", func() error {
		if out, _, code := s.cli("", "get", "rack", "r0"); code == 0 {
			return errors.New(out)
		}
		return nil
	})
	redistest.Await(t, "a line of the audit log", func() error {
		raw, err := os.ReadFile(file)
		if err == nil && !regexp.MustCompile(`"event":"DELETED".*"kind":"Note".*"name":"n"`).Match(raw) {
			err = fmt.Errorf("it has\n%s", raw)
		}
		return err
	})

	noLabel := s.write("next", strings.Replace(without, "  label: String @constraint(maxLength: 20)\n", "", 1))
	if out, errOut, code = s.catalogue("apply", noLabel); code != 2 || !strings.Contains(errOut, "Rack.spec.label is gone: what is stored of it is not shown any more (breaking); resources that have it: 1") {
		t.Errorf("apply: %d %s%s", code, out, errOut)
	}
	if out, errOut, code = s.catalogue("apply", noLabel, "--allow-breaking"); code != 0 {
		t.Fatalf("apply with the flag: %d %s%s", code, out, errOut)
	}
	if out, errOut, code = s.catalogue("purge", "Rack.spec.label"); code != 0 || out != "Rack.spec.label: 1 resource purged, 0 kept\n" {
		t.Errorf("purge of a field: %d %s%s", code, out, errOut)
	}
	if out, errOut, code = s.catalogue("apply", s.write("next", without)); code != 0 {
		t.Fatalf("back to the one before: %d %s%s", code, out, errOut)
	}
	if got := s.must(`{ rack(name: "r1") { spec { height label } } }`); fmt.Sprint(got.get("rack", "spec")) != "map[height:1 label:<nil>]" {
		t.Errorf("%v", got)
	}
}

func TestCatalogueDiff_FailsOnWhatIsAskedAndListsAllViolations(t *testing.T) {
	t.Parallel()
	s := openJudgedShop(t, racks)
	for i := range 3 {
		s.must(fmt.Sprintf(`mutation { createRack(input: {name: "r%d", spec: {label: "label %d"}}) { rack { id } } }`, i, i))
	}
	tighter := s.write("next", strings.Replace(racks, "label: String @constraint(maxLength: 20)", "label: String @constraint(maxLength: 5)", 1))
	for failOn, want := range map[string]int{"breaks-data": 0, "breaks-clients": 1, "dangerous": 1} {
		if out, errOut, code := s.catalogue("diff", tighter, "--fail-on", failOn); code != want || errOut != "" {
			t.Errorf("%s: exit %d, want %d: %s%s", failOn, code, want, out, errOut)
		}
	}
	out, errOut, _ := s.catalogue("diff", tighter, "--violations")
	for i := range 3 {
		if !strings.Contains(out, fmt.Sprintf("Rack/default/r%d: spec.label: must have at most 5 characters", i)) {
			t.Errorf("r%d is not listed:\n%s%s", i, out, errOut)
		}
	}
	type change struct {
		Kind, Path, Hidden string
		Violations         []string
	}
	var changes []change
	out, errOut, _ = s.catalogue("diff", tighter, "--violations", "-o", "json")
	if err := json.Unmarshal([]byte(out), &changes); err != nil || len(changes) == 0 || len(changes[0].Violations) != 4 {
		t.Errorf("as JSON: %v\n%s%s", err, out, errOut)
	}
	changes = nil
	gone := s.write("next", racks[:strings.Index(racks, "type Rack @")]+racks[strings.Index(racks, "type Note @"):])
	out, errOut, _ = s.catalogue("diff", gone, "-o", "json")
	if err := json.Unmarshal([]byte(out), &changes); err != nil || len(changes) == 0 || changes[0].Kind != "Rack" || changes[0].Hidden != "resources of the kind: 3" {
		t.Errorf("as JSON: %v\n%s%s", err, out, errOut)
	}
	for _, args := range [][]string{{"diff", tighter, "--violations"}, {"diff", tighter, "--data", "x", "--from", s.kinds}, {"diff", "--data", "x"}} {
		if out, errOut, code := sluice(t, "", append([]string{"catalogue"}, args...)...); code != 2 || out != "" {
			t.Errorf("%v: exit %d: %s%s", args, code, out, errOut)
		}
	}
}
