package config

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/graph/identity"
	"github.com/sluicegw/sluice/graph/server"
)

// Gateway has the values of all settings of a gateway.
type Gateway struct {
	Listen, LogLevel, LogFormat string
	// DebugListen is the address for profiles and the current activity; empty for none.
	DebugListen    string
	AllowAnonymous bool
	// ReadOnly makes the gateway refuse changes, and never write to the store.
	ReadOnly   bool
	Server     server.Config
	Store      Store
	Catalogue  Catalogue
	Identities Identities
	// Audit is the path of the audit log, or [AuditStdout]; empty for no audit log.
	Audit string
	// Rotation configures when the audit log is renamed, and how long renamed files are kept.
	Rotation Rotation
	// Bootstrap is the file from which an empty store is filled; empty for none.
	Bootstrap string
	// KeysFile is the file with the keys that encrypt sensitive values.
	KeysFile string
	// KMS is the socket of the KMS plugin that unwraps the keys; empty for none.
	KMS string
	// IndexMemory is the maximum size of the index in memory, in bytes; 0 for no index. [IndexAuto] means a share of
	// the memory that the process may use.
	IndexMemory int64
	// ReadyTimeout is the time after which the gateway reports that it is ready, even if the index is not complete.
	// [ReadyAuto] means a time that depends on the store.
	ReadyTimeout time.Duration
	// Services are the resource services of other teams, by name.
	Services Services
	// ServiceListen is the address for the standard methods; empty for none. FieldNumbers is the file with the field
	// numbers of their messages.
	ServiceListen, FieldNumbers string
	// TracesEndpoint is the URL of a collector that receives traces (OTLP over HTTP). If it is empty, traces are
	// exported only if an environment variable of OpenTelemetry asks for it, such as OTEL_EXPORTER_OTLP_ENDPOINT.
	TracesEndpoint string
	// File is the path of the configuration file.
	File string
}

// Rotation configures when the audit log is renamed, and how long renamed files are kept.
type Rotation struct {
	// MaxSize is the size in bytes from which the file is renamed.
	MaxSize int64
	// MaxAge is how long renamed files are kept; 0 for ever. MaxFiles is their maximum number; 0 for no limit.
	MaxAge   time.Duration
	MaxFiles int
	// Compress compresses renamed files.
	Compress bool
}

// AuditStdout is the value of Gateway.Audit for the standard output.
const AuditStdout = "stdout"

// IndexAuto is the default of Gateway.IndexMemory.
const IndexAuto = -1

// ReadyAuto is the default of Gateway.ReadyTimeout.
const ReadyAuto = -time.Nanosecond

// Store has the settings of the store. If URL is set, the store is on Redis, otherwise it is the embedded store.
type Store struct {
	Data                                  string
	URL, Prefix, Durability, PasswordFile string
	CA, Cert, Key                         string
	Shards, LogEntries                    int
	LogBytes                              int64
	LogAge                                time.Duration
}

// Identities has the settings about the authentication of callers.
type Identities struct {
	// Certificates are the PEM files of the gateway. If ClientCA is set, callers may use client certificates.
	Certificates identity.Certificates
	// Tokens is the file of static tokens. Issuers is the file of OpenID Connect issuers.
	Tokens, Issuers string
	// Proxies are the proxies that may name users in headers, see [identity.ParseProxies].
	Proxies []string
	// AdminGroup is the group whose members may do everything; empty for none.
	AdminGroup string
}

// Given reports whether any source of identities is configured.
func (i Identities) Given() bool {
	return i.Certificates.ClientCA != "" || i.Tokens != "" || i.Issuers != "" || len(i.Proxies) > 0
}

// Validate returns an error that joins all problems with the values.
func (i Identities) Validate() error {
	c := i.Certificates
	proxies, err := identity.ParseProxies(i.Proxies)
	errs := []error{err}
	if (c.Cert == "") != (c.Key == "") {
		errs = append(errs, errors.New("tls-cert, tls-key: both are needed"))
	}
	if c.ClientCA == "" && proxies.NeedCertificates() {
		errs = append(errs, errors.New("trust-proxy: a proxy with a certificate needs tls-client-ca"))
	}
	return errors.Join(errs...)
}

