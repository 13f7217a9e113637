package redis

import (
	"context"
	"crypto/sha1"
	_ "embed" // the scripts
	"encoding/hex"
	"strings"

	goredis "github.com/redis/go-redis/v9"
)

//go:embed batch.lua
var batchSource string

//go:embed record.lua
var recordSource string

//go:embed trim.lua
var trimSource string

//go:embed apply.lua
var applySource string

//go:embed range.lua
var rangeSource string

//go:embed due.lua
var dueSource string

//go:embed epoch.lua
var epochSource string

type scripts struct {
	apply, ranges, due script
	// epoch begins an epoch. askEpoch is the same script, but the server does not allow it to write; it only reports
	// whether an epoch must be begun.
	epoch, askEpoch script
}

func newScripts() scripts {
	// A server that is out of memory refuses scripts that write, unless they have the flag allow-oom, before they
	// begin. A server that cannot save changes refuses all scripts that write. Both still run scripts that only read.
	const writes, writesWhenFull, reads = "#!lua\n", "#!lua flags=allow-oom\n", "#!lua flags=no-writes,allow-oom\n"
	return scripts{
		apply:    newScript(writes, batchSource, recordSource, trimSource, applySource),
		ranges:   newScript(reads, rangeSource),
		due:      newScript(reads, dueSource),
		epoch:    newScript(writesWhenFull, epochSource),
		askEpoch: newScript(reads, epochSource),
	}
}

// script is a Lua script with the hash by which servers identify it.
type script struct{ source, sha string }

func newScript(parts ...string) script {
	source := strings.Join(parts, "")
	sum := sha1.Sum([]byte(source))
	return script{source: source, sha: hex.EncodeToString(sum[:])}
}

// run runs the script. If the server does not know it, run sends the source.
func (s script) run(ctx context.Context, c goredis.Scripter, keys []string, args ...any) ([]any, error) {
	out, err := c.EvalSha(ctx, s.sha, keys, args...).Slice()
	if goredis.HasErrorPrefix(err, "NOSCRIPT") {
		out, err = c.Eval(ctx, s.source, keys, args...).Slice()
	}
	return out, err
}
