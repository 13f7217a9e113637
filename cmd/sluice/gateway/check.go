package gateway

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/audit"
	"github.com/sluicegw/sluice/backend/bolt"
	"github.com/sluicegw/sluice/backend/catalogue"
	"github.com/sluicegw/sluice/backend/keyring"
	"github.com/sluicegw/sluice/backend/redis"
	"github.com/sluicegw/sluice/backend/state"
	"github.com/sluicegw/sluice/cmd/sluice/config"
	"github.com/sluicegw/sluice/cmd/sluice/reload"
	"github.com/sluicegw/sluice/cmd/sluice/sdl"
	"github.com/sluicegw/sluice/graph/identity"
	"github.com/sluicegw/sluice/internal/certificate"
)

// Report is the result of a check.
type Report struct {
	// Problems are the reasons why a gateway could not serve, or could not serve as its settings demand. Each is one
	// line.
	Problems []string
	// Notes are lines about what could not be checked, and about what a start would create.
	Notes []string
}

// problem adds each line of err as a problem. The line begins with the name of the setting, if there is one.
func (r *Report) problem(setting string, err error) {
	if err == nil {
		return
	}
	for _, line := range ErrorLines(err) {
		if setting != "" && !strings.HasPrefix(line, setting+":") {
			line = setting + ": " + line
		}
		r.Problems = append(r.Problems, line)
	}
}

func (r *Report) note(format string, args ...any) {
	r.Notes = append(r.Notes, fmt.Sprintf(format, args...))
}

// ErrorLines returns the lines of an error; none for nil. A refused catalogue has one line for each reason.
func ErrorLines(err error) []string {
	if err == nil {
		return nil
	}
	lines := strings.Split(err.Error(), "\n")
	if refused, ok := errors.AsType[*catalogue.RefusedError](err); ok {
		all := refused.Lines()
		lines = nil
		for _, reason := range refused.Reasons {
			lines = append(lines, all[0]+" "+reason+"; "+all[len(all)-1])
		}
	}
	return lines
}

// Check finds the problems that would prevent a gateway with these settings from serving. It reads files and the store,
// and changes nothing. It does not check the values of settings; see [config.Gateway.Validate].
func (s *Gateway) Check(ctx context.Context, log *zap.Logger) (Report, error) {
	var r Report
	for _, file := range s.files() {
		r.problem(file.setting, config.RefuseNamedPipe(file.path))
	}
	if len(r.Problems) > 0 {
		r.note("nothing else was checked, since the content of the named pipes is not known")
		return r, nil
	}
	for _, at := range s.listeners() {
		checkListener(&r, at.setting, at.address)
	}
	checkOneAddress(&r, s.listeners())
	s.checkIdentities(ctx, &r)
	r.problem("", traceSettings{endpoint: s.TracesEndpoint, lookup: os.Getenv}.check(ctx))
	if s.Services.Validate() == nil { // otherwise Validate reports the problem
		ownerClients, err := openOwners(ctx, s.Services, zap.NewNop())
		r.problem("", err)
		r.problem("", ownerClients.check(time.Now()))
	}
	for _, err := range s.Server.CheckFiles() {
		r.problem("", err)
	}
	unlocked, keysErr := KeySource{File: s.KeysFile, KMS: s.KMS}.read(ctx)
	r.problem("", keysErr)
	if unlocked.stale != "" {
		r.note("%s", unlocked.stale)
	}
	c, catalogueErr := sdl.Read(s.Catalogue.Dir)
	r.problem("catalogue", catalogueErr)
	if catalogueErr == nil {
		for _, line := range unconfigured(c.Stored, s.asks) {
			r.problem("services", errors.New(line))
		}
		r.problem("field-numbers", s.refuseUnnumbered(&c))
	} else {
		r.problem("field-numbers", s.refuseUnnumbered(nil))
	}
	on := &storeCheck{
		gateway: s, keys: unlocked.ring, keysGiven: unlocked.ring != nil || keysErr != nil, log: log, report: &r,
	}
	if catalogueErr == nil {
		on.catalogue = &c
	}
	on.run(ctx)
	s.checkAdminSocket(on)
	s.checkAudit(on)
	for _, at := range s.listeners() {
		checkFree(ctx, on, at)
	}
	return r, ctx.Err()
}

// settingFile is a file that a setting names.
type settingFile struct{ setting, path string }

