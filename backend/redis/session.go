package redis

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend"
)

// Format is the version of the stored format that this release reads and writes.
const Format = 8

// minVersion is the oldest server version with everything that the scripts use.
const minVersion = "7.0"

// blockTime is how long a watcher waits on the server before it asks again.
const blockTime = 2 * time.Second

// session is a set of connections that were opened after the store has last learned of a new epoch. Each connection was
// verified when it was opened: its server is a primary, and the epochs of its shards belong to the history of the
// server. An older connection could write to a server that has been replaced.
type session struct {
	core *core
	// client is used for calls, and blocking by watchers that wait on the server.
	client, blocking goredis.UniversalClient
	// inflight counts the calls that use the session.
	inflight sync.WaitGroup

	// inspecting reports whether the connections are used only to inspect the store, and must not begin an epoch.
	inspecting bool

	mu          sync.Mutex // guards all below
	verified    map[verification]bool
	writeQueues map[*goredis.Client]*writeQueue // by the client of their server
}

// verification records that the epoch of a shard belongs to a history.
type verification struct {
	history history
	shard   int
}

func newSession(c *core) *session {
	s := &session{core: c, verified: map[verification]bool{}, writeQueues: map[*goredis.Client]*writeQueue{}}
	// One more connection is for reading the heads.
	s.client = s.connect(c.cfg.Timeout, c.cfg.Connections+1, 0)
	// Usually only the watcher of the gateway's hub waits on the server. More idle connections are not kept.
	s.blocking = s.connect(blockTime+c.cfg.Timeout/2, 1024, max(2, len(c.shards)))
	return s
}

