package redis

import (
	"hash/fnv"
	"strconv"

	"github.com/sluicegw/sluice/backend"
)

// maxShards is the maximum number of shards in a position.
const maxShards = 256

// slots is the number of slots in a Redis Cluster (Redis Cluster specification, "Key distribution model").
const slots = 16384

// storeMagic is the value of the field "magic" in the meta of each shard.
const storeMagic = "sluice store"

// shard has the names of the keys of a shard. They have the same hash tag, so that they are in one slot of a cluster
// and one script can use all of them.
type shard struct {
	index int
	// meta is the key of a hash with the format, the epoch, and the head and limits of the log.
	meta string
	// members is the key of a sorted set with the index of names, deletions, references and expiries: see member.go.
	members string
	// log is the key of a stream with the changes, ordered by revision.
	log string
	// item, followed by the tuple of a [backend.Key], is the key of a string with a resource.
	item string
}

func newShards(prefix string, n int) []shard {
	out := make([]shard, n)
	for i := range out {
		out[i] = newShard(prefix, i, n)
	}
	return out
}

// newShard returns the shard with index i of n shards.
func newShard(prefix string, i, n int) shard {
	tag := "{" + shardTag(i, n) + "}"
	return shard{
		index:   i,
		meta:    prefix + "m:" + tag,
		members: prefix + "x:" + tag,
		log:     prefix + "c:" + tag,
		item:    prefix + "i:" + tag + ":",
	}
}

func (s *shard) key(k backend.Key) string {
	var b [128]byte
	return string(k.Append(append(b[:0], s.item...)))
}

// shardTag returns the smallest number, in base 36, whose slot is in part i of n equal parts of all slots. So shards
// are distributed evenly to any number of primaries.
func shardTag(i, n int) string {
	for v := 0; ; v++ {
		tag := strconv.FormatInt(int64(v), 36)
		if slot := int(crc16(tag)) % slots; slot*n/slots == i {
			return tag
		}
	}
}

// crc16 returns the checksum that determines the slot of a key: CRC-16/XMODEM.
func crc16(s string) (sum uint16) {
	for i := range len(s) {
		sum ^= uint16(s[i]) << 8
		for range 8 {
			if sum&0x8000 != 0 {
				sum = sum<<1 ^ 0x1021
			} else {
				sum <<= 1
			}
		}
	}
	return sum
}

// sharding maps namespaces to shards. Its value is the number of shards.
type sharding int

var _ backend.Sharder = sharding(1)

// Shard implements [backend.Sharder].
func (n sharding) Shard(namespace string) int { return shardOf(namespace, int(n)) }

// shardOf returns the shard of a namespace among n shards. It must never be changed, because it determines where
// resources are stored.
func shardOf(namespace string, n int) int {
	if namespace == "" || n == 1 {
		return 0
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(namespace))
	return int(h.Sum64() % uint64(n))
}
