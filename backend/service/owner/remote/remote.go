// Package remote connects package owner with services over HTTP, by the contract in schema/service/v1/resource.proto.
// [Client] calls a service at an address. [Handler] serves a service.
//
//	owner.Service calls        Client                                        Handler        owner.Service
//	----------------------> slot, breaker, deadline --HTTP (JSON or gRPC)--> caller ---------------------->
//	<---------------------- checked answer <--------------------------------
//
// The client checks every answer. An answer that violates the contract is an error, like a lost answer. If only one
// resource in it violates the contract, that resource is returned as unreadable.
package remote

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"connectrpc.com/connect"
	"github.com/sony/gobreaker/v2"

	"github.com/sluicegw/sluice/backend/service/owner"
	pb "github.com/sluicegw/sluice/schema/service/v1/resourcev1"
)

// Protocol is a protocol for calls of a service.
type Protocol string

// The protocols of [Config].
const (
	// ConnectJSON is the unary protocol of Connect: an HTTP POST with JSON, and an answer with JSON.
	ConnectJSON Protocol = "connect+json"
	// Connect is the protocol of Connect with binary messages.
	Connect Protocol = "connect"
	// GRPC is gRPC over HTTP/2. It works with and without TLS.
	GRPC Protocol = "grpc"
	// GRPCWeb is gRPC for web pages, over any version of HTTP.
	GRPCWeb Protocol = "grpc-web"
)

// Protocols returns all protocols. The first is the default.
func Protocols() []Protocol { return []Protocol{ConnectJSON, Connect, GRPC, GRPCWeb} }

// The defaults of Config.
const (
	DefaultTimeout  = 5 * time.Second
	DefaultInFlight = 64
	DefaultSlotWait = 500 * time.Millisecond
)

// The limits of a connection.
const (
	// maxAnswer is the maximum size of an answer in bytes, after decompression.
	maxAnswer = 64 << 20
	// idleTimeout is the time after which the client closes idle connections. Servers of Node.js and Python close them
	// after 5 s. If a server closes a connection just when a write is sent, the answer is lost. Therefore the client
	// must close connections earlier.
	idleTimeout = 4 * time.Second
	// If nothing was read from an HTTP/2 connection for pingAfter, a ping is sent. If the ping is not answered within
	// pingTimeout, the connection is closed.
	pingAfter   = 15 * time.Second
	pingTimeout = 5 * time.Second
	maxHeader   = 64 << 10
)

// The circuit breaker opens after tripAfter failures in a row. While it is open, no calls are sent. After openFor it
// allows one call as a test.
const (
	tripAfter = 5
	openFor   = time.Second
)

// Config configures a [Client].
type Config struct {
	// Name is the name of the service in errors. It is required.
	Name string
	// Address is the URL of the service, with the scheme http or https. The paths of calls are appended to its path. It
	// is required.
	Address string
	// Protocol is the protocol of calls. The default is ConnectJSON.
	Protocol Protocol
	// TLS returns the TLS configuration for a new connection to an https address. The client does not modify the
	// result. If TLS is nil or returns nil, the client trusts the CAs of the system and has no client certificate.
	TLS func() *tls.Config
	// Timeout is the time limit of a call. For Changes, the requested wait is added to it. The default is
	// DefaultTimeout.
	Timeout time.Duration
	// InFlight is the maximum number of concurrent calls, not counting Changes. The default is DefaultInFlight.
	InFlight int
	// SlotWait is how long a call waits for another call to end if there are already InFlight calls. The default is
	// DefaultSlotWait.
	SlotWait time.Duration
}

// Validate returns an error that joins all problems with the configuration and names the fields.
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

// address returns the URL to which the path of a call is appended.
func (c Config) address() (string, error) {
	const accepted = "a URL such as https://teams.example:8443 is accepted"
	u, err := url.Parse(c.Address)
	switch {
	case c.Address == "":
		return "", errors.New("it is missing; " + accepted)
	case err != nil:
		return "", fmt.Errorf("%s is no URL; %s", c.shownAddress(), accepted)
	case u.Scheme != "http" && u.Scheme != "https":
		return "", fmt.Errorf("%s has the scheme %q; http and https are accepted", c.shownAddress(), u.Scheme)
	case u.Hostname() == "":
		return "", fmt.Errorf("%s has no host; %s", c.shownAddress(), accepted)
	case u.User != nil:
		return "", errors.New("it has a user; a service knows a gateway by its client certificate")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return "", fmt.Errorf("it has a query or a fragment; %s", accepted)
	}
	return strings.TrimSuffix(u.String(), "/"), nil
}

// shownAddress returns the address for an error: in quotes, or "it" if the address may have a credential.
func (c Config) shownAddress() string {
	if strings.ContainsAny(c.Address, "@?#") {
		return "it"
	}
	return strconv.Quote(c.Address)
}

// Client calls a service at an address. It is safe for concurrent use.
type Client struct {
	cfg       Config
	transport *http.Transport
	// slots has an element for each call in progress.
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
	var sender http.RoundTripper = limited{c.transport}
	if cfg.Protocol == GRPC {
		sender = repeating{c.transport}
	}
	to := endpoint{client: &http.Client{Transport: sender, CheckRedirect: refuseRedirect}, address: address}
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

// Close closes idle connections.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

// newTransport returns a transport. It never uses a proxy.
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

// refuseRedirect returns an error, because a call must not be sent to an address that is not configured.
func refuseRedirect(to *http.Request, _ []*http.Request) error {
	return fmt.Errorf("it redirects to %s; redirects are not followed", to.URL.Redacted())
}
