// Command watch shows how another Go program follows the changes of a kind:
// go run ./examples/watch networks
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/sluicegw/sluice/graph/client"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := watch(ctx, os.Args[len(os.Args)-1]); err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// watch keeps a picture of the state of a kind, through cut connections and
// restarts of the gateway.
func watch(ctx context.Context, kindName string) error {
	c, err := client.New(client.Config{Server: os.Getenv("SLUICE_SERVER"), Token: client.FixedToken(os.Getenv("SLUICE_TOKEN"))})
	if err != nil {
		return err
	}
	kind, err := c.Kind(ctx, kindName)
	if err != nil {
		return err
	}
	state := map[string]string{}
	for change, err := range c.Changes(ctx, client.ChangesRequest{Kind: kind, Snapshot: true, Format: client.YAML}) {
		if err != nil {
			return err
		}
		switch change.Type {
		case "RESET":
			clear(state)
		case "DELETED":
			delete(state, change.ResourceID)
		case "IN_SYNC":
			fmt.Printf("in sync: %d %s\n", len(state), kind.Plural)
			continue
		default:
			state[change.ResourceID] = change.Revision
		}
		if r := change.Resource; r != nil {
			fmt.Println(change.Type, key(r), change.Revision)
		}
	}
	return nil
}

func key(r *client.Resource) string {
	if r.Metadata.Namespace == nil {
		return r.Metadata.Name
	}
	return *r.Metadata.Namespace + "/" + r.Metadata.Name
}
