package redis

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	goredis "github.com/redis/go-redis/v9"

	"github.com/sluicegw/sluice/backend"
)

// history identifies a server and the history of its data. A field is empty if the server hides it, as some managed
// services and proxies do.
type history struct {
	// run is the run id, which changes when the server process starts.
	run string
	// replication is the replication id, which changes when the server becomes a primary.
	replication string
}

// server is a client of a server or a connection to it.
type server interface {
	goredis.Scripter
	Scan(ctx context.Context, cursor uint64, match string, count int64) *goredis.ScanCmd
}

// verify makes sure that the epochs of all shards on a server belong to its history.
func (s *session) verify(ctx context.Context, cn *goredis.Conn, h history) error {
	for i := range s.core.shards {
		v := verification{history: h, shard: i}
		s.mu.Lock()
		known := s.verified[v]
		s.mu.Unlock()
		if known && h != (history{}) {
			continue
		}
		was := s.core.epochs[i].Load()
		err := s.core.begin(ctx, cn, &s.core.shards[i], h)
		if s.core.at.Cluster && err != nil && elsewhere(err) {
			continue // another node has the shard
		}
		if err != nil {
			var r *refusal
			if errors.As(err, &r) {
				return err
			}
			return &refusal{err: fmt.Errorf("epoch: %w", err)}
		}
		s.mu.Lock()
		s.verified[v] = true
		others := false // whether there are connections to a previous primary of the shard
		for other := range s.verified {
			others = others || other.shard == i && other.history != h
		}
		s.mu.Unlock()
		if others && s.core.epochs[i].Load() != was {
			s.core.renew(s)
		}
	}
	return nil
}

// ErrNoStore means that a store that should be read does not exist.
var ErrNoStore = errors.New("there is no store")

// begin makes sure that the epoch of a shard belongs to the history of its server, beginning a new one if necessary,
// and remembers the epoch.
func (c *core) begin(ctx context.Context, on server, sh *shard, h history) error {
	ask := question{shard: sh, history: h}
	seen := c.knownHead(sh.index)
	for range 2 {
		answer, err := c.ask(ctx, on, ask)
		if err != nil {
			return err
		}
		if answer.epoch == 0 && c.cfg.ReadOnly {
			if answer.fresh || answer.last == 0 {
				return &refusal{
					text:  fmt.Sprintf("there is no store under the prefix %q, and a read-only gateway makes none", c.cfg.Prefix),
					err:   backend.FormatErrorf("%w", ErrNoStore),
					final: true,
				}
			}
			answer.epoch = answer.last
		}
		if answer.epoch != 0 {
			if was := c.epochs[sh.index].Swap(answer.epoch); was != 0 && was != answer.epoch {
				c.noteHistory(History{Shard: sh.index, Before: was, Now: answer.epoch}, seen, answer.ended)
			}
			return nil
		}
		if answer.fresh {
			if err := c.strangers(ctx, on); err != nil {
				return err
			}
		}
		ask.random = c.random()
		c.begun.Store(true)
	}
	return fmt.Errorf("epoch: the server does not begin one: %w", backend.ErrUnavailable)
}

// question is a call of the script epoch.lua for a shard.
type question struct {
	shard   *shard
	history history
	// random is a part of the new epoch if one is begun. If it is empty, the script only reports whether a new one is
	// needed.
	random string
}

// answer is the result of a question.
type answer struct {
	// epoch is the epoch of the shard; 0 if a new one is needed.
	epoch uint64
	// last is the current epoch of the shard if a new one is needed; 0 if there is none.
	last uint64
	// fresh reports whether the shard does not exist yet.
	fresh bool
	// ended is the last sequence number in the epoch of the newest revision that this gateway has seen. It is empty if
	// the shard does not know that epoch, or if the epoch is the current one.
	ended string
}

