package gateway

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/bolt"
	"github.com/sluicegw/sluice/backend/redis"
	"github.com/sluicegw/sluice/cmd/sluice/config"
	"github.com/sluicegw/sluice/cmd/sluice/exit"
	"github.com/sluicegw/sluice/internal/wait"
)

// storeSettings has the settings with which a store is opened.
type storeSettings struct {
	config.Store
	// lost is called when Redis has lost changes; nil if nobody needs to know.
	lost     func(redis.History)
	readOnly bool
	// observe receives measured values of writes.
	observe backend.WriteObservers
	// patience is the time for which opening the store is repeated while Redis does not answer.
	patience time.Duration
	// security is the TLS configuration for Redis; nil if it is read from its files when the store is opened.
	security *redisTLS
}

// gatewayStore is a store with the methods that a gateway needs.
type gatewayStore interface {
	backend.Store
	Run(ctx context.Context) error
	Close() error
	// Ready returns an error if the store cannot serve now.
	Ready(ctx context.Context) error
	// Unreadable returns the number of stored records that could not be read.
	Unreadable() uint64
}

// open opens the store. name describes the store for people. An error has only one line.
func (s storeSettings) open(ctx context.Context, log *zap.Logger) (store gatewayStore, name string, err error) {
	if s.URL != "" {
		return s.openRedis(ctx, log)
	}
	store, err = bolt.Open(bolt.Config{
		Path: filepath.Join(s.Data, StoreFile), Logger: log,
		LogEntries: s.LogEntries, LogBytes: s.LogBytes, LogAge: s.LogAge, ReadOnly: s.readOnly,
		Observe: s.observe,
	})
	if err != nil {
		return nil, "", s.explainBolt(err)
	}
	return store, "bolt " + s.Data, nil
}

func (s storeSettings) openRedis(ctx context.Context, log *zap.Logger) (gatewayStore, string, error) {
	cfg, name, err := s.redisConfig(ctx, log)
	if err != nil {
		return nil, "", err
	}
	store, err := s.openPatiently(ctx, cfg, log)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, "", ctx.Err()
	case errors.Is(err, redis.ErrNoStore): // in one line
		return nil, "", err
	case err != nil:
		return nil, "", errors.New(exit.OneLine(err))
	}
	return store, name, nil
}

// findRedis reports whether a store exists on Redis, and returns how it distributes namespaces to shards. It writes
// nothing.
func (s storeSettings) findRedis(ctx context.Context, log *zap.Logger) (sharding backend.Sharder, there bool, err error) {
	cfg, _, err := s.redisConfig(ctx, log)
	if err != nil {
		return nil, false, err
	}
	cfg.ReadOnly = true
	cfg.Logger = nil // messages about the server are logged when the store is opened
	store, err := s.openPatiently(ctx, cfg, log)
	switch {
	case err == nil:
		return store, true, store.Close()
	case ctx.Err() != nil:
		return nil, false, ctx.Err()
	case errors.Is(err, redis.ErrNoStore):
		return cfg.Sharding(), false, nil
	}
	return nil, false, errors.New(exit.OneLine(err))
}

// redisConfig returns the configuration of a store on Redis, and a name of the store for people.
func (s storeSettings) redisConfig(ctx context.Context, log *zap.Logger) (cfg redis.Config, name string, err error) {
	at, err := redis.ParseURL(s.URL)
	if err != nil {
		return cfg, "", exit.Usage(fmt.Errorf("redis: %w", err))
	}
	cfg = redis.Config{
		URL:         s.URL,
		Prefix:      s.Prefix,
		Shards:      s.Shards,
		Durability:  redis.Durability(s.Durability),
		Logger:      log,
		LostHistory: s.lost,
		LogEntries:  s.LogEntries,
		LogBytes:    s.LogBytes,
		LogAge:      s.LogAge,
		ReadOnly:    s.readOnly,
		Observe:     s.observe,
	}
	if s.PasswordFile != "" {
		secret, err := config.ReadFile(ctx, s.PasswordFile)
		if err != nil {
			return cfg, "", exit.Usage(fmt.Errorf("redis-password-file: %w", err))
		}
		cfg.Password = strings.TrimRight(string(secret), "\r\n")
	}
	security := s.security
	if security == nil {
		if security, err = openRedisTLS(ctx, s.Store, log); err != nil {
			return cfg, "", exit.Usage(err)
		}
	}
	cfg.TLS = security.config()
	if err := cfg.Validate(); err != nil {
		return cfg, "", exit.Usage(fmt.Errorf("redis: %s", exit.OneLine(err)))
	}
	redis.SetClientLogger(log)
	return cfg, at.String(), nil
}

// RedisURLWithoutPassword returns a Redis URL without user names and passwords.
func RedisURLWithoutPassword(url string) string {
	at, err := redis.ParseURL(url)
	if err != nil {
		return "(malformed)" // it may have a password anywhere
	}
	return at.String()
}

// openPatiently opens a store on Redis. While no server answers, it tries again, for at most the patience of the
// settings.
func (s storeSettings) openPatiently(
	ctx context.Context, cfg redis.Config, log *zap.Logger,
) (*redis.Store, error) {
	begin, pauses := time.Now(), wait.Backoff{Least: 100 * time.Millisecond, Most: 2 * time.Second}
	for {
		store, err := redis.Open(ctx, cfg)
		if !errors.Is(err, backend.ErrUnavailable) || time.Since(begin) >= s.patience {
			return store, err
		}
		if pauses.First() {
			log.Warn(
				"Redis does not answer; it is asked again until ready-timeout",
				zap.Duration("for", s.patience),
				zap.Error(err),
			)
		}
		if !pauses.Wait(ctx) {
			return nil, err
		}
	}
}

// explainBolt returns an error of one line that explains why the embedded store cannot be opened.
func (s storeSettings) explainBolt(err error) error {
	switch {
	case errors.Is(err, bolt.ErrLocked):
		return fmt.Errorf("data: %s is in use by another process; stop it or choose another folder with --data", s.Data)
	case s.readOnly && errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("data: there is no store in %s, and a read-only gateway makes none", s.Data)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return fmt.Errorf("data: %s cannot be written: permission denied; choose another folder with --data", s.Data)
	}
	return fmt.Errorf("data: %s", exit.OneLine(err))
}

// Reader is a store that was opened for reading only.
type Reader interface {
	backend.Store
	backend.Verifier
	Close() error
}

// OpenReader opens a store for reading only. place is the folder or file of an embedded store, or a URL of Redis, for
// which the settings apply. An error has only one line.
func OpenReader(ctx context.Context, place string, settings config.Store, log *zap.Logger) (Reader, error) {
	if strings.Contains(place, "://") {
		settings.URL = place
		store, _, err := storeSettings{Store: settings, readOnly: true}.openRedis(ctx, log)
		if err != nil {
			return nil, err
		}
		return store.(*redis.Store), nil
	}
	path := place
	if info, err := os.Stat(place); err == nil && info.IsDir() {
		path = filepath.Join(place, StoreFile)
	}
	store, err := bolt.Open(bolt.Config{Path: path, ReadOnly: true, Logger: log})
	switch {
	case errors.Is(err, bolt.ErrLocked):
		return nil, fmt.Errorf("%s is in use by another process; stop it, or take a copy with sluice backup", path)
	case errors.Is(err, fs.ErrNotExist):
		return nil, exit.Usage(fmt.Errorf("there is no store at %s; a folder, a file or the URL of a Redis is wanted", place))
	case err != nil:
		return nil, errors.New(exit.OneLine(err))
	}
	return store, nil
}