// Catalogue has the settings of the catalogue.
type Catalogue struct {
	// Dir is the folder of the SDL files. Default: the built-in kinds.
	Dir           string
	AllowBreaking bool
	// AdminSocket is the socket for operators, for example to reload the catalogue. Default: [DefaultAdminSocket] for
	// the embedded store, none for Redis.
	AdminSocket string
}

// DefaultAdminSocket returns the default path of the admin socket. data is the folder of the embedded store.
func DefaultAdminSocket(data string) string { return filepath.Join(data, "admin.sock") }

// defaultAuditSize is the default of Rotation.MaxSize.
const defaultAuditSize = 128 << 20

// NewGateway returns the default settings.
func NewGateway() *Gateway {
	g := &Gateway{
		Listen: "127.0.0.1:8080", LogLevel: "info", LogFormat: "auto", IndexMemory: IndexAuto, ReadyTimeout: ReadyAuto,
		Rotation: Rotation{MaxSize: defaultAuditSize},
		Store: Store{
			Data: "sluice-data", Prefix: "sluice:", Durability: "async",
			LogEntries: 100_000, LogBytes: 256 << 20, LogAge: 24 * time.Hour,
		},
	}
	g.Server.Limits = server.DefaultLimits()
	g.Server.AnswersMemory = server.DefaultAnswersMemory
	g.Server.Caller = server.DefaultCallerLimits(0)
	g.Server.Caller.Steps = 0 // 0 means that the limit follows from the number of processors
	return g
}

// FileFlag is the flag with the path of the configuration file. It cannot be set in that file.
const FileFlag = "config"

