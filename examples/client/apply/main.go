// Command apply applies the manifest in a file, and prints everything that is wrong with it.
//
//	SLUICE_SERVER=http://127.0.0.1:8080 go run ./examples/client/apply FILE
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/sluicegw/sluice/graph/client"
)

func main() {
	c, err := client.New(client.Config{Server: os.Getenv("SLUICE_SERVER")})
	if err != nil {
		log.Fatal(err)
	}
	text, err := os.ReadFile(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	applied, err := c.Apply(context.Background(), client.ApplyRequest{Manifest: string(text)})
	var refusals client.Errors
	if errors.As(err, &refusals) {
		for _, refusal := range refusals {
			fmt.Println(refusal.Extensions.Code, refusal.Message)
		}
		os.Exit(1)
	}
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(applied.Resource.Metadata.Name, applied.Outcome)
}