// connect returns a client. The client repeats no calls, because only the caller knows whether a call may be sent
// twice. It has no second pool for pipelines: most calls are pipelines, and connections of that pool would not count
// against the configured number.
//
// timeout is the time limit for an answer, size the maximum number of connections to a server, and idle the maximum
// number of idle connections that are kept; 0 keeps all.
func (s *session) connect(timeout time.Duration, size, idle int) goredis.UniversalClient {
	cfg, at := &s.core.cfg, s.core.at
	o := &goredis.UniversalOptions{
		Addrs:                    at.Hosts,
		MasterName:               at.Master,
		IsClusterMode:            at.Cluster,
		DB:                       at.DB,
		Username:                 at.Username,
		Password:                 cmp.Or(cfg.Password, at.Password),
		SentinelUsername:         at.SentinelUsername,
		SentinelPassword:         at.SentinelPassword,
		Protocol:                 2,
		OnConnect:                s.onConnect,
		MaxRetries:               -1,
		DialerRetries:            1,
		DialTimeout:              min(cfg.Timeout, 2*time.Second),
		ReadTimeout:              timeout,
		WriteTimeout:             cfg.Timeout,
		ContextTimeoutEnabled:    true,
		PoolSize:                 size,
		PipelinePoolSize:         -1,
		MaxIdleConns:             idle,
		PoolTimeout:              cfg.Timeout,
		ConnMaxIdleTime:          5 * time.Minute,
		TLSConfig:                cfg.TLS,
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
	if o.TLSConfig == nil && at.TLS {
		o.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	if at.Cluster {
		return newClusterClient(o.Cluster(), cfg.Timeout)
	}
	return goredis.NewUniversalClient(o)
}

// close waits for the calls in progress and closes the connections.
func (s *session) close() error {
	s.inflight.Wait()
	return errors.Join(s.client.Close(), s.blocking.Close())
}

// refusal is the reason why a server is not used. No call was sent to it.
type refusal struct {
	text  string // for a person, instead of the text of err
	err   error
	final bool // trying again cannot help
}

func (r *refusal) Error() string { return cmp.Or(r.text, r.err.Error()) }

// Is is defined instead of Unwrap. With Unwrap, the client library would return only the wrapped error for a connection
// that cannot be opened.
func (r *refusal) Is(target error) bool { return errors.Is(r.err, target) }

// refuse returns a refusal that a retry would not change.
func refuse(format string, args ...any) error {
	return &refusal{text: fmt.Sprintf(format, args...), err: backend.ErrFormat, final: true}
}

// clientName is the name of the connections in the CLIENT LIST of servers.
const clientName = "sluice"

// introduce sets the name of a new connection, and returns the INFO of the server.
func introduce(ctx context.Context, cn *goredis.Conn) (info map[string]string, err error) {
	pipe := cn.Pipeline()
	named := pipe.ClientSetName(ctx, clientName)
	sections := []*goredis.StringCmd{
		pipe.Info(ctx, "server"), pipe.Info(ctx, "replication"), pipe.Info(ctx, "memory"),
		pipe.Info(ctx, "persistence"),
	}
	_, _ = pipe.Exec(ctx)
	if err := named.Err(); err != nil {
		return nil, fmt.Errorf("client setname: %w", err)
	}
	info = map[string]string{}
	for _, section := range sections {
		text, err := section.Result()
		if err != nil {
			return nil, fmt.Errorf("info: %w", err)
		}
		for line := range strings.Lines(text) {
			if k, v, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
				info[k] = v
			}
		}
	}
	return info, nil
}

// authenticate sends the servers' password to a Sentinel that requires a password. If the Sentinels have a separate
// password, it was sent before.
func (s *session) authenticate(ctx context.Context, cn *goredis.Conn) error {
	password := cmp.Or(s.core.cfg.Password, s.core.at.Password)
	if password == "" {
		return errors.New("a password is wanted")
	}
	return cn.AuthACL(ctx, cmp.Or(s.core.at.Username, "default"), password).Err()
}

// onConnect verifies a new connection before it is used.
func (s *session) onConnect(ctx context.Context, cn *goredis.Conn) error {
	info, err := introduce(ctx, cn)
	if goredis.HasErrorPrefix(errors.Unwrap(err), "NOAUTH") && s.core.at.Master != "" {
		if err := s.authenticate(ctx, cn); err != nil {
			return &refusal{err: fmt.Errorf("sentinel: %w", err)}
		}
		info, err = introduce(ctx, cn)
	}
	if err != nil {
		return &refusal{err: err}
	}
	if info["redis_mode"] == "sentinel" {
		return nil
	}
	if older(info["redis_version"], minVersion) {
		return refuse("the server is Redis %s, and %s or newer is wanted", info["redis_version"], minVersion)
	}
	if bits := info["arch_bits"]; bits == "32" {
		return refuse("the server is built for 32 bits, whose scripts cannot count far enough; 64 are wanted")
	}
	if role := info["role"]; role != "" && role != "master" {
		return &refusal{err: fmt.Errorf("the server is a replica")}
	}
	if p := info["maxmemory_policy"]; p != "" && p != "noeviction" {
		return refuse("the server's maxmemory-policy is %s, which loses data; set it to noeviction", p)
	}
	if err := s.checkReplay(ctx, cn, info); err != nil {
		return err
	}
	if s.inspecting {
		return nil
	}
	s.warnDurability(ctx, cn, info)
	return s.verify(ctx, cn, history{run: info["run_id"], replication: info["master_replid"]})
}

// older reports whether a version is known and older than another one. It compares the first two numbers.
func older(version, than string) bool {
	var a, b [2]int
	_, _ = fmt.Sscanf(version, "%d.%d", &a[0], &a[1])
	_, _ = fmt.Sscanf(than, "%d.%d", &b[0], &b[1])
	return version != "" && slices.Compare(a[:], b[:]) < 0
}

// text returns a string in the reply of a script; "" if there is none at the index.
func text(reply []any, i int) string {
	if i >= len(reply) {
		return ""
	}
	s, _ := reply[i].(string)
	return s
}

// newClusterClient returns a client of a cluster in which a node that does not answer affects only its own slots. By
// default, the client library asks random nodes two questions, which can take the whole time of a call. The first
// question is which node has which slots. It is sent with a part of the time limit, and then to the next node. The
// second question is which commands the nodes know. It is turned off, because every command here has a key and is sent
// to the primary of its slot.
func newClusterClient(o *goredis.ClusterOptions, limit time.Duration) *goredis.ClusterClient {
	o.DisableRoutingPolicies = true
	slots := &slotsLimit{most: int64(limit)}
	slots.limit.Store(slots.most)
	if len(o.Addrs) > 1 { // another node can answer
		slots.most = int64(limit / 2)
		slots.limit.Store(slots.most / 2)
	}
	client := goredis.NewClusterClient(o)
	client.OnNewNode(func(node *goredis.Client) { node.AddHook(slots) })
	return client
}

// slotsLimit is the time limit for asking which node has which slots, including the time to connect. The network may be
// slow: after a question that took longer, the limit is doubled, up to the maximum. Both values are nanoseconds.
type slotsLimit struct {
	limit atomic.Int64
	most  int64
}

var _ goredis.Hook = (*slotsLimit)(nil)

// DialHook implements [goredis.Hook].
func (*slotsLimit) DialHook(next goredis.DialHook) goredis.DialHook { return next }

// ProcessPipelineHook implements [goredis.Hook].
func (*slotsLimit) ProcessPipelineHook(next goredis.ProcessPipelineHook) goredis.ProcessPipelineHook {
	return next
}

// ProcessHook implements [goredis.Hook].
func (l *slotsLimit) ProcessHook(next goredis.ProcessHook) goredis.ProcessHook {
	return func(ctx context.Context, cmd goredis.Cmder) error {
		if cmd.Name() != "cluster" {
			return next(ctx, cmd)
		}
		limit := l.limit.Load()
		limited, cancel := context.WithTimeout(ctx, time.Duration(limit))
		defer cancel()
		err := next(limited, cmd)
		// The connection uses the deadline of limited, and may report it slightly earlier.
		var network net.Error
		if errors.As(err, &network) && network.Timeout() && ctx.Err() == nil {
			l.limit.CompareAndSwap(limit, min(2*limit, l.most))
		}
		return err
	}
}

// clientLogger receives messages that the client library would write to standard error.
type clientLogger struct{ log *zap.Logger }

// Printf implements the logger interface of the client library.
func (l clientLogger) Printf(_ context.Context, format string, args ...any) {
	l.log.Debug(fmt.Sprintf(format, args...))
}

// SetClientLogger makes the client library log to l at debug level. The library has only one logger for the whole
// process.
func SetClientLogger(l *zap.Logger) { goredis.SetLogger(clientLogger{l.Named("redis")}) }
