package redis

import (
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Address describes which servers to use.
type Address struct {
	// Hosts are the servers as host:port: the single server, the Sentinels, or some nodes of the cluster.
	Hosts []string
	// Master is the name of the primary at the Sentinels; empty if there are no Sentinels.
	Master             string
	Cluster, TLS       bool
	DB                 int
	Username, Password string
	// SentinelUsername and SentinelPassword authenticate at the Sentinels. If they are empty and a Sentinel requires a
	// password, the servers' password is used.
	SentinelUsername, SentinelPassword string
}

// ParseURL parses a URL of one of the forms
//
//	redis://[user[:password]@]host[:port][/db]
//	redis-sentinel://[user[:password]@]host[:port],host.../master[?db=n&sentinel-user=...&sentinel-password=...]
//	redis-cluster://[user[:password]@]host[:port],host...
//
// With rediss in place of redis, TLS is used. Errors do not contain the URL, because it may have a password.
func ParseURL(raw string) (*Address, error) {
	const accepted = "redis://host:port/db, redis-sentinel://host:port,host:port/master or redis-cluster://host:port,host:port (rediss for TLS) wanted"
	scheme, rest, ok := strings.Cut(raw, "://")
	if !ok {
		return nil, fmt.Errorf("no scheme: %s", accepted)
	}
	a := &Address{}
	family, topology, _ := strings.Cut(scheme, "-")
	if family != "redis" && family != "rediss" || topology != "" && topology != "sentinel" && topology != "cluster" ||
		strings.HasSuffix(scheme, "-") {
		return nil, fmt.Errorf("unknown scheme %q: %s", scheme, accepted)
	}
	a.TLS, a.Cluster = family == "rediss", topology == "cluster"
	if i := strings.LastIndex(rest, "@"); i >= 0 {
		user, err := url.Parse("redis://" + rest[:i] + "@host")
		if err != nil || user.User == nil {
			return nil, fmt.Errorf("user and password are malformed; special characters need their percent form")
		}
		a.Username = user.User.Username()
		a.Password, _ = user.User.Password()
		rest = rest[i+1:]
	}
	rest, query, _ := strings.Cut(rest, "?")
	hosts, path, _ := strings.Cut(rest, "/")
	for _, host := range strings.Split(hosts, ",") {
		h, err := hostPort(host, map[bool]string{false: "6379", true: "26379"}[topology == "sentinel"])
		if err != nil {
			return nil, err
		}
		a.Hosts = append(a.Hosts, h)
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return nil, fmt.Errorf("malformed parameters after ?")
	}
	db := values.Get("db")
	switch {
	case topology == "sentinel":
		if a.Master, err = url.PathUnescape(path); err != nil || a.Master == "" || strings.Contains(a.Master, "/") {
			return nil, fmt.Errorf("no name of the master after the Sentinels: %s", accepted)
		}
	case len(a.Hosts) > 1 && !a.Cluster:
		return nil, fmt.Errorf("several hosts: %s", accepted)
	case path != "" && db == "":
		db = path
	}
	if db != "" {
		if a.DB, err = strconv.Atoi(db); err != nil || a.DB < 0 {
			return nil, fmt.Errorf("database %q: a number wanted", db)
		}
	}
	if a.Cluster && a.DB != 0 {
		return nil, fmt.Errorf("database %d: a cluster has database 0 only", a.DB)
	}
	a.SentinelUsername, a.SentinelPassword = values.Get("sentinel-user"), values.Get("sentinel-password")
	parameters := []string{"db"}
	if topology == "sentinel" {
		parameters = append(parameters, "sentinel-user", "sentinel-password")
	}
	for name := range values {
		if !slices.Contains(parameters, name) {
			return nil, fmt.Errorf("unknown parameter %q; accepted are %s", name, strings.Join(parameters, ", "))
		}
	}
	return a, nil
}

func hostPort(s, port string) (string, error) {
	host, p, err := net.SplitHostPort(s)
	if err != nil {
		host, p = s, port
		if inner, ok := strings.CutPrefix(s, "["); ok {
			host = strings.TrimSuffix(inner, "]")
		}
	}
	n, err := strconv.Atoi(p)
	if host == "" || err != nil || n < 1 || n > 65535 || strings.ContainsAny(host, "[]") ||
		strings.Contains(host, ":") && net.ParseIP(strings.Split(host, "%")[0]) == nil {
		return "", fmt.Errorf("%q is not a host and a port", s)
	}
	return net.JoinHostPort(host, strconv.Itoa(n)), nil
}

// String returns the URL without users and passwords.
func (a *Address) String() string {
	s := "redis"
	if a.TLS {
		s = "rediss"
	}
	switch {
	case a.Master != "":
		s += "-sentinel"
	case a.Cluster:
		s += "-cluster"
	}
	s += "://" + strings.Join(a.Hosts, ",")
	if a.Master != "" {
		return s + "/" + a.Master
	}
	if !a.Cluster {
		s += "/" + strconv.Itoa(a.DB)
	}
	return s
}