// files returns the files that the gateway reads once at the start, or when they change.
func (s *Gateway) files() (out []settingFile) {
	certificates := s.Identities.Certificates
	all := []settingFile{
		{"tls-cert", certificates.Cert},
		{"tls-key", certificates.Key},
		{"tls-client-ca", certificates.ClientCA},
		{"tokens", s.Identities.Tokens},
		{"oidc", s.Identities.Issuers},
		{"encryption-keys-file", s.KeysFile},
		{"field-numbers", s.FieldNumbers},
		{"redis-password-file", s.Store.PasswordFile},
		{"redis-ca", s.Store.CA},
		{"redis-cert", s.Store.Cert},
		{"redis-key", s.Store.Key},
	}
	for _, path := range s.Server.Documents.Trusted {
		all = append(all, settingFile{"trusted-documents", path})
	}
	for _, name := range slices.Sorted(maps.Keys(s.Services)) {
		service := s.Services[name]
		for _, path := range []string{service.CA, service.Cert, service.Key, service.Mapping} {
			all = append(all, settingFile{"services: " + name, path})
		}
	}
	for _, prefix := range []string{exporterPrefix, tracesPrefix} {
		for _, name := range []string{"CERTIFICATE", "CLIENT_CERTIFICATE", "CLIENT_KEY"} {
			all = append(all, settingFile{prefix + name, strings.TrimSpace(os.Getenv(prefix + name))})
		}
	}
	for _, file := range all {
		if file.path != "" {
			out = append(out, file)
		}
	}
	return out
}

// listener is a setting with an address on which the gateway listens.
type listener struct{ setting, address string }

// listeners returns the addresses on which the gateway listens.
func (s *Gateway) listeners() (out []listener) {
	for _, at := range []listener{
		{"listen", s.Listen},
		{"service-listen", s.ServiceListen},
		{"debug-listen", s.DebugListen},
	} {
		if at.address != "" {
			out = append(out, at)
		}
	}
	return out
}

// checkOneAddress checks that no two settings have the same address.
func checkOneAddress(r *Report, all []listener) {
	for i, at := range all {
		for _, other := range all[:i] {
			_, port, err := net.SplitHostPort(at.address)
			if at.address == other.address && err == nil && port != "0" {
				err := fmt.Errorf("%s is the address of %s, too; choose another one", at.address, other.setting)
				r.problem(at.setting, err)
			}
		}
	}
}

// dialTime is the time limit of connecting to an address that may be in use.
const dialTime = 2 * time.Second

// checkFree checks that no process listens on an address. It connects and does not listen, because a gateway may be
// about to listen there. If the address is in use, checkFree adds a note if the process may be a gateway with these
// settings, otherwise a problem.
func checkFree(ctx context.Context, on *storeCheck, at listener) {
	_, port, err := net.SplitHostPort(at.address)
	if err != nil || port == "0" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", at.address)
	if err != nil {
		return
	}
	_ = conn.Close()
	if !on.beside() {
		err := fmt.Errorf("%s is in use by another process; choose another address", at.address)
		on.report.problem(at.setting, err)
		return
	}
	on.report.note("%s: %s is in use; a start needs it to be free", at.setting, at.address)
}

// asks reports whether a resource service with this name is configured.
func (s *Gateway) asks(service string) bool {
	_, ok := s.Services[service]
	return ok
}

// checkListener checks that an address belongs to this machine. It does not open the port, because a running gateway
// may use it.
func checkListener(r *Report, setting, address string) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return // Validate reports it
	}
	if _, err := net.LookupPort("tcp", port); err != nil {
		r.problem(setting, fmt.Errorf("%q is no port", port))
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		r.problem(setting, fmt.Errorf("%s is no address of this machine: %w", host, err))
		return
	}
	_ = listener.Close()
}

