package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicegw/sluice/graph/client"
)

// remote are the flags of every command that speaks to a gateway.
type remote struct {
	server, namespace string
	timeout           time.Duration
}

func (r *remote) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&r.server, "server", client.DefaultServer, "URL of the gateway")
	cmd.Flags().StringVarP(&r.namespace, "namespace", "n", "", `namespace (default "default"; ignored for GLOBAL kinds)`)
	cmd.Flags().DurationVar(&r.timeout, "timeout", 30*time.Second, "how long one request may take")
}

func (r *remote) client(cmd *cobra.Command) (*client.Client, error) {
	if err := loadSettings(cmd); err != nil {
		return nil, err
	}
	c, err := client.New(client.Config{Server: r.server, Timeout: r.timeout})
	if err != nil {
		return nil, usageError{err}
	}
	return c, nil
}

// explain prints the errors of the API in a person's words, one a line.
func explain(std streams, where string, err error) {
	all := client.Errors{}
	if !errors.As(err, &all) {
		_, _ = fmt.Fprintf(std.err, "%s: %v\n", where, err)
		return
	}
	for _, e := range all {
		_, _ = fmt.Fprintf(std.err, "%s: %s\n", where, e.Message)
	}
}
