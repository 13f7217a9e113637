package redis

// errand is one script of a pipeline: for one call, or for several as a group.
type errand struct {
	script script
	// source says that the server does not know the script.
	source bool
	keys   []string
	args   []any
	calls  []*scriptCall
}

// Where the arguments of a batch and of its first action are, see core.arguments.
const (
	argEpoch     = 0
	argDeadline  = 2
	argClock     = 3
	argRequest   = 4
	argOp        = batchArguments
	argReferrers = batchArguments + 7
)

// bundle is what the batches of a group have in common.
type bundle struct {
	meta         string // of their shard
	epoch, clock any
}

// groupable says whether the batch may be part of a group: one put.
func (c *scriptCall) groupable() bool {
	return len(c.keys) == shardKeys+1 && c.args[argOp] == opPut && c.args[argReferrers] == ""
}

// shardKeys is how many keys of a script are those of its shard.
const shardKeys = 3

// errands are the scripts that do what calls want. What the script has to find out
// once costs as much as a put, so those that come together share it.
func (w *writers) errands(calls []*scriptCall) []*errand {
	var out []*errand
	groups := map[bundle]*errand{}
	for _, c := range calls {
		if !c.groupable() {
			out = append(out, w.session.core.single(c))
			continue
		}
		of := bundle{meta: c.keys[0], epoch: c.args[argEpoch], clock: c.args[argClock]}
		e := groups[of]
		if e == nil {
			e = w.session.core.single(c)
			groups[of] = e
			out = append(out, e)
			continue
		}
		if len(e.calls) == 1 {
			w.session.core.regroup(e)
		}
		e.add(c)
	}
	return out
}

// single is the errand of one call.
func (c *core) single(call *scriptCall) *errand {
	return &errand{script: c.scripts.apply, keys: call.keys, args: call.args, calls: []*scriptCall{call}}
}

// regroup makes a group of an errand of one call.
func (c *core) regroup(e *errand) {
	first := e.calls[0]
	e.script, e.calls = c.scripts.group, nil
	e.keys = append(make([]string, 0, shardKeys+flightCalls), first.keys[:shardKeys]...)
	e.args = append(make([]any, 0, batchArguments+flightCalls*(actionArguments+2)), first.args[:batchArguments]...)
	e.args[argDeadline], e.args[argRequest] = "", ""
	e.add(first)
}

// add appends a call to a group.
func (e *errand) add(c *scriptCall) {
	e.keys = append(e.keys, c.keys[shardKeys])
	e.args = append(append(e.args, c.args[argDeadline], c.args[argRequest]), c.args[batchArguments:]...)
	e.calls = append(e.calls, c)
}
