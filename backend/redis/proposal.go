package redis

import (
	"fmt"
	"strconv"
	"time"

	"github.com/sluicegw/sluice/backend"
)

// proposal is a batch as the script takes it.
type proposal struct {
	shard *shard
	batch backend.Batch
	keys  []string
	args  []any // of the actions
}

// deed is what the script calls one.
func deed(d backend.Deed) string {
	switch d {
	case backend.DeedPut:
		return "p"
	case backend.DeedDelete:
		return "d"
	case backend.DeedReindex:
		return "r"
	}
	return "c"
}

// presence is what the script calls one.
func presence(p backend.Presence) string {
	switch p {
	case backend.Absent:
		return "a"
	case backend.Present:
		return "p"
	}
	return ""
}

// actionArguments is the number of arguments of one action, STRIDE in batch.lua.
const actionArguments = 14

func newProposal(sh *shard, b backend.Batch) *proposal {
	p := &proposal{shard: sh, batch: b, keys: make([]string, 0, 3+len(b.Actions)), args: make([]any, 0, actionArguments*len(b.Actions))}
	p.keys = append(p.keys, sh.meta, sh.rows, sh.log)
	for i := range b.Actions {
		a := &b.Actions[i]
		p.keys = append(p.keys, sh.key(a.Key))
		deleting, refs := "", ""
		switch {
		case a.If.Deleting:
			deleting = "y"
		case a.If.NotDeleting:
			deleting = "n"
		}
		if a.If.Unreferenced {
			refs = string(entryRef) + string(backend.Range{Referenced: &a.Key, BoundOnly: true}.Prefix())
		}
		d := derived{}
		if a.Do == backend.DeedPut || a.Do == backend.DeedReindex {
			d = derive(a)
		}
		p.args = append(p.args, deed(a.Do), backend.AppendString(nil, a.Key.Kind), backend.OrderTuple(a.Key.Namespace, a.Key.Name),
			presence(a.If.Presence), escape(a.If.UID), a.If.Revision.String(), deleting, refs, escape(a.Put.UID),
			d.entries, d.caller, d.fields, d.size, a.Put.Body)
	}
	return p
}

// derived is what the script needs of a put or a reindex, besides its body.
type derived struct {
	entries []byte
	caller  string // "c" if the caller made it
	fields  []byte // from the expiry to the length of the entries; of a reindex the size of the rows
	size    int    // of all
}

func derive(a *backend.Action) derived {
	r := backend.Resource{Key: a.Key, Rows: a.Put.Rows, Refs: a.Put.Refs, Body: a.Put.Body}
	r.Fingerprint, r.Deleting = a.Put.Fingerprint, a.Put.Deleting
	if !a.Put.ExpiresAt.IsZero() {
		r.ExpiresAt = a.Put.ExpiresAt.UTC().Truncate(time.Millisecond)
	}
	d := derived{entries: appendEntries(nil, &r), size: r.Size()}
	if a.Put.Caller {
		d.caller = "c"
	}
	if a.Do == backend.DeedReindex {
		d.fields = strconv.AppendInt(nil, int64(rowsSize(r.Rows)), 10)
		return d
	}
	d.fields = append(append(make([]byte, 0, 48), millis(r.ExpiresAt)...), '\n')
	if r.Deleting {
		d.fields = append(d.fields, deletingFlag...)
	}
	d.fields = append(d.fields, '\n')
	for _, n := range []int{d.size, rowsSize(r.Rows), len(d.entries)} {
		d.fields = append(strconv.AppendInt(d.fields, int64(n), 10), '\n')
	}
	return d
}

// head are the arguments of a batch before those of its actions, of which there are n.
func (c *core) head(sh *shard, deadline, clock, request string, n int) []any {
	return append(make([]any, 0, 9+n), c.epochs[sh.index].Load(), Format, deadline, clock, request,
		c.bounds[0], c.bounds[1], c.bounds[2], c.bounds[3])
}

// logBounds are what a log keeps when it is trimmed, and when that is to be: with
// more entries, with more bytes, with an older one in milliseconds.
func logBounds(c Config) [4]any {
	slack := 1 + float64(c.LogSlack)/float64(c.LogEntries)
	age := c.LogAge.Milliseconds()
	return [4]any{fmt.Sprintf("%d %d %d", c.LogEntries, c.LogBytes, age), c.LogEntries + c.LogSlack, int64(float64(c.LogBytes) * slack), int64(float64(age) * slack)}
}
