package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"
	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/bolt"
	"github.com/sluicegw/sluice/backend/redis"
)

// storing are the settings of the store: the embedded one, or Redis where its URL is set.
type storing struct {
	data                              string
	url, prefix, durability, password string
	ca, cert, key                     string
	shards, logEntries                int
	logBytes                          int64
	logAge                            time.Duration
}

func (s *storing) flags(f *pflag.FlagSet) {
	f.StringVar(&s.data, "data", "sluice-data", "folder of the embedded store")
	f.StringVar(&s.url, "redis", "", "store on Redis instead: redis://host:port/db, redis-sentinel://host:port,.../master or redis-cluster://host:port,...; rediss for TLS")
	f.StringVar(&s.password, "redis-password-file", "", "file with the password for Redis")
	f.StringVar(&s.prefix, "redis-prefix", "sluice:", "what all keys on Redis begin with")
	f.IntVar(&s.shards, "redis-shards", 0, "number of shards, fixed when the store is made; 0 means 1, and 16 for a cluster")
	f.StringVar(&s.durability, "redis-durability", "async", "when a write is acknowledged: async, or replica when a replica has it, too")
	f.StringVar(&s.ca, "redis-ca", "", "file with the certificates (PEM) that Redis is trusted by")
	f.StringVar(&s.cert, "redis-cert", "", "file with the gateway's own certificate (PEM) for Redis")
	f.StringVar(&s.key, "redis-key", "", "file with the key (PEM) of that certificate")
	f.IntVar(&s.logEntries, "retain-entries", 100_000, "most changes kept for listeners that resume; on Redis in each shard")
	f.Int64Var(&s.logBytes, "retain-bytes", 256<<20, "most bytes of changes kept; on Redis in each shard")
	f.DurationVar(&s.logAge, "retain-age", 24*time.Hour, "longest time changes are kept")
}

// gatewayStore is what serve needs of a store.
type gatewayStore interface {
	backend.Store
	Run(ctx context.Context) error
	Close() error
	// Ready says why the store cannot serve now.
	Ready(ctx context.Context) error
	// Unreadable counts what was stored and could not be read.
	Unreadable() uint64
}

// open opens the store. name says to a person which one it is. An error is one line.
func (s *storing) open(ctx context.Context, log *zap.Logger) (store gatewayStore, name string, err error) {
	if s.url != "" {
		return s.openRedis(ctx, log)
	}
	store, err = bolt.Open(bolt.Config{
		Path: filepath.Join(s.data, "sluice.db"), Logger: log,
		LogEntries: s.logEntries, LogBytes: s.logBytes, LogAge: s.logAge,
	})
	if err != nil {
		return nil, "", s.explainBolt(err)
	}
	return store, "bolt " + s.data, nil
}

func (s *storing) openRedis(ctx context.Context, log *zap.Logger) (gatewayStore, string, error) {
	at, err := redis.ParseURL(s.url)
	if err != nil {
		return nil, "", usageError{fmt.Errorf("redis: %w", err)}
	}
	cfg := redis.Config{
		URL: s.url, Prefix: s.prefix, Shards: s.shards, Durability: redis.Durability(s.durability), Logger: log,
		LogEntries: s.logEntries, LogBytes: s.logBytes, LogAge: s.logAge,
	}
	if s.password != "" {
		secret, err := os.ReadFile(s.password)
		if err != nil {
			return nil, "", usageError{fmt.Errorf("redis-password-file: %w", err)}
		}
		cfg.Password = strings.TrimRight(string(secret), "\r\n")
	}
	if cfg.TLS, err = s.tls(at); err != nil {
		return nil, "", usageError{err}
	}
	if err := cfg.Validate(); err != nil {
		return nil, "", usageError{fmt.Errorf("redis: %s", oneLine(err))}
	}
	redis.SetClientLogger(log)
	store, err := redis.Open(ctx, cfg)
	if err != nil {
		return nil, "", errors.New(oneLine(err))
	}
	return answering{store}, at.String(), nil
}

// answering is a store that is ready if it answers.
type answering struct{ *redis.Store }

// Ready asks where the store is.
func (s answering) Ready(ctx context.Context) error {
	_, err := s.Position(ctx)
	return err
}

// tls makes the configuration of a connection with TLS; nil without.
func (s *storing) tls(at *redis.Address) (*tls.Config, error) {
	if !at.TLS {
		if s.ca != "" || s.cert != "" || s.key != "" {
			return nil, errors.New("redis-ca, redis-cert and redis-key need a URL that begins with rediss")
		}
		return nil, nil
	}
	cfg := &tls.Config{MinVersion: tls.VersionTLS12}
	if s.ca != "" {
		pem, err := os.ReadFile(s.ca)
		if err != nil {
			return nil, fmt.Errorf("redis-ca: %w", err)
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("redis-ca: %s holds no certificate (PEM)", s.ca)
		}
	}
	if s.cert != "" || s.key != "" {
		pair, err := tls.LoadX509KeyPair(s.cert, s.key)
		if err != nil {
			return nil, fmt.Errorf("redis-cert, redis-key: %w", err)
		}
		cfg.Certificates = []tls.Certificate{pair}
	}
	return cfg, nil
}

// explainBolt says in one line why the embedded store does not open.
func (s *storing) explainBolt(err error) error {
	switch {
	case errors.Is(err, bolt.ErrLocked):
		return fmt.Errorf("data: %s is in use by another process; stop it or choose another folder with --data", s.data)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return fmt.Errorf("data: %s cannot be written: permission denied; choose another folder with --data", s.data)
	}
	return fmt.Errorf("data: %s", oneLine(err))
}

func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }
