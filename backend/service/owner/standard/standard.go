// Package standard is a client of gRPC services of other teams that were not made for the gateway. They must have
// standard methods, which create, get, list, update and delete resources. The descriptors of a service define its
// messages, and a [Mapping] maps these messages to kinds. Parts that the mapping leaves out are found by the
// conventions of Teleport's RFD 153 and of Google's API improvement proposals (https://google.aip.dev).
//
//	owner.Service calls        Client                                              any gRPC service
//	----------------------> message of the descriptors, mask, tag --remote.Method--> CreateFoo, ...
//	<---------------------- JSON, outcome of status and details  <------------------
//
// The capabilities of a service follow from its methods. Without a stream of events, the gateway finds changes only
// when it compares all resources. Without a tag, updates are not conditional. Without a method that creates, kinds have
// no CREATE.
package standard

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/owner"
	"github.com/sluicegw/sluice/backend/service/owner/remote"
)

// Config configures a [Client].
type Config struct {
	// Remote configures the connection to the service. The default of its Protocol is gRPC.
	Remote remote.Config
	// Descriptors describe the API. Mapping maps its messages to kinds. Both are required.
	Descriptors *Descriptors
	Mapping     *Mapping
}

type caller = *remote.Method[dynamicpb.Message, dynamicpb.Message]

// Client is a service with standard methods. It is safe for concurrent use.
type Client struct {
	name   string
	remote *remote.Client
	plans  map[string]*plan
	// follower follows the streams of events; nil if there are none.
	follower *follower
}

var _ owner.Service = (*Client)(nil)

// New returns a client. It does not connect yet. The error joins all problems with the mapping.
func New(cfg Config) (*Client, error) {
	plans, err := compile(cfg.Descriptors, cfg.Mapping)
	if err != nil {
		return nil, err
	}
	if cfg.Remote.Protocol == "" {
		cfg.Remote.Protocol = remote.GRPC
	}
	connection, err := remote.New(cfg.Remote)
	if err != nil {
		return nil, err
	}
	c := &Client{name: cfg.Remote.Name, remote: connection, plans: plans}
	var watched []*plan
	for _, name := range slices.Sorted(maps.Keys(plans)) {
		p := plans[name]
		for _, m := range []*method{p.get, p.list, p.create, p.update, p.upsert, p.remove, p.watch, p.operation} {
			if m != nil {
				m.call = newCall(connection, m)
			}
		}
		if p.watch != nil {
			watched = append(watched, p)
		}
	}
	if len(watched) > 0 {
		c.follower = newFollower(watched)
	}
	return c, nil
}

// newCall returns a caller of m whose answers are dynamic messages.
func newCall(c *remote.Client, m *method) caller {
	answer := dynamicpb.NewMessageType(m.Output())
	return remote.NewMethod[dynamicpb.Message, dynamicpb.Message](c, m.path(),
		connect.WithSchema(m.MethodDescriptor),
		connect.WithResponseInitializer(func(_ connect.Spec, message any) error {
			to, ok := message.(*dynamicpb.Message)
			if !ok {
				return fmt.Errorf("an answer cannot be a %T", message)
			}
			made, ok := answer.New().Interface().(*dynamicpb.Message)
			if !ok {
				return errors.New("an answer is of no dynamic type")
			}
			*to = *made
			return nil
		}))
}

// compile compiles the kinds of a mapping.
func compile(d *Descriptors, m *Mapping) (map[string]*plan, error) {
	switch {
	case d == nil:
		return nil, errors.New("the descriptors are missing")
	case m == nil || len(m.Kinds) == 0:
		return nil, errors.New("the mapping has no kinds")
	}
	out := map[string]*plan{}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(m.Kinds)) {
		given := m.Kinds[name]
		if given == nil {
			given = &KindMapping{}
		}
		p, err := d.compile(name, given)
		if err != nil {
			for line := range strings.SplitSeq(err.Error(), "\n") {
				errs = append(errs, fmt.Errorf("kinds.%s: %s", name, line))
			}
			continue
		}
		out[name] = p
	}
	return out, errors.Join(errs...)
}

// Close ends the streams of events and closes idle connections.
func (c *Client) Close() {
	if c.follower != nil {
		c.follower.close()
	}
	c.remote.Close()
}

// CloseIdle closes idle connections.
func (c *Client) CloseIdle() { c.remote.Close() }

// Describe implements [owner.Service]. It also reads a page of one resource, so that it fails if the service does not
// answer.
func (c *Client) Describe(ctx context.Context) (owner.Description, error) {
	out := owner.Description{Service: c.name}
	for i, name := range slices.Sorted(maps.Keys(c.plans)) {
		p := c.plans[name]
		if i == 0 {
			if _, err := c.List(ctx, name, "", 1); err != nil {
				return owner.Description{}, err
			}
		}
		can := p.described()
		can.Changes = can.Changes && !c.follower.refused.Load()
		out.Kinds = append(out.Kinds, can)
	}
	return out, nil
}

// plan returns the plan of a kind, or an error if the mapping does not have the kind.
func (c *Client) plan(kind string) (*plan, error) {
	if p := c.plans[kind]; p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("service %s: %w: the mapping has no kind %q", c.name, owner.ErrNotSent, shortText(kind))
}

// checkKey returns an error if the service cannot have a resource with this key.
func (p *plan) checkKey(key backend.Key) error {
	switch {
	case strings.ContainsAny(key.Name+key.Namespace, "/"):
		return errors.New("a name cannot have a /")
	case p.namespaced() && key.Namespace == "":
		return errors.New("the namespace is missing")
	case !p.namespaced() && key.Namespace != "":
		return errors.New("the service has no namespaces")
	}
	return nil
}