// checkIdentities checks the files for the authentication of callers.
func (s *Gateway) checkIdentities(ctx context.Context, r *Report) {
	from := s.Identities
	if from.Certificates.Cert != "" && from.Certificates.Key != "" {
		opened, err := identity.OpenTLS(ctx, from.Certificates, zap.NewNop())
		r.problem("tls-cert", err)
		if err == nil {
			r.problem("tls-cert", certificate.Check(opened.Certificate(), time.Now()))
			r.problem("tls-client-ca", checkAuthorities(ctx, from.Certificates.ClientCA, time.Now()))
		}
	}
	if from.Tokens != "" {
		_, err := identity.OpenTokens(ctx, from.Tokens, zap.NewNop())
		r.problem("tokens", err)
		if err == nil {
			checkTokens(from.Tokens, r)
		}
	}
	if from.Issuers != "" {
		_, err := openIssuers(ctx, from.Issuers, zap.NewNop())
		for _, line := range ErrorLines(err) {
			r.problem("oidc", fmt.Errorf("%s: %s", from.Issuers, line))
		}
	}
}

// checkAuthorities returns an error if all CA certificates in a file have expired, so that no client has a valid
// certificate. path is empty if there is no such file.
func checkAuthorities(ctx context.Context, path string, now time.Time) error {
	if path == "" {
		return nil
	}
	content, err := config.ReadFile(ctx, path)
	if err != nil {
		return err
	}
	if end := certificate.NextEnd(certificate.Parse(content), now); !end.After(now) {
		return fmt.Errorf("%s: all its certificates have expired, the last one at %s", path, end.UTC().Format(time.RFC3339))
	}
	return nil
}

// checkTokens adds problems for the damaged lines of a file of tokens. A gateway ignores such lines.
func checkTokens(path string, r *Report) {
	data, err := config.ReadAtMost(path, identity.MaxTokensFile)
	if err != nil {
		r.problem("tokens", err)
		return
	}
	_, damaged := identity.ParseTokens(data)
	for _, err := range damaged {
		r.problem("tokens", fmt.Errorf("%s: %w", path, err))
	}
}

// checkAdminSocket checks that a socket can be created at the configured path. The default path is not checked, because
// the gateway serves even if it cannot create that socket.
func (s *Gateway) checkAdminSocket(on *storeCheck) {
	path := s.Catalogue.AdminSocket
	if path == "" {
		return
	}
	on.report.problem("admin-socket", reload.CheckPath(path))
	on.report.problem("admin-socket", writableFolder(filepath.Dir(path)))
	on.used("admin-socket", reload.CheckFree(path), reload.ErrInUse)
}

// checkAudit checks the file of the audit log.
func (s *Gateway) checkAudit(on *storeCheck) {
	if s.Audit == "" || s.Audit == config.AuditStdout {
		return
	}
	folder := writableFolder(filepath.Dir(s.Audit))
	err := audit.CheckFile(s.Audit)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = folder
	case err == nil && folder != nil:
		on.report.note("audit: %v, so the file cannot be renamed when it has audit-max-size", folder)
	}
	on.used("audit", err, audit.ErrInUse)
}

// storeCheck checks the store, and checks whether the store accepts the catalogue.
type storeCheck struct {
	gateway   *Gateway
	catalogue *sdl.Catalogue // nil if it cannot be read
	keys      *keyring.Keyring
	// keysGiven reports whether encryption keys are configured. They may be invalid.
	keysGiven bool
	log       *zap.Logger
	report    *Report
	// inUse reports whether another process has the embedded store open. It is set by open.
	inUse bool
}

// beside reports whether a gateway with these settings may be running. It cannot if the embedded store is not in use.
func (c *storeCheck) beside() bool { return c.gateway.Store.URL != "" || c.inUse }

// used adds err as a problem with a setting. If err is inUse, and the process that uses the file may be a gateway with
// these settings, it is only a note.
func (c *storeCheck) used(setting string, err, inUse error) {
	if errors.Is(err, inUse) && c.beside() {
		c.report.note("%s: %v; a start needs it to be free", setting, err)
		return
	}
	c.report.problem(setting, err)
}

func (c *storeCheck) run(ctx context.Context) {
	store, err := c.open(ctx)
	switch {
	case err != nil:
		c.report.problem("", err)
		c.report.problem("bootstrap", c.bootstrap(ctx, nil))
	case store != nil:
		defer func() { _ = store.Close() }()
		c.report.problem("bootstrap", c.bootstrap(ctx, store))
		c.report.problem("catalogue", c.accepted(ctx, store))
		if !c.keysGiven && c.catalogue != nil {
			c.report.problem("", refuseWithoutKeys(ctx, store, c.catalogue.Stored))
		}
	default:
		c.report.problem("bootstrap", c.bootstrap(ctx, nil))
		if c.catalogue != nil {
			c.report.problem("catalogue", c.catalogue.CheckReleased())
		}
	}
}