// Settings returns all settings. They point to the values in g.
func (g *Gateway) Settings() []Setting {
	sv := &g.Server
	st := &g.Store
	l := &g.Server.Limits
	d := &g.Server.Documents
	id := &g.Identities
	by := &g.Server.Caller
	return []Setting{
		{Name: "listen", Value: &g.Listen, Help: "address to listen on; port 0 picks a free port. Another address than loopback needs `tokens`, `oidc`, `tls-client-ca`, `trust-proxy` or `allow-anonymous`", Check: g.checkListen},
		{Name: "service-listen", Value: &g.ServiceListen, Auto: "none", Help: "address on which the kinds are served over gRPC, gRPC-Web and Connect, with the credentials, TLS and limits of `listen`; needs `field-numbers`", Check: g.checkServiceListen},
		{Name: "field-numbers", Value: &g.FieldNumbers, Needs: "service-listen", Help: "file of protobuf field numbers that `sluice proto print` writes; read again with the catalogue"},
		{
			Name:  "allow-anonymous",
			Value: &g.AllowAnonymous,
			Help:  "serve everybody who reaches an address that is not loopback",
			Check: g.checkAnonymous,
		},
		{Name: "tls-cert", Value: &id.Certificates.Cert, Help: "file with the gateway's certificate and its chain (PEM); read again when it changes"},
		{Name: "tls-key", Value: &id.Certificates.Key, Help: "file with the key (PEM) of the certificate in `tls-cert`"},
		{Name: "tls-client-ca", Value: &id.Certificates.ClientCA, Needs: "tls-cert", Help: "file with the CA certificates (PEM) of clients; their users are cert:NAME"},
		{Name: "tokens", Value: &id.Tokens, Help: "file of static tokens that `sluice token create` writes; read again when it changes. Their users are token:NAME"},
		{Name: "oidc", Value: &id.Issuers, Help: "file with the issuers of OpenID Connect (YAML) whose tokens are accepted; their users are oidc:ISSUER:NAME"},
		{Name: "trust-proxy", Value: &id.Proxies, Help: "proxies, by address (IP or CIDR) or as cert:NAME of their certificate, that may give the user and the groups in the headers " + identity.UserHeader + " and " + identity.GroupsHeader + "; their users are proxy:NAME"},
		{Name: "admin-group", Value: &id.AdminGroup, Help: "group whose members may do everything: like oidc:corp:platform, or " + access.Authenticated + " for every identified caller", Check: g.checkAdminGroup},
		{
			Name:  "catalogue",
			Value: &g.Catalogue.Dir,
			Auto:  "the built-in kinds",
			Help:  "folder of the SDL files of the kinds to serve",
		},
		{Name: "allow-breaking", Value: &g.Catalogue.AllowBreaking, Help: "start with a catalogue that cannot read everything that is stored; each such change is logged"},
		{Name: "admin-socket", Value: &g.Catalogue.AdminSocket, Auto: "`admin.sock` in the folder of the embedded store, none with `redis`", Help: "Unix socket for `sluice catalogue`, `backup` and `export`; only the gateway's own user can open it"},
		{
			Name:  "services",
			Value: &g.Services,
			Help:  "resource services of other teams, by the names in @resource(service:). The configuration file has a mapping for each, with the address and more. The flag takes NAME=ADDRESS separated by commas, or JSON",
			Check: func() error { return g.Services.Validate() },
		},
		{
			Name:  "data",
			Value: &st.Data,
			Help:  "folder of the embedded store; one process at a time",
			Check: g.checkData,
		},
		{Name: "bootstrap", Value: &g.Bootstrap, Help: "file of `sluice export`, or manifests in a file or a folder, to fill a new store with; a store that was filled before is served as it is"},
		{Name: "read-only", Value: &g.ReadOnly, Help: "serve reads and streams only, and write nothing to the store"},
		{Name: "redis", Value: &st.URL, Help: "URL of a Redis to store on instead: redis://host:port/db, redis-sentinel://host:port,.../master or redis-cluster://host:port,...; rediss for TLS"},
		{Name: "redis-password-file", Value: &st.PasswordFile, Needs: "redis", Help: "file with the password for Redis"},
		{Name: "redis-prefix", Value: &st.Prefix, Needs: "redis", Help: "prefix of all keys on Redis"},
		{
			Name:  "redis-shards",
			Value: &st.Shards,
			Needs: "redis",
			Auto:  "1, and 16 for a cluster",
			Help:  "number of shards, at most 256; fixed when the store is created",
		},
		{Name: "redis-durability", Value: &st.Durability, Needs: "redis", Help: "when a write is acknowledged: async at once, replica when a replica has it", Check: oneOf(&st.Durability, "async", "replica")},
		{
			Name:  "redis-ca",
			Value: &st.CA,
			Needs: "redis",
			Help:  "file with the CA certificates (PEM) to trust for Redis; read at the start",
		},
		{
			Name:  "redis-cert",
			Value: &st.Cert,
			Needs: "redis",
			Help:  "file with the gateway's own certificate (PEM) for Redis; read again when it changes",
		},
		{Name: "redis-key", Value: &st.Key, Needs: "redis", Help: "file with the key (PEM) of the certificate in `redis-cert`"},
		{Name: "encryption-keys-file", Value: &g.KeysFile, Help: "file with the keys that encrypt the values of sensitive kinds in the store, one a line; `sluice key create` writes it. The variable SLUICE_ENCRYPTION_KEYS can have the keys instead"},
		{Name: "encryption-kms", Value: &g.KMS, Help: "socket of a KMS plugin for Kubernetes (version v2), like /run/kms/plugin.sock, that unwraps these keys at the start"},
		{Name: "index-memory", Value: &g.IndexMemory, Auto: "a quarter of GOMEMLIMIT, or of the memory of the control group or machine", Help: "most bytes of the index, which answers reads from memory. If they are too few, the largest kinds are left out; with less than 1 MiB there is no index", Check: g.checkIndex},
		{Name: "answers-memory", Value: &sv.AnswersMemory, Help: "most bytes of kept answers to queries, at most an eighth of `index-memory`; 0 keeps none"},
		{Name: "ready-timeout", Value: &g.ReadyTimeout, Auto: "1m on Redis, 0 on the embedded store", Help: "how long a start tries to reach Redis, and how long `/readyz` answers 503 while kinds are read into memory", Check: g.checkReady},
		{Name: "retain-entries", Value: &st.LogEntries, Help: "most changes kept for streams that resume; on Redis in each shard"},
		{Name: "retain-bytes", Value: &st.LogBytes, Help: "most bytes of changes kept; on Redis in each shard"},
		{Name: "retain-age", Value: &st.LogAge, Help: "longest time that changes are kept"},
		{Name: "allowed-hosts", Value: &sv.AllowedHosts, Help: "Host names to serve besides IP addresses and localhost, without a port"},
		{Name: "allowed-origins", Value: &sv.AllowedOrigins, Help: "Origins of browsers to serve besides the gateway's own, like https://app.example.com"},
		{
			Name:  "log-level",
			Value: &g.LogLevel,
			Help:  "debug, info, warn or error",
			Check: oneOf(&g.LogLevel, "debug", "info", "warn", "error"),
		},
		{Name: "slow-log", Value: &sv.SlowLog, Auto: "none", Help: "log queries, mutations and events of subscriptions that took longer than this"},
		{Name: "access-log", Value: &sv.AccessLog, Help: "log each query and mutation when it is answered, each subscription when it begins, and each refused request"},
		{Name: "audit", Value: &g.Audit, Help: "file of the audit log, or stdout: who changed what in the store, and which requests were refused"},
		{
			Name:  "audit-max-size",
			Value: &g.Rotation.MaxSize,
			Needs: "audit",
			Help:  "size at which the file of the audit log is renamed and a new one begins",
		},
		{
			Name:  "audit-max-age",
			Value: &g.Rotation.MaxAge,
			Auto:  "for ever",
			Needs: "audit",
			Help:  "how long renamed files of the audit log are kept",
		},
		{
			Name:  "audit-max-files",
			Value: &g.Rotation.MaxFiles,
			Auto:  "all",
			Needs: "audit",
			Help:  "how many renamed files of the audit log are kept",
		},
		{
			Name:  "audit-compress",
			Value: &g.Rotation.Compress,
			Needs: "audit",
			Help:  "compress renamed files of the audit log (gzip)",
		},
		{
			Name:  "otel-endpoint",
			Value: &g.TracesEndpoint,
			Help:  "URL of a collector for traces (OTLP over HTTP with protobuf), like http://localhost:4318; `/v1/traces` is added. The other settings are variables of OpenTelemetry",
			Check: g.checkTraces,
		},
		{
			Name:  "log-format",
			Value: &g.LogFormat,
			Help:  "console, json, or auto: console on a terminal",
			Check: oneOf(&g.LogFormat, "auto", "console", "json"),
		},

		{
			Name:  "debug-listen",
			Value: &g.DebugListen,
			Auto:  "none",
			Help: "loopback address for Go's profiles (`/debug/pprof/`) and the state of the gateway (`/debug/state`); " +
				"everybody on this machine can read them",
			Check: g.checkDebugListen,
		},
		{Name: "limit-body", Value: &l.Body, Help: "most bytes of the body of a request, and of a WebSocket message", Why: "a bulk of manifests fits; a request is held in memory while it runs"},
		{Name: "limit-memory", Value: &l.Memory, Auto: "16 MiB for each processor, but at least 64 MiB, 8 times `limit-body`, and 4 times `limit-answer`", Help: "most bytes in memory for all clients together: for requests, running operations, and answers and events that are being sent", Why: "clients that send slowly, do not read, or ask for much at once must not take all memory. With garbage, the process takes up to two and a half times as much"},
		{Name: "limit-time", Value: &l.Time, Help: "how long a query or mutation may take, with parsing and validation", Why: "longer than any answer within the other limits takes, shorter than the time limits of proxies"},
		{Name: "limit-depth", Value: &l.Depth, Help: "deepest nesting of a document, fragments expanded, and of each value in it", Why: "a full introspection has 13 levels"},
		{
			Name:  "limit-aliases",
			Value: &l.Aliases,
			Help:  "most aliased fields of a document",
			Why:   "each alias repeats work",
		},
		{Name: "limit-fields", Value: &l.Fields, Help: "most fields and fragment spreads of a document, fragments expanded", Why: "a page of a frontend selects some hundred fields"},
		{
			Name:  "limit-rows",
			Value: &l.Rows,
			Help:  "most resources that an operation may read from the store",
			Why:   "they take 0.1 s to read from memory, more from disk",
		},
		{Name: "limit-steps", Value: &l.Steps, Help: "most work of an operation, in steps of about 0.1 µs of one processor. Looking at a resource in memory takes 2 steps, each test of a filter 1 (a test for contained text 9), reading a resource from the store 25, returning a resource 10, a page or a count 250, each resource that the store counts 4, a value of an introspection 60, an object without a kind 75, and each of its fields 15. Inputs count by their size, and rules by their cost in CEL", Why: "about a second of one processor. A page of 1,000 resources with 19 counts each takes half of the limit, an introspection of the 27 built-in kinds two thirds"},
		{Name: "limit-answer", Value: &l.Answer, Help: "most bytes of an answer", Why: "bounds the memory for one client; browsers are slow with more"},
		{Name: "limit-held", Value: &l.Held, Help: "most bytes of stored resources and of arguments that an operation holds at a time", Why: "20,000 small resources, or 30 of the largest"},
		{Name: "limit-sockets", Value: &l.Sockets, Help: "most WebSocket connections, and most connections that receive server-sent events. Each needs a file descriptor", Why: "an idle connection takes 15 to 30 KB"},

		{Name: "limit-caller-requests", Value: &by.Requests, Help: "most queries and mutations of one caller at a time. A caller is a user, or the address of an anonymous client (its /64 network for IPv6). Anonymous clients on this machine are not limited", Why: "one client with many connections leaves room for others"},
		{
			Name:  "limit-caller-rate",
			Value: &by.Rate,
			Help:  "most operations that one caller begins in a second",
			Why:   "a quarter of one processor for small reads",
		},
		{Name: "limit-caller-steps", Value: &by.Steps, Auto: "half of what the processors do", Help: "most steps (see `limit-steps`) that the queries and mutations of one caller take in a second. A document that is not in the cache takes one step for each token, and one for each comparison of `limit-validation`. A caller that used more has to wait", Why: "the other half is for other callers"},
		{
			Name:  "limit-caller-subscriptions",
			Value: &by.Subscriptions,
			Help:  "most open subscriptions of one caller",
			Why:   "a dashboard has some dozen; equal ones share their work",
		},
		{Name: "limit-caller-sockets", Value: &by.Sockets, Help: "most WebSocket connections of one caller", Why: "a tenth of `limit-sockets`"},

		{Name: "trusted-documents", Value: &d.Trusted, Help: "manifests of trusted documents that the compilers of Apollo, Relay or GraphQL Code Generator wrote"},
		{Name: "trusted-only", Value: &d.TrustedOnly, Help: "execute only trusted documents and those of the command line"},
		{Name: "hide-introspection", Value: &sv.HideIntrospection, Help: "refuse introspection, and suggest no names in errors"},
		{Name: "drain-delay", Value: &sv.DrainDelay, Help: "how long the gateway serves after SIGTERM while `/readyz` answers 503, so that load balancers notice"},
	}
}

