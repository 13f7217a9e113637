// Command list lists the networks of a namespace of a gateway that asks for a token. The token is in a file, which may
// be replaced while the program runs.
//
//	SLUICE_SERVER=http://127.0.0.1:8080 TOKEN_FILE=token go run ./examples/client/list NAMESPACE
package main

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"os"

	"github.com/sluicegw/sluice/graph/client"
)

func fromFile(context.Context, string) (string, error) {
	text, err := os.ReadFile(os.Getenv("TOKEN_FILE"))
	return string(bytes.TrimSpace(text)), err
}

func main() {
	ctx := context.Background()
	c, err := client.New(client.Config{Server: os.Getenv("SLUICE_SERVER"), Token: fromFile})
	if err != nil {
		log.Fatal(err)
	}
	networks, err := c.Kind(ctx, "networks")
	if err != nil {
		log.Fatal(err)
	}
	for network, err := range c.List(ctx, client.ListRequest{Kind: networks, Namespace: os.Args[1], Format: client.YAML}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(network.Metadata.Name, network.Metadata.Revision)
	}
}
