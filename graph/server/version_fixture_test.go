package server_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/backend/catalogue"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/graph/kinds"
	"github.com/sluicegw/sluice/graph/release"
	"github.com/sluicegw/sluice/graph/server"
)

// released and unreleased are catalogues: the second one has kinds, fields, values, a rule and verbs more.
const (
	released = `
type Thing @resource(plural: "things", group: "example.org", version: "v1", scope: NAMESPACED, exceptVerbs: [UPSERT]) {
  spec: ThingSpec!
  status: ThingStatus
}
type ThingSpec {
  price: Int @filterable
  colour: Colour
  box: Box
  parts: [Part!] @constraint(maxItems: 5) @list(type: ATOMIC)
  slots: [Slot!] @constraint(maxItems: 5) @list(type: MAP, keys: ["name"])
}
type Box { label: String @constraint(maxLength: 20) }
type Part { size: Int! }
type Slot { name: String! @constraint(maxLength: 20)
  size: Int }
type ThingStatus { sold: Boolean }
enum Colour { RED, BLUE }
type Safe @resource(plural: "safes", group: "example.org", version: "v1", scope: NAMESPACED, sensitive: true) { spec: SafeSpec! }
type SafeSpec { owner: String @constraint(maxLength: 20)
  code: String @writeOnly @constraint(maxLength: 20) }
type Plain @resource(plural: "plains", shortNames: ["pl"], group: "example.org", version: "v1", scope: NAMESPACED, exceptVerbs: [FINALIZE], subKinds: ["Old"]) {
  spec: PlainSpec!
  status: PlainStatus
}
type PlainSpec { size: Int }
type PlainStatus { used: Boolean }
`
	unreleased = `
enum Colour { RED, HIDDENCOLOUR, BLUE }
type Hidden @resource(plural: "hiddens", group: "example.org", version: "v1", scope: NAMESPACED, shortNames: ["hid"]) { spec: HiddenSpec! }
type HiddenSpec {
  thingRef: String @ref(kind: "Thing", inverse: "hiddens", guarded: true) @constraint(maxLength: 253)
}
type Thing @resource(plural: "things", group: "example.org", version: "v1", scope: NAMESPACED) {
  spec: ThingSpec!
  status: ThingStatus
}
type ThingSpec @rule(cel: "!has(self.hiddenText) || !has(self.price) || self.price < 50", message: "dear") {
  hiddenText: String @constraint(maxLength: 20) @filterable
  price: Int @filterable
  hiddenRef: String @ref(kind: "Hidden", inverse: "hiddenThings") @constraint(maxLength: 253)
  colour: Colour
  box: Box
  parts: [Part!] @constraint(maxItems: 5) @list(type: ATOMIC)
  slots: [Slot!] @constraint(maxItems: 5) @list(type: MAP, keys: ["name"])
}
type Box { hiddenLabel: String @constraint(maxLength: 20)
  label: String @constraint(maxLength: 20) }
type Part { hiddenSize: Int
  size: Int! }
type Slot { hiddenSize: Int
  name: String! @constraint(maxLength: 20)
  size: Int }
type ThingStatus { hiddenState: String @constraint(maxLength: 20)
  sold: Boolean }
type Safe @resource(plural: "safes", group: "example.org", version: "v1", scope: NAMESPACED, sensitive: true) { spec: SafeSpec! }
type SafeSpec { owner: String @constraint(maxLength: 20)
  hiddenCode: String @writeOnly @constraint(maxLength: 20)
  code: String @writeOnly @constraint(maxLength: 20) }
type Plain @resource(plural: "plains", shortNames: ["pl", "hiddenpl"], group: "example.org", version: "v1", scope: NAMESPACED, expires: true, subKinds: ["Old", "HiddenSub"]) {
  spec: PlainSpec!
  status: PlainStatus
}
type PlainSpec { size: Int
  hiddenLabel: String @constraint(maxLength: 20) }
type PlainStatus { used: Boolean
  conditions: [Condition!] }
`
)

// versioned are two gateways on one store: an older one with a catalogue that was released as v1.0, and a newer one, whose
// catalogue has more and serves v1.0 too.
type versioned struct {
	*changing
	older, newer http.Handler
	url          string
}