// Validate returns an error that joins all problems with the values. f has the flags, which show which settings were
// given.
func (g *Gateway) Validate(f *pflag.FlagSet) error {
	errs := []error{Check(f, g.Settings()), g.Identities.Validate()}
	if f.Changed("data") && g.Store.URL != "" {
		errs = append(errs, errors.New("data, redis: choose one of the two stores"))
	}
	if f.Changed("catalogue") && g.Catalogue.Dir == "" {
		errs = append(errs, errors.New("catalogue: it is empty; name a folder, or leave it out for the built-in kinds"))
	}
	if g.Audit == AuditStdout {
		for _, name := range []string{"audit-max-size", "audit-max-age", "audit-max-files", "audit-compress"} {
			if f.Changed(name) {
				errs = append(errs, fmt.Errorf("%s: has no effect with audit: stdout, which is no file", name))
			}
		}
	}
	if errs[0] == nil { // otherwise the same problems would be returned twice
		errs = append(errs, g.Server.ValidateSettings())
	}
	return errors.Join(errs...)
}

func oneOf(value *string, accepted ...string) func() error {
	return func() error {
		if slices.Contains(accepted, *value) {
			return nil
		}
		return fmt.Errorf("%q; accepted are %s", *value, strings.Join(accepted, ", "))
	}
}

