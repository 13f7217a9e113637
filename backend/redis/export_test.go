package redis

import (
	goredis "github.com/redis/go-redis/v9"

	"github.com/sluicegw/sluice/backend"
)

// ForTest makes each Open begin an epoch, as drivers on files do.
func ForTest(cfg Config) Config {
	cfg.newEpoch = true
	return cfg
}

// What decodes foreign bytes.

func DecodeRecord(k backend.Key, value string, shared bool) (*backend.Resource, error) {
	return namesFor(shared).record(k, value)
}

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

func ParseState(head backend.Revision, trimmed, epochs string) (backend.LogState, error) {
	return parseState(head, trimmed, epochs)
}

func Older(version, than string) bool { return older(version, than) }

func namesFor(shared bool) names {
	if shared {
		return names{}
	}
	return nil
}