func newVersioned(t *testing.T) *versioned {
	t.Helper()
	text, identities := token(t)
	v := &versioned{changing: openChanging(t, plain, server.Config{Identities: identities})}
	v.token = text
	cfg := server.Config{Identities: identities}
	old, _ := v.catalogue(released)
	cfg.Catalogue = old
	first, err := server.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Catalogue = v.withVersions(unreleased, "", released)
	second, err := server.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	v.older, v.newer = first.Handler(), second.Handler()
	v.run(cfg.Catalogue.API.Service)
	v.bind(cfg.Catalogue.API.Service, "admin")
	web := httptest.NewServer(v.newer)
	v.url = web.URL
	t.Cleanup(web.Close)
	return v
}

// withVersions returns a catalogue with the versions v1.0 and so on, of some SDL, in a state.
func (c *changing) withVersions(sdl, states string, versions ...string) server.Catalogue {
	c.Helper()
	folders := map[string]string{}
	for minor, text := range versions {
		folders[release.Number{Major: 1, Minor: minor}.String()] = text
	}
	out, _ := c.withFolders(sdl, states, folders)
	return out
}

// withFolders returns a catalogue with released versions, of some SDL each by their names, in a state, and the service
// that is to be run.
func (c *changing) withFolders(sdl, states string, versions map[string]string) (server.Catalogue, *service.Service) {
	c.Helper()
	texts := map[string]string{release.StatesFile: states}
	for name, text := range versions {
		_, api := c.read(text)
		texts[name+"/kinds.graphqls"] = text
		texts[name+"/"+release.APIFile] = kinds.PrintBare(api)
	}
	read, err := release.Read(texts, "kinds")
	if err != nil {
		c.Fatal(err)
	}
	schema, api := c.read(sdl)
	previous, err := release.ReadPrevious(read)
	if err == nil {
		err = previous.Check("the newest", release.Newest{Schema: schema, API: api, Dir: "kinds"})
	}
	if err != nil {
		c.Fatal(err)
	}
	stored := schema.Descriptors()
	if previous != nil {
		stored = catalogue.Union(stored, previous.Schema.Descriptors())
	}
	svc := c.service(stored)
	newest, older := svc, svc
	if previous != nil {
		if newest, err = svc.Newest(schema.Descriptors()); err == nil {
			older, err = svc.Previous(previous.Schema.Descriptors())
		}
		if err != nil {
			c.Fatal(err)
		}
	}
	out := server.Single(newest, api)
	out.Hash, out.Files = catalogue.OutlineOf(stored).Hash(), release.Hash(texts)+schema.Hash
	for _, v := range read {
		one := server.Version{Number: v.Number, State: v.State, SDL: v.API}
		if v.Served() {
			of, whole := newest, api
			if previous != nil && v.Major == previous.Major() {
				of, whole = older, previous.API
			}
			view, missing := v.View(whole)
			if len(missing) > 0 {
				c.Fatalf("%s: %v", v, missing)
			}
			one.API = server.API{Service: of.View(v.Names(view)), Schema: view}
		}
		out.Versions = append(out.Versions, one)
	}
	return out, svc
}

// ask sends a request to a path of a handler.
func (c *changing) ask(h http.Handler, path, query string) *httptest.ResponseRecorder {
	c.Helper()
	body, err := json.Marshal(map[string]any{"query": query})
	if err != nil {
		c.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodPost, path, bytes.NewReader(body))
	r.Host, r.RemoteAddr = "localhost", "127.0.0.1:1"
	r.Header.Set("Content-Type", "application/json")
	c.identify(r.Header)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// newest asks the newest API, which must not fail.
func (v *versioned) newest(query string) string {
	v.Helper()
	got := v.ask(v.newer, "/graphql", query).Body.String()
	if strings.Contains(got, `"errors"`) {
		v.Fatalf("%s\n%s", query, got)
	}
	return got
}

// changing texts differ from request to request.
var changingTexts = regexp.MustCompile(`"(requestId|revision|currentRevision|cursor|changeCursor)":"[^"]*"|[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]*Z|[0-9a-f]{8}-[0-9a-f-]{27}`)

// masked returns an answer without what differs from request to request.
func masked(answer string) string { return changingTexts.ReplaceAllString(answer, "…") }
