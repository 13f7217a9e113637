package redistest

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
)

// Option changes how a server is started.
type Option func(*config)

// config is what a server is started with.
type config struct {
	directives []string
	replicaOf  string
	user       credentials
	tls        bool
	sentinel   bool
}

type credentials struct{ name, password string }

// admin is the user of the tests' own clients where there are users. The
// default user is off then.
const (
	adminName     = "redistest"
	adminPassword = "redistest-secret"
)

// Set adds a directive of redis.conf, like Set("maxmemory-policy", "allkeys-lru").
func Set(directive string, values ...string) Option {
	return func(c *config) { c.directive(directive, values...) }
}

// AOF persists to an append-only file; fsync is "always", "everysec" or "no".
func AOF(fsync string) Option {
	return func(c *config) {
		c.directive("appendonly", "yes")
		c.directive("appendfsync", fsync)
		c.directive("auto-aof-rewrite-percentage", "0") // one file, for TruncateAOF
	}
}

// TLS makes the server speak TLS only, with a certificate of a CA of its own;
// see [Server.TLS]. It asks for no client certificate but checks one it is given.
func TLS() Option { return func(c *config) { c.tls = true } }

// User makes the server refuse everybody but a user with these ACL rules, like
// "~app:*", "+@all". [Server.URL] carries its name and password.
func User(name, password string, rules ...string) Option {
	return func(c *config) {
		c.user = credentials{name, password}
		c.directive("user", "default", "off")
		c.directive("user", adminName, "on", ">"+adminPassword, "~*", "&*", "+@all")
		c.directive("user", append([]string{name, "on", ">" + password}, rules...)...)
	}
}

// DefaultRules gives the user default, which a [User] before it has turned off, rules: the server executes its AOF by
// them.
func DefaultRules(rules ...string) Option {
	return func(c *config) {
		c.directives = slices.DeleteFunc(c.directives, func(d string) bool { return strings.HasPrefix(d, `user "default"`) })
		c.directive("user", append([]string{"default", "off"}, rules...)...)
	}
}

// FollowAsAdmin lets the server, as a replica, follow a primary that has a [User].
func FollowAsAdmin() Option {
	return func(c *config) {
		c.directive("masteruser", adminName)
		c.directive("masterauth", adminPassword)
	}
}

// ReplicaOf makes the server a replica of the one at addr, which may be a
// [Proxy]. Start returns when it is in sync.
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

// file returns redis.conf of a server that listens on port.
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
	// Replicas are in sync at once, and a link that died is missed soon.
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
