package server_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"connectrpc.com/connect"

	"github.com/sluicegw/sluice/graph/proto"
	"github.com/sluicegw/sluice/graph/server"
)

// serveReleased serves the newest of some versions of which a state does not withdraw.
func (m *methods) serveReleased(states string, versions ...string) {
	m.Helper()
	folders := map[string]string{}
	for minor, text := range versions {
		folders["v1."+string(rune('0'+minor))] = text
	}
	catalogue, svc := m.withFolders(versions[len(versions)-1], states, folders)
	for _, v := range catalogue.Versions {
		if !v.Served() {
			continue
		}
		messages, err := proto.New(v.API.Service.Kinds(), m.numbers)
		if err != nil {
			m.Fatal(err)
		}
		catalogue.Methods = server.Methods{Service: v.API.Service, Messages: messages, Version: v.Number.String()}
	}
	g, err := m.server.Prepare(catalogue)
	if err != nil {
		m.Fatal(err)
	}
	m.server.Replace(g)
	m.run(svc)
	if m.messages == nil || len(catalogue.Methods.Messages.Kinds) >= len(m.messages.Kinds) {
		m.messages = catalogue.Methods.Messages
	}
}

// TestServeMethods_AVersionIsWithdrawn has a client of v1.1, which a reload withdraws.
func TestServeMethods_AVersionIsWithdrawn(t *testing.T) {
	m := newMethods(t, server.Config{})
	m.serve(wide)   // so that its fields have numbers
	m.serve(narrow) // and nothing hides them from the versions
	m.messages = nil
	m.serveReleased("", narrow, wide)
	const shelf = `{"shelf": {"metadata": {"name": "a"}, "spec": {"width": 3, "depth": 5}}}`
	if got, err := m.call("CreateShelf", shelf); err != nil || !strings.Contains(got, `"depth":5`) {
		t.Fatal(got, err)
	}
	if _, err := m.call("CreateBox", `{"box": {"metadata": {"name": "b"}, "spec": {}}}`); err != nil {
		t.Fatal(err)
	}
	depth := m.messages.File.Messages().ByName("ShelfSpec").Fields().ByName("depth").Number()
	client := m.messages
	boxes, method := m.newClient("WatchBoxes")

	m.serveReleased("v1.1: {withdrawn: 2030-01-31, why: it shows depths wrong}", narrow, wide)
	const withdrawn = "; version v1.1 of the API was withdrawn: it shows depths wrong"
	_, err := m.call("GetBox", `{"name": "b"}`)
	if connect.CodeOf(err) != connect.CodeUnimplemented || infoOf(err).GetReason() != "NOT_FOUND" || !strings.Contains(err.Error(), withdrawn) {
		t.Error(err)
	}
	_, err = m.call("UpsertShelf", shelf)
	if connect.CodeOf(err) != connect.CodeInvalidArgument || infoOf(err).GetReason() != "BAD_USER_INPUT" || !strings.Contains(err.Error(), withdrawn) {
		t.Error(err)
	}
	url := "http://" + m.address + "/sluice.kinds.v1.ShelfService/UpsertShelf"
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(shelf))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+m.token)
	res, err := m.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	if text, err := io.ReadAll(res.Body); err != nil || !strings.Contains(string(text), withdrawn) {
		t.Error(string(text), err)
	}
	if got, err := m.call("GetShelf", `{"name": "a"}`); err != nil || strings.Contains(got, "depth") {
		t.Error(got, err)
	}
	// An update from what an older client knows leaves the rest as it is.
	if got, err := m.call("UpsertShelf", `{"shelf": {"metadata": {"name": "a"}, "spec": {"width": 4}}}`); err != nil {
		t.Error(got, err)
	}
	stream, err := boxes.CallServerStream(t.Context(), m.request(method, `{}`))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stream.Close() }()
	if stream.Receive() || connect.CodeOf(stream.Err()) != connect.CodeUnimplemented || !strings.Contains(stream.Err().Error(), withdrawn) {
		t.Error(stream.Err())
	}

	m.serveReleased("v1.1: {withdrawn: 2030-01-31, why: it shows depths wrong}", narrow, wide, wide)
	if now := m.messages.File.Messages().ByName("ShelfSpec").Fields().ByName("depth").Number(); now != depth {
		t.Errorf("depth has the number %d, and had %d", now, depth)
	}
	m.messages = client
	if got, err := m.call("GetShelf", `{"name": "a"}`); err != nil || !strings.Contains(got, `"depth":5`) || !strings.Contains(got, `"width":4`) {
		t.Error(got, err)
	}
}