// ask runs epoch.lua for a shard. The error may mean that the store must be refused.
func (c *core) ask(ctx context.Context, on server, q question) (out answer, err error) {
	script := &c.scripts.epoch
	if q.random == "" {
		script = &c.scripts.askEpoch
	}
	reply, err := script.run(ctx, on, []string{
		q.shard.meta, q.shard.log, q.shard.members,
	}, q.history.run, q.history.replication,
		Format, len(c.shards), q.shard.index, c.clockArgument(""), c.knownHead(q.shard.index).String(), q.random)
	if err != nil {
		return out, err
	}
	switch word := text(reply, 0); word {
	case "ok":
		out.ended = text(reply, 2)
		if out.epoch, err = strconv.ParseUint(text(reply, 1), 10, 64); err != nil || out.epoch == 0 {
			return answer{}, backend.FormatErrorf("epoch %.20q", text(reply, 1))
		}
		return out, nil
	case "begin":
		out.fresh = text(reply, 1) == "new"
		out.last, _ = strconv.ParseUint(text(reply, 2), 10, 64)
		return out, nil
	case "foreign":
		return out, refuse("the keys under the prefix %q belong to another program; choose another prefix", c.cfg.Prefix)
	case "format":
		return out, refuse("%s", otherFormat(text(reply, 1)))
	case "shards":
		return out, c.otherShards(text(reply, 1))
	case "clock":
		return out, refuse("the server's clock is wrong: no epoch can be made of it")
	default:
		return out, fmt.Errorf("epoch: unknown answer %.20q", word)
	}
}

func (c *core) otherShards(stored string) error {
	return refuse("the store was made with %.20s shards and this gateway is set to %d", stored, len(c.shards))
}

// otherFormat returns the reason to refuse a store of another format.
func otherFormat(stored string) string {
	if n, err := strconv.Atoi(stored); err == nil && n < Format {
		return fmt.Sprintf("the store has format %d, written before the first release; this one reads %d: empty the store or choose another prefix", n, Format)
	}
	return fmt.Sprintf("the store has format %.20s, written by a newer release; this one reads %d", stored, Format)
}

// inspect returns an error if the store must be refused, without writing anything.
func (s *Store) inspect(ctx context.Context, ses *session) error {
	if err := s.inspectShards(ctx, ses); err != nil {
		return err
	}
	for i := range s.core.shards {
		sh := &s.core.shards[i]
		on, err := ses.primary(ctx, sh)
		if err != nil {
			return err
		}
		answer, err := s.core.ask(ctx, on, question{shard: sh})
		if err == nil && answer.fresh {
			err = s.core.strangers(ctx, on)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// inspectShards looks for a store with another number of shards, whose keys may have other names. It tries the names of
// the first shard, which every store has.
func (s *Store) inspectShards(ctx context.Context, ses *session) error {
	pipe := ses.client.Pipeline()
	seen := map[string]bool{}
	var cmds []*goredis.SliceCmd
	for n := 1; n <= maxShards; n++ {
		if sh := newShard(s.core.cfg.Prefix, 0, n); !seen[sh.meta] {
			seen[sh.meta] = true
			cmds = append(cmds, pipe.HMGet(ctx, sh.meta, "magic", "shards"))
		}
	}
	if _, err := pipe.Exec(ctx); err != nil && !goredis.HasErrorPrefix(err, "WRONGTYPE") {
		return err
	}
	for _, cmd := range cmds {
		if magic, shards := text(cmd.Val(), 0), text(cmd.Val(), 1); magic == storeMagic &&
			shards != strconv.Itoa(len(s.core.shards)) {
			return s.core.otherShards(shards)
		}
	}
	return nil
}

// strangersRounds limits the search for keys of other programs. Each round returns about a thousand keys.
const strangersRounds = 50

// strangers returns an error if there are keys of another program where a store is to be created.
func (c *core) strangers(ctx context.Context, on server) error {
	cursor := uint64(0)
	for range strangersRounds {
		keys, next, err := on.Scan(ctx, cursor, escapeGlob(c.cfg.Prefix)+"*", 1000).Result()
		if err != nil {
			return &refusal{err: fmt.Errorf("scan: %w", err)}
		}
		for _, key := range keys {
			rest := strings.TrimPrefix(key, c.cfg.Prefix)
			if len(rest) < 4 || !strings.ContainsRune("mxci", rune(rest[0])) || rest[1:3] != ":{" {
				if more := otherPrefix.FindStringSubmatch(rest); more != nil {
					return refuse("there is no store under the prefix %q, but one under %q, whose keys begin with it; if there was one, its keys are gone: restore a copy, or choose another prefix",
						c.cfg.Prefix, c.cfg.Prefix+more[1])
				}
				return refuse("the keys under the prefix %q belong to another program; choose another prefix", c.cfg.Prefix)
			}
		}
		cursor = next
		if cursor == 0 {
			break
		}
	}
	return nil
}

// otherPrefix matches a key of a store with a longer prefix, and captures the rest of that prefix.
var otherPrefix = regexp.MustCompile(`^(.+)[mxci]:\{[0-9a-z]+\}`)

func escapeGlob(s string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "]", `\]`).Replace(s)
}
