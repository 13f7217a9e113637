package client_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"github.com/sluicegw/sluice/graph/client"
)

// playback answers one subscription after the other with events of the given
// types and cursors ("ADDED:c1"), then drops the connection. It notes the
// cursor that each began after.
func playback(t *testing.T, after *[]string, connections ...string) *client.Client {
	t.Helper()
	return serve(t, func(w http.ResponseWriter, r *http.Request) {
		conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{"graphql-transport-ws"}})
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = conn.CloseNow() }()
		send := func(m string) {
			if err := conn.Write(r.Context(), websocket.MessageText, []byte(m)); err != nil {
				t.Error(err)
			}
		}
		for {
			_, raw, err := conn.Read(r.Context())
			if err != nil {
				return
			}
			var m struct {
				Type    string
				Payload struct{ Variables struct{ After string } }
			}
			if err := json.Unmarshal(raw, &m); err != nil {
				t.Error(err)
			}
			if m.Type == "connection_init" {
				send(`{"type":"connection_ack"}`)
				continue
			}
			n := len(*after)
			*after = append(*after, m.Payload.Variables.After)
			for _, e := range strings.Fields(connections[n]) {
				kind, cursor, _ := strings.Cut(e, ":")
				event, _ := json.Marshal(map[string]any{"type": kind, "cursor": cursor})
				send(`{"id":"1","type":"next","payload":{"data":{"event":` + string(event) + `}}}`)
			}
			return
		}
	})
}

func TestABookmarkIsKeptAndNotShownAndAResetForgetsTheCursor(t *testing.T) {
	var after []string
	c := playback(t, &after, "IN_SYNC:c1 BOOKMARK:c2", "RESET SNAPSHOT", "RESET SNAPSHOT BOOKMARK:c3", "ADDED:c4 STOP")
	got := ""
	for change, err := range c.Changes(t.Context(), client.ChangesRequest{Kind: client.Kind{Singular: "network"}, After: "c0", Snapshot: true}) {
		if err != nil {
			t.Fatal(err)
		}
		if got += change.Type + " "; change.Type == "STOP" {
			break
		}
	}
	if want := "IN_SYNC RESET SNAPSHOT RESET SNAPSHOT ADDED STOP "; got != want {
		t.Errorf("events %s, want %s", got, want)
	}
	if s, want := strings.Join(after, ","), "c0,c2,,c3"; s != want {
		t.Errorf("began after %s, want %s", s, want)
	}
}
