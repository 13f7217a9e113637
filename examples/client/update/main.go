// Command update adds 100 to the MTU of a network, whoever else changes it.
//
//	SLUICE_SERVER=http://127.0.0.1:8080 go run ./examples/client/update NAMESPACE NAME
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/sluicegw/sluice/graph/client"
)

type network struct {
	Metadata struct{ Revision string }
	Spec     struct{ Resource struct{ MTU int } }
}

func main() {
	ctx := context.Background()
	c, err := client.New(client.Config{Server: os.Getenv("SLUICE_SERVER")})
	if err != nil {
		log.Fatal(err)
	}
	key := map[string]any{"namespace": os.Args[1], "name": os.Args[2]}
	for {
		var read struct{ Network *network }
		query := `query ($namespace: String, $name: String!) {
			network(namespace: $namespace, name: $name) { metadata { revision } spec { resource { mtu } } }
		}`
		if err := c.Do(ctx, query, key, &read); err != nil {
			log.Fatal(err)
		}
		if read.Network == nil {
			log.Fatalf("there is no network %s", os.Args[2])
		}
		mtu := read.Network.Spec.Resource.MTU + 100
		input := map[string]any{
			"namespace": os.Args[1], "name": os.Args[2], "expectedRevision": read.Network.Metadata.Revision,
			"spec": map[string]any{"resource": map[string]any{"mtu": mtu}},
		}
		mutation := `mutation ($input: PatchNetworkInput!) { patchNetwork(input: $input) { network { id } } }`
		err := c.Do(ctx, mutation, map[string]any{"input": input}, &struct{}{})
		var refusal *client.Error
		if errors.As(err, &refusal) && refusal.Extensions.Code == "CONFLICT" {
			continue // somebody was faster: read again
		}
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(mtu)
		return
	}
}