// open opens the store for reading. If there is no store, it returns nil and adds a note.
func (c *storeCheck) open(ctx context.Context) (gatewayStore, error) {
	settings := storeSettings{Store: c.gateway.Store, readOnly: true}
	if settings.URL != "" {
		security, err := openRedisTLS(ctx, settings.Store, c.log)
		if err == nil { // otherwise openRedis returns the error
			c.report.problem("", security.check(time.Now()))
			settings.security = security
		}
		store, _, err := settings.openRedis(ctx, c.log)
		if errors.Is(err, redis.ErrNoStore) && !c.gateway.ReadOnly {
			c.report.note("redis: there is no store under the prefix %q yet; a start makes it", settings.Prefix)
			return nil, nil
		}
		if err != nil && !strings.HasPrefix(err.Error(), "redis") {
			err = fmt.Errorf("redis: %w", err)
		}
		return store, err
	}
	path := filepath.Join(settings.Data, StoreFile)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) && !c.gateway.ReadOnly {
		return nil, c.absent(path)
	}
	store, err := bolt.Open(bolt.Config{Path: path, ReadOnly: true, Logger: c.log})
	switch {
	case errors.Is(err, bolt.ErrLocked):
		c.inUse = true
		c.report.note("data: the store in %s is in use by a running gateway, so it was not read; "+
			"sluice catalogue apply --dry-run asks that gateway about a catalogue", settings.Data)
		return nil, nil
	case err != nil:
		return nil, settings.explainBolt(err)
	case !c.gateway.ReadOnly:
		c.report.problem("data", writable(path))
		c.report.problem("data", writableFolder(settings.Data))
	}
	return store, nil
}

// absent checks the folder in which a gateway would create the embedded store.
func (c *storeCheck) absent(path string) error {
	if exists(path+fillingSuffix) && c.gateway.Bootstrap == "" {
		return fmt.Errorf("bootstrap: %w; or remove %s", state.ErrBegun, path+fillingSuffix)
	}
	c.report.note("data: there is no store in %s yet; a start makes it", c.gateway.Store.Data)
	c.report.problem("data", creatableFolder(filepath.Dir(path)))
	return nil
}

// bootstrap checks the file from which the store would be filled, unless the store was filled before. If there is no
// file, or the gateway is read-only, it checks that no bootstrap of the store is incomplete. store is nil if it does
// not exist or another process uses it.
func (c *storeCheck) bootstrap(ctx context.Context, store backend.Store) error {
	file := c.gateway.Bootstrap
	switch {
	case c.gateway.ReadOnly || file == "":
		if store == nil {
			return nil
		}
		return state.Whole(ctx, store)
	case store == nil && exists(filepath.Join(c.gateway.Store.Data, StoreFile)):
		return nil
	}
	if c.catalogue == nil { // manifests cannot be judged without it
		return nil
	}
	filling := filler{file: file, open: openBootstrap(ctx, file, *c.catalogue), keys: c.keys, log: c.log}
	var err error
	if store != nil {
		_, shared := store.(*redis.Store)
		err = state.CheckBootstrap(ctx, state.BootstrapConfig{
			Store: store, Open: filling.open, Shared: shared, Keys: c.keys,
		})
	} else {
		_, err = state.Check(filling.open, c.keys, c.sharding(ctx))
	}
	if err != nil {
		err = filling.explain(err)
	}
	return err
}

// sharding returns how a new store would distribute namespaces to shards; nil for a store with one shard.
func (c *storeCheck) sharding(ctx context.Context) backend.Sharder {
	settings := storeSettings{Store: c.gateway.Store}
	if settings.URL == "" {
		return nil
	}
	cfg, _, err := settings.redisConfig(ctx, c.log)
	if err != nil {
		return nil // the report has the error already
	}
	return cfg.Sharding()
}

// accepted checks whether the store would accept the catalogue when the gateway starts.
func (c *storeCheck) accepted(ctx context.Context, store backend.Store) error {
	if c.catalogue == nil {
		return nil
	}
	gate := catalogue.Gate{Store: store, ReadOnly: true, Logger: c.log}
	candidate, err := c.gateway.candidate(ctx, *c.catalogue, gate)
	if err != nil {
		return err
	}
	return gate.Accept(ctx, candidate)
}
