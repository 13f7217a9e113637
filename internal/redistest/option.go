package redistest

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
)

// Option changes how [Start] starts a server.
type Option func(*config)

// config is the configuration of a server.
type config struct {
	directives []string
	replicaOf  string
	user       credentials
	tls        bool
	sentinel   bool
}

type credentials struct{ name, password string }

// The name and the password of the user with which the tests' own clients log in if the server has a [User]. The user
// default is then turned off.
const (
	adminName     = "redistest"
	adminPassword = "redistest-secret"
)

// Set adds a directive of redis.conf, such as Set("maxmemory-policy", "allkeys-lru").
func Set(directive string, values ...string) Option {
	return func(c *config) { c.directive(directive, values...) }
}

// AOF makes the server persist its data to an append-only file. fsync is "always", "everysec" or "no".
func AOF(fsync string) Option {
	return func(c *config) {
		c.directive("appendonly", "yes")
		c.directive("appendfsync", fsync)
		c.directive("auto-aof-rewrite-percentage", "0") // one file, for TruncateAOF
	}
}

// TLS makes the server accept only TLS, with a certificate that a new CA has signed: see [Server.TLS]. Clients need no
// certificate, but an invalid certificate is refused.
func TLS() Option { return func(c *config) { c.tls = true } }

// User adds a user with ACL rules, such as "~app:*" and "+@all". The server refuses all other users, except the one of
// the tests' own clients. [Server.URL] contains the name and the password.
func User(name, password string, rules ...string) Option {
	return func(c *config) {
		c.user = credentials{name, password}
		c.directive("user", "default", "off")
		c.directive("user", adminName, "on", ">"+adminPassword, "~*", "&*", "+@all")
		c.directive("user", append([]string{name, "on", ">" + password}, rules...)...)
	}
}

// DefaultRules sets the rules of the user default, which a [User] before this option has turned off. The server applies
// these rules when it executes its append-only file.
func DefaultRules(rules ...string) Option {
	return func(c *config) {
		c.directives = slices.DeleteFunc(c.directives, func(d string) bool { return strings.HasPrefix(d, `user "default"`) })
		c.directive("user", append([]string{"default", "off"}, rules...)...)
	}
}

// FollowAsAdmin lets the server follow, as a replica, a primary that has a [User].
func FollowAsAdmin() Option {
	return func(c *config) {
		c.directive("masteruser", adminName)
		c.directive("masterauth", adminPassword)
	}
}

// ReplicaOf makes the server a replica of the server at addr, which may be a [Proxy]. [Start] returns when the replica
// is in sync.
func ReplicaOf(addr string) Option { return func(c *config) { c.replicaOf = addr } }

func (c *config) directive(name string, values ...string) {
	var b strings.Builder
	b.WriteString(name)
	for _, v := range values {
		b.WriteByte(' ')
		b.WriteString(strconv.Quote(v))
	}
	c.directives = append(c.directives, b.String())
}

// file returns the redis.conf of a server that listens on a port.
func (c *config) file(port int, dir string) (string, error) {
	f := config{}
	f.directive("bind", "127.0.0.1")
	f.directive("dir", dir)
	if c.sentinel {
		f.directive("port", strconv.Itoa(port))
		return strings.Join(append(f.directives, c.directives...), "\n") + "\n", nil
	}
	if c.tls {
		f.directive("port", "0")
		f.directive("tls-port", strconv.Itoa(port))
		f.directive("tls-ca-cert-file", caFile)
		f.directive("tls-cert-file", serverCertFile)
		f.directive("tls-key-file", serverKeyFile)
		f.directive("tls-auth-clients", "optional")
	} else {
		f.directive("port", strconv.Itoa(port))
	}
	f.directive("daemonize", "no")
	f.directive("save", "")
	f.directive("appendonly", "no")
	// Replicas get in sync without a delay, and a lost connection is noticed soon.
	f.directive("repl-diskless-sync-delay", "0")
	f.directive("repl-ping-replica-period", "1")
	f.directives = append(f.directives, c.directives...)
	if c.replicaOf != "" {
		host, port, err := net.SplitHostPort(c.replicaOf)
		if err != nil {
			return "", fmt.Errorf("replica of %q: %w", c.replicaOf, err)
		}
		f.directive("replicaof", host, port)
	}
	return strings.Join(f.directives, "\n") + "\n", nil
}