// checkTraces returns an error if TracesEndpoint is not the URL of a collector.
func (g *Gateway) checkTraces() error {
	if g.TracesEndpoint == "" {
		return nil
	}
	return CheckCollector(g.TracesEndpoint)
}

// CheckCollector returns an error if a text is not the URL of a collector of traces. The error does not quote the text.
func CheckCollector(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Host == "":
		return errors.New("it is no URL of a collector; one like http://localhost:4318 is accepted")
	case u.User != nil:
		return errors.New("it has a user; put credentials into OTEL_EXPORTER_OTLP_HEADERS")
	case u.RawQuery != "", u.Fragment != "":
		return errors.New("it has a query or a fragment; one like http://localhost:4318 is accepted")
	}
	return nil
}

func (g *Gateway) checkIndex() error {
	if g.IndexMemory < 0 && g.IndexMemory != IndexAuto {
		return fmt.Errorf("%d is negative; 0 is for no index", g.IndexMemory)
	}
	return nil
}

func (g *Gateway) checkReady() error {
	if g.ReadyTimeout < 0 && g.ReadyTimeout != ReadyAuto {
		return fmt.Errorf("%s is negative; 0 is to be ready at once", g.ReadyTimeout)
	}
	return nil
}

func (g *Gateway) checkData() error {
	if g.Store.Data == "" {
		return errors.New("it is empty; name a folder, . for the current one")
	}
	return nil
}

