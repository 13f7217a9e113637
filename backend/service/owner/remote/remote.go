// Package remote carries the calls of package owner over HTTP, by the contract in
// schema/service/v1/resource.proto: [Client] calls a service at an address, and [Handler] serves
// one.
//
//	owner.Service calls        Client                                        Handler        owner.Service
//	----------------------> slot, breaker, deadline --HTTP (JSON or gRPC)--> caller ---------------------->
//	<---------------------- checked answer <--------------------------------
//
// The client validates every answer. An answer that violates the contract is an error, like any
// lost answer. If only a resource in it violates the contract, that resource is returned as
// unreadable.
package remote

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"connectrpc.com/connect"
	"github.com/sony/gobreaker/v2"

	"github.com/sluicegw/sluice/backend/service/owner"
	pb "github.com/sluicegw/sluice/schema/service/v1/resourcev1"
)

// Protocol is a protocol for the calls.
type Protocol string

// The protocols.
const (
	// ConnectJSON is the unary protocol of Connect: an HTTP POST of JSON that is answered with
	// JSON.
	ConnectJSON Protocol = "connect+json"
	// Connect is the protocol of Connect with binary messages.
	Connect Protocol = "connect"
	// GRPC is gRPC over HTTP/2, with or without TLS.
	GRPC Protocol = "grpc"
	// GRPCWeb is gRPC as pages of browsers speak it, over any HTTP.
	GRPCWeb Protocol = "grpc-web"
)

// Protocols returns all protocols, the default first.
func Protocols() []Protocol { return []Protocol{ConnectJSON, Connect, GRPC, GRPCWeb} }

// Defaults of Config.
const (
	DefaultTimeout  = 5 * time.Second
	DefaultInFlight = 64
	DefaultSlotWait = 500 * time.Millisecond
)

// Limits of a connection.
const (
	// maxAnswer is the maximum size of an answer in bytes, after decompression.
	maxAnswer = 64 << 20
	// idleTimeout is shorter than the 5 s after which servers of Node.js and Python close idle
	// connections. If a server closes a connection just when a write is sent, the answer to that
	// write is lost.
	idleTimeout = 4 * time.Second
	// An HTTP/2 connection from which nothing was read for pingAfter is pinged, and closed if there
	// is no answer within pingTimeout.
	pingAfter   = 15 * time.Second
	pingTimeout = 5 * time.Second
	maxHeader   = 64 << 10
)

// The breaker opens after tripAfter consecutive failures. After openFor it lets one call through as
// a test.
const (
	tripAfter = 5
	openFor   = time.Second
)

// Config of a [Client].
type Config struct {
	// Name of the service in errors. Required.
	Name string
	// Address is the URL of the service, http or https. The paths of calls are appended to its
	// path. Required.
	Address string
	// Protocol of the calls. Default: ConnectJSON.
	Protocol Protocol
	// TLS returns the TLS configuration of a new connection to an https address. It is not
	// modified. If TLS is nil or returns nil, the system's CAs are used, and no client certificate.
	TLS func() *tls.Config
	// Timeout bounds each call. For Changes, the requested wait is added. Default:
	// DefaultTimeout.
	Timeout time.Duration
	// InFlight is the maximum number of concurrent calls, not counting Changes.
	// Default: DefaultInFlight.
	InFlight int
	// SlotWait is how long a call waits if InFlight calls are running. Default: DefaultSlotWait.
	SlotWait time.Duration
}

// Validate returns what is wrong with the configuration, by the names of its fields.
func (c Config) Validate() error {
	var errs []error
	if c.Name == "" {
		errs = append(errs, errors.New("name: it is missing"))
	}
	if _, err := c.address(); err != nil {
		errs = append(errs, fmt.Errorf("address: %w", err))
	}
	switch c.Protocol {
	case "", ConnectJSON, Connect, GRPC, GRPCWeb:
	default:
		errs = append(errs, fmt.Errorf("protocol: %q; accepted: %s, %s, %s, %s",
			c.Protocol, ConnectJSON, Connect, GRPC, GRPCWeb))
	}
	if c.Timeout < 0 {
		errs = append(errs, fmt.Errorf("timeout: %s; a positive duration is accepted", c.Timeout))
	}
	if c.InFlight < 0 {
		errs = append(errs, fmt.Errorf("in-flight: %d; a positive number is accepted", c.InFlight))
	}
	return errors.Join(errs...)
}

