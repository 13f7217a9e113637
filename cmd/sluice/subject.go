package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/sluicegw/sluice/graph/client"
)

// subject is a resource that a command line names.
type subject struct {
	kind client.Kind
	name string
}

// kindCache asks the gateway once for each kind that a command names.
type kindCache struct {
	client *client.Client
	known  map[string]client.Kind
}

func (c *kindCache) find(ctx context.Context, name string) (client.Kind, error) {
	if kind, ok := c.known[name]; ok {
		return kind, nil
	}
	kind, err := c.client.Kind(ctx, name)
	if err != nil {
		return kind, err
	}
	if c.known == nil {
		c.known = map[string]client.Kind{}
	}
	c.known[name] = kind
	return kind, nil
}

// subjects reads KIND NAME..., or KIND/NAME....
func subjects(ctx context.Context, c *client.Client, args []string) ([]subject, error) {
	kinds := kindCache{client: c}
	wrong := usageError{errors.New("name the resources as KIND NAME... or as KIND/NAME...")}
	if len(args) == 0 {
		return nil, wrong
	}
	var out []subject
	if !strings.Contains(args[0], "/") {
		if len(args) == 1 {
			return nil, wrong
		}
		kind, err := kinds.find(ctx, args[0])
		if err != nil {
			return nil, err
		}
		for _, name := range args[1:] {
			if strings.Contains(name, "/") {
				return nil, usageError{fmt.Errorf("%q: behind a kind there are names; or name all as KIND/NAME", name)}
			}
			out = append(out, subject{kind: kind, name: name})
		}
		return out, nil
	}
	for _, arg := range args {
		kindName, name, ok := strings.Cut(arg, "/")
		if !ok || kindName == "" || name == "" || strings.Contains(name, "/") {
			return nil, usageError{fmt.Errorf("%q: KIND/NAME is wanted, as in network/net-a", arg)}
		}
		kind, err := kinds.find(ctx, kindName)
		if err != nil {
			return nil, err
		}
		out = append(out, subject{kind: kind, name: name})
	}
	return out, nil
}

// failures are what went wrong with some of many resources; the user has been told.
type failures struct{ absent, other int }

func (f *failures) note(err error) {
	var absent notFoundError
	if code(err) == "NOT_FOUND" || errors.As(err, &absent) {
		f.absent++
		return
	}
	f.other++
}

// result is the error that the command ends with: that something is not there if that
// is all that is wrong.
func (f *failures) result() error {
	switch {
	case f.other > 0:
		return errReported
	case f.absent > 0:
		return notFoundError{errReported}
	}
	return nil
}
