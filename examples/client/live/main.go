// Command live prints the networks of a namespace, and every change of them.
//
//	SLUICE_SERVER=http://127.0.0.1:8080 go run ./examples/client/live NAMESPACE
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"

	"github.com/sluicegw/sluice/graph/client"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	c, err := client.New(client.Config{Server: os.Getenv("SLUICE_SERVER")})
	if err != nil {
		log.Fatal(err)
	}
	networks, err := c.Kind(ctx, "networks")
	if err != nil {
		log.Fatal(err)
	}
	request := client.ChangesRequest{Kind: networks, Namespace: os.Args[1], Snapshot: true, Format: client.YAML}
	for change, err := range c.Changes(ctx, request) {
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			log.Fatal(err)
		}
		if change.Resource == nil {
			fmt.Println(change.Type)
			continue
		}
		fmt.Println(change.Type, change.Resource.Metadata.Name)
	}
}