// address returns the URL to which the paths of calls are appended.
func (c Config) address() (string, error) {
	const accepted = "a URL such as https://teams.example:8443 is accepted"
	u, err := url.Parse(c.Address)
	switch {
	case c.Address == "":
		return "", errors.New("it is missing; " + accepted)
	case err != nil:
		return "", fmt.Errorf("%q is no URL; %s", c.Address, accepted)
	case u.Scheme != "http" && u.Scheme != "https":
		return "", fmt.Errorf("%q has the scheme %q; http and https are accepted", c.Address, u.Scheme)
	case u.Hostname() == "":
		return "", fmt.Errorf("%q has no host; %s", c.Address, accepted)
	case u.User != nil:
		return "", errors.New("it has a user; a service knows a gateway by its client certificate")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return "", fmt.Errorf("%q has a query or a fragment; %s", c.Address, accepted)
	}
	return strings.TrimSuffix(u.String(), "/"), nil
}

// Client calls a service at an address. It is safe for concurrent use.
type Client struct {
	cfg       Config
	transport *http.Transport
	// slots has an element for each running call.
	slots    chan struct{}
	endpoint endpoint
	breaker  *gobreaker.TwoStepCircuitBreaker[struct{}]

	describe call[pb.DescribeRequest, pb.DescribeResponse]
	list     call[pb.ListRequest, pb.ListResponse]
	get      call[pb.GetRequest, pb.GetResponse]
	changes  call[pb.ChangesRequest, pb.ChangesResponse]
	write    call[pb.WriteRequest, pb.WriteResponse]
	remove   call[pb.DeleteRequest, pb.WriteResponse]
}

var _ owner.Service = (*Client)(nil)

// New returns a client. It does not connect yet.
func New(cfg Config) (*Client, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if cfg.Protocol == "" {
		cfg.Protocol = ConnectJSON
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = DefaultTimeout
	}
	if cfg.InFlight == 0 {
		cfg.InFlight = DefaultInFlight
	}
	if cfg.SlotWait == 0 {
		cfg.SlotWait = DefaultSlotWait
	}
	address, err := cfg.address()
	if err != nil {
		return nil, err
	}
	c := &Client{
		cfg:       cfg,
		transport: newTransport(cfg),
		slots:     make(chan struct{}, cfg.InFlight),
		breaker: gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
			Name:        cfg.Name,
			MaxRequests: 1,
			Timeout:     openFor,
			ReadyToTrip: func(n gobreaker.Counts) bool { return n.ConsecutiveFailures >= tripAfter },
			IsExcluded:  func(err error) bool { return errors.Is(err, errGaveUp) },
		}),
	}
	to := endpoint{client: &http.Client{Transport: c.transport, CheckRedirect: refuseRedirect}, address: address}
	to.options = []connect.ClientOption{connect.WithReadMaxBytes(maxAnswer)}
	switch cfg.Protocol {
	case GRPC:
		to.options = append(to.options, connect.WithGRPC())
	case GRPCWeb:
		to.options = append(to.options, connect.WithGRPCWeb())
	case ConnectJSON:
		to.options = append(to.options, connect.WithProtoJSON())
	}
	c.endpoint = to
	c.describe = newCall[pb.DescribeRequest, pb.DescribeResponse](to, "Describe")
	c.list = newCall[pb.ListRequest, pb.ListResponse](to, "List")
	c.get = newCall[pb.GetRequest, pb.GetResponse](to, "Get")
	c.changes = newCall[pb.ChangesRequest, pb.ChangesResponse](to, "Changes")
	c.write = newCall[pb.WriteRequest, pb.WriteResponse](to, "Write")
	c.remove = newCall[pb.DeleteRequest, pb.WriteResponse](to, "Delete")
	return c, nil
}

// Close closes the idle connections.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

// newTransport returns a transport that uses no proxy.
func newTransport(cfg Config) *http.Transport {
	t := &http.Transport{
		MaxIdleConnsPerHost:    cfg.InFlight,
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: maxHeader,
		Protocols:              new(http.Protocols),
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout},
	}
	t.Protocols.SetHTTP2(true)
	if cfg.Protocol == GRPC {
		t.Protocols.SetUnencryptedHTTP2(true)
	} else {
		t.Protocols.SetHTTP1(true)
	}
	t.DialTLSContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		return dialTLS(ctx, cfg, network, address)
	}
	return t
}

// dialTLS connects with the current TLS configuration.
func dialTLS(ctx context.Context, cfg Config, network, address string) (net.Conn, error) {
	security := &tls.Config{MinVersion: tls.VersionTLS12}
	if cfg.TLS != nil {
		if given := cfg.TLS(); given != nil {
			security = given.Clone()
		}
	}
	security.NextProtos = []string{"h2"}
	if cfg.Protocol != GRPC {
		security.NextProtos = []string{"h2", "http/1.1"}
	}
	return (&tls.Dialer{Config: security}).DialContext(ctx, network, address)
}

// refuseRedirect prevents calls from being sent to an address that is not configured.
func refuseRedirect(to *http.Request, _ []*http.Request) error {
	return fmt.Errorf("it redirects to %s; redirects are not followed", to.URL.Redacted())
}
