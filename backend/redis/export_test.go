package redis

import (
	"context"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/driver"
)

// ForTest makes each Open begin an epoch, as drivers on files do.
func ForTest(cfg Config) Config {
	cfg.newEpoch = true
	return cfg
}

// Skewed sets the clocks of nodes ahead.
func Skewed(cfg Config, skew func(node string) time.Duration) Config {
	cfg.skew = skew
	return cfg
}

// Measure is what Run does about clocks.
func (s *Store) Measure(ctx context.Context) error { return s.read(ctx, "clock", s.measureAll) }

// What decodes foreign bytes.

func DecodeRecord(k backend.Key, value string, shared bool) (*backend.Resource, error) {
	return namesFor(shared).record(k, value)
}

func DecodeBare(k backend.Key, value string) (*backend.Resource, error) { return bareRecord(k, value) }

func DecodeEntry(id string, values map[string]any, shared bool) (backend.Event, bool, error) {
	return namesFor(shared).entry(goredis.XMessage{ID: id, Values: values})
}

func DecodeMember(m string) (backend.Key, error) { return targetOf(m) }

func FindMember(r backend.Range, m string) (backend.Key, error) {
	f := names{}.find(&r, m)
	return f.key, f.err
}

func MembersOf(r *backend.Resource) [][]byte { return membersOf(r) }

func ParseRevision(s string) (backend.Revision, error) { return parseRevision(s) }

func ParseState(head backend.Revision, trimmed, epochs string) (driver.LogState, error) {
	return parseState(head, trimmed, epochs)
}

func Older(version, than string) bool { return older(version, than) }

func namesFor(shared bool) names {
	if shared {
		return names{}
	}
	return nil
}
