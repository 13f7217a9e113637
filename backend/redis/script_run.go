package redis

import "slices"

// scriptRun is one script of a pipeline: for one call, or for several that have the shard,
// the epoch and the clock in common.
type scriptRun struct {
	// source says that the server does not know the script.
	source bool
	keys   []string
	args   []any
	calls  []*scriptCall
}

// bundle is what the calls of a run have in common.
type bundle struct {
	meta         string // of their shard
	epoch, clock any
}

// scriptRuns returns the scripts that do what calls want. What the script has to find out
// once costs as much as a put, so batches of one action that come together share it.
func scriptRuns(calls []*scriptCall) []*scriptRun {
	var out []*scriptRun
	groups := map[bundle]*scriptRun{}
	for _, c := range calls {
		of := bundle{meta: c.keys[0], epoch: c.args[0], clock: c.args[2]}
		e := groups[of]
		if len(c.keys) > shardKeys+1 || e == nil {
			// Clipped, so that appending to them does not write into the call's own arrays.
			e = &scriptRun{keys: slices.Clip(c.keys), args: slices.Clip(c.args), calls: []*scriptCall{c}}
			out = append(out, e)
			if len(c.keys) == shardKeys+1 {
				groups[of] = e
			}
			continue
		}
		e.keys = append(e.keys, c.keys[shardKeys:]...)
		e.args = append(e.args, c.args[commonArguments:]...)
		e.calls = append(e.calls, c)
	}
	return out
}

// answer gives the calls their replies: each its own, or all of them one.
func (r *scriptRun) answer(reply []any) {
	for i, c := range r.calls {
		if own, ok := reply[min(i, len(reply)-1)].([]any); ok && len(reply) == len(r.calls) {
			c.finish(own, nil)
		} else {
			c.finish(reply, nil)
		}
	}
}
