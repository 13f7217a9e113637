// Command genqlient drives a gateway by code that genqlient generated: pages,
// a mutation, a conflict and a subscription. Its module is its own, so that the
// gateway's does not know genqlient. It prints what it saw; an error is exit 1.
package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/Khan/genqlient/graphql"
	"github.com/coder/websocket"
	"github.com/vektah/gqlparser/v2/gqlerror"
)

func main() {
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	if err := run(ctx, os.Getenv("SLUICE_URL")+"/graphql"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, endpoint string) error {
	client := graphql.NewClient(endpoint, http.DefaultClient)
	socket := graphql.NewClientUsingWebSocket("ws"+strings.TrimPrefix(endpoint, "http"), dialer{})
	failed, err := socket.Start(ctx)
	if err != nil {
		return fmt.Errorf("start the socket: %w", err)
	}
	events, _, err := changes(ctx, socket)
	if err != nil {
		return fmt.Errorf("subscribe: %w", err)
	}
	next := func() (string, error) {
		select {
		case e := <-events:
			if e.Errors != nil {
				return "", e.Errors
			}
			return string(e.Data.NetworkChanges.Type), nil
		case err := <-failed:
			return "", fmt.Errorf("socket: %w", err)
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
	seen, err := next()
	if err != nil {
		return err
	}
	var revision string
	for _, name := range []string{"a", "b", "c"} {
		made, err := create(ctx, client, name)
		if err != nil {
			return fmt.Errorf("create: %w", err)
		}
		revision = made.CreateNetwork.Network.Metadata.Revision
		one, err := next()
		if err != nil {
			return err
		}
		seen += " " + one
	}
	if err := socket.Close(); err != nil {
		return fmt.Errorf("unsubscribe and close the socket: %w", err)
	}
	fmt.Println("changes:", seen)

	var names []string
	for after, more := "", true; more; {
		page, err := pages(ctx, client, 2, after) // after is "" at first, as genqlient has it
		if err != nil {
			return fmt.Errorf("page: %w", err)
		}
		for _, edge := range page.Networks.Edges {
			names = append(names, edge.Node.Metadata.Name)
		}
		after, more = page.Networks.PageInfo.EndCursor, page.Networks.PageInfo.HasNextPage
	}
	fmt.Println("pages:", names)

	if _, err := patch(ctx, client, "c", revision, 1400); err != nil {
		return fmt.Errorf("patch: %w", err)
	}
	_, err = patch(ctx, client, "c", revision, 1300)
	var list gqlerror.List
	if !errors.As(err, &list) || list[0].Extensions["currentRevision"] == nil {
		return fmt.Errorf("no conflict but %w", err)
	}
	fmt.Println("conflict:", list[0].Extensions["code"])
	return nil
}

// dialer is genqlient's view of a WebSocket library.
type dialer struct{}

type connection struct{ *websocket.Conn }

func (dialer) DialContext(ctx context.Context, url string, header http.Header) (graphql.WSConn, error) {
	conn, _, err := websocket.Dial(ctx, url, &websocket.DialOptions{HTTPHeader: header, Subprotocols: []string{"graphql-transport-ws"}})
	if err != nil {
		return nil, err
	}
	return connection{conn}, nil
}

func (c connection) Close() error { return c.Conn.Close(websocket.StatusNormalClosure, "") }

// closeFrame is how genqlient asks for a close frame; Close sends one by itself.
const closeFrame = 8

func (c connection) WriteMessage(kind int, data []byte) error {
	if kind == closeFrame {
		return nil
	}
	return c.Conn.Write(context.Background(), websocket.MessageType(kind), data)
}

func (c connection) ReadMessage() (int, []byte, error) {
	kind, data, err := c.Conn.Read(context.Background())
	return int(kind), data, err
}