// checkAnonymous returns an error if the settings about anonymous callers contradict each other.
func (g *Gateway) checkAnonymous() error {
	if g.AllowAnonymous && g.Identities.Given() {
		return errors.New("it contradicts tokens, oidc, tls-client-ca and trust-proxy, with which every caller needs a credential")
	}
	return nil
}

// checkAdminGroup returns an error if no caller can be in the group.
func (g *Gateway) checkAdminGroup() error {
	group := g.Identities.AdminGroup
	source, name, _ := strings.Cut(group, ":")
	switch {
	case group == "":
	case !g.Identities.Given():
		return errors.New("it needs tokens, oidc, tls-client-ca or trust-proxy: without one of them nobody is identified, and everybody may do everything")
	case group == access.Authenticated:
	case name != "" && slices.Contains([]string{"token", "oidc", "cert", "proxy"}, source):
	default:
		return fmt.Errorf("%q is no group of a caller: they begin with token:, oidc:ISSUER:, cert: or proxy:, and %s is everybody", group, access.Authenticated)
	}
	return nil
}

// Loopback reports whether a host name or address stands for this machine.
func Loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// checkDebugListen returns an error if the address can be reached from the network.
func (g *Gateway) checkDebugListen() error {
	if g.DebugListen == "" {
		return nil
	}
	host, _, err := net.SplitHostPort(g.DebugListen)
	if err != nil {
		return fmt.Errorf("%q is not an address like 127.0.0.1:6060", g.DebugListen)
	}
	if !Loopback(host) {
		return fmt.Errorf("%s is not loopback, and profiles are for whoever is on this machine: give an address like 127.0.0.1:6060, "+
			"and reach it from another machine with ssh -L or kubectl port-forward", g.DebugListen)
	}
	return nil
}

// checkListen returns an error if the address can be reached from the network and no setting shows that this is
// intended.
func (g *Gateway) checkListen() error { return g.checkAddress(g.Listen, "127.0.0.1:8080") }

// checkServiceListen is like checkListen for ServiceListen.
func (g *Gateway) checkServiceListen() error {
	switch {
	case g.ServiceListen == "":
		return nil
	case g.FieldNumbers == "":
		return errors.New("it needs field-numbers: the file that sluice proto print --numbers keeps")
	}
	return g.checkAddress(g.ServiceListen, "127.0.0.1:8081")
}

func (g *Gateway) checkAddress(address, example string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("%q is not an address like %s", address, example)
	}
	if g.AllowAnonymous || g.Identities.Given() || Loopback(host) {
		return nil
	}
	return fmt.Errorf("%s is not loopback, and everybody who reaches it may read and change everything; say who may with --tokens, --oidc, --tls-client-ca or --trust-proxy, or allow everybody with --allow-anonymous", address)
}
