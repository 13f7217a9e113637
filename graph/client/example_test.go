package client_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"

	"github.com/sluicegw/sluice/graph/client"
)

// Keeps a picture of the state of a kind, through cut connections and restarts of the gateway.
func ExampleClient_Changes() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	c, err := client.New(client.Config{Server: os.Getenv("SLUICE_SERVER"), Token: client.FixedToken(os.Getenv("SLUICE_TOKEN"))})
	if err != nil {
		log.Fatal(err)
	}
	networks, err := c.Kind(ctx, "networks")
	if err != nil {
		log.Fatal(err)
	}
	state := map[string]string{}
	for change, err := range c.Changes(ctx, client.ChangesRequest{Kind: networks, Snapshot: true, Format: client.YAML}) {
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			log.Fatal(err)
		}
		switch change.Type {
		case "RESET":
			clear(state)
		case "DELETED":
			delete(state, change.ResourceID)
		case "IN_SYNC":
			fmt.Println("in sync:", len(state), networks.Plural)
			continue
		default:
			state[change.ResourceID] = change.Revision
		}
		if r := change.Resource; r != nil {
			fmt.Println(change.Type, r.Metadata.Name, change.Revision)
		}
	}
}
