package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/sluicegw/sluice/graph/client"
)

var upgrader = websocket.Upgrader{Subprotocols: []string{"graphql-transport-ws"}}

// playback answers one subscription after the other with events of the given
// types and cursors ("ADDED:c1"), then drops the connection. It notes the
// cursor that each began after.
func playback(t *testing.T, after *[]string, connections ...string) *client.Client {
	t.Helper()
	return serve(t, func(w http.ResponseWriter, r *http.Request) {
		conn, err := upgrader.Upgrade(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = conn.Close() }()
		send := func(m string) {
			if err := conn.WriteMessage(websocket.TextMessage, []byte(m)); err != nil {
				t.Error(err)
			}
		}
		for {
			_, raw, err := conn.ReadMessage()
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

func TestChanges_ABookmarkIsKeptAndNotShownAndAResetForgetsTheCursor(t *testing.T) {
	var after []string
	c := playback(t, &after, "IN_SYNC:c1 BOOKMARK:c2", "RESET SNAPSHOT", "RESET SNAPSHOT IN_SYNC:c3 BOOKMARK:c3", "ADDED:c4 STOP")
	got := ""
	for change, err := range c.Changes(t.Context(), client.ChangesRequest{Kind: client.Kind{Singular: "network"}, After: "c0", Snapshot: true}) {
		if err != nil {
			t.Fatal(err)
		}
		if got += change.Type + " "; change.Type == "STOP" {
			break
		}
	}
	if want := "IN_SYNC RESET SNAPSHOT RESET SNAPSHOT IN_SYNC ADDED STOP "; got != want {
		t.Errorf("events %s, want %s", got, want)
	}
	if s, want := strings.Join(after, ","), "c0,c2,,c3"; s != want {
		t.Errorf("began after %s, want %s", s, want)
	}
}

// TestChanges_AGatewayThatSaysNothingIsGivenUp although its connection is there.
func TestChanges_AGatewayThatSaysNothingIsGivenUp(t *testing.T) {
	connections := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		connections++
		conn, err := upgrader.Upgrade(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = conn.Close() }()
		for {
			if _, raw, err := conn.ReadMessage(); err != nil {
				return
			} else if strings.Contains(string(raw), "connection_init") {
				_ = conn.WriteMessage(websocket.TextMessage, []byte(`{"type":"connection_ack"}`))
			}
		}
	}))
	defer srv.Close()
	c, err := client.New(client.Config{Server: srv.URL, Silence: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var causes []string
	req := client.ChangesRequest{Kind: client.Kind{Singular: "network"}, Lost: func(cause error) {
		if causes = append(causes, cause.Error()); len(causes) == 2 {
			stop()
		}
	}}
	for _, err := range c.Changes(ctx, req) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("ended with %v", err)
		}
	}
	if connections != 2 || !strings.Contains(causes[0], "has said nothing for 20ms") {
		t.Errorf("%d connections, %v", connections, causes)
	}
}

// TestChanges_AGatewayThatPingsIsThere although it has nothing to tell.
func TestChanges_AGatewayThatPingsIsThere(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := upgrader.Upgrade(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = conn.Close() }()
		send := func(m string) { _ = conn.WriteMessage(websocket.TextMessage, []byte(m)) }
		_, _, _ = conn.ReadMessage()
		send(`{"type":"connection_ack"}`)
		_, _, _ = conn.ReadMessage()
		pongs := make(chan struct{})
		conn.SetPongHandler(func(string) error { pongs <- struct{}{}; return nil })
		go func() {
			_, _, _ = conn.ReadMessage()
			close(pongs)
		}()
		for end := time.Now().Add(2 * time.Second); time.Now().Before(end); {
			_ = conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(time.Second))
			if _, there := <-pongs; !there {
				return // the client has given up
			}
		}
		send(`{"id":"1","type":"next","payload":{"data":{"event":{"type":"IN_SYNC"}}}}`)
	}))
	defer srv.Close()
	c, err := client.New(client.Config{Server: srv.URL, Silence: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	for change, err := range c.Changes(t.Context(), client.ChangesRequest{
		Kind: client.Kind{Singular: "network"}, Lost: func(cause error) { t.Errorf("lost: %v", cause) },
	}) {
		if err != nil || change.Type != "IN_SYNC" {
			t.Errorf("%v %v", change, err)
		}
		break
	}
}

func TestChanges_EventsOfAnyKindsGoOnAfterTheLastCursor(t *testing.T) {
	var after []string
	c := playback(t, &after, "IN_SYNC:c1 MODIFIED:c2 BOOKMARK:c3", "IN_SYNC:c3 STOP")
	got, lost := "", 0
	for change, err := range c.Changes(t.Context(), client.ChangesRequest{Namespace: "a", After: "c0", Lost: func(error) { lost++ }}) {
		if err != nil {
			t.Fatal(err)
		}
		if got += change.Type + " "; change.Type == "STOP" {
			break
		}
	}
	if want := "IN_SYNC MODIFIED IN_SYNC STOP "; got != want || lost != 1 {
		t.Errorf("events %s, want %s; lost %d times", got, want, lost)
	}
	if s, want := strings.Join(after, ","), "c0,c3"; s != want {
		t.Errorf("began after %s, want %s", s, want)
	}
}
