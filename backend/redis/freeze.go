package redis

import (
	"context"
	"fmt"

	"github.com/sluicegw/sluice/backend"
)

// freeze reads the first members of all ranges again, with their resources, in
// one step of each shard.
func (sc *scanner) freeze(ctx context.Context, rs []backend.Range, runs [][]*run) error {
	byShard := map[*shard][]*run{}
	args := map[*shard][]any{}
	for i, r := range rs {
		if r.Count {
			continue
		}
		start, end := r.Bounds()
		kind := string(memberType(r))
		for _, n := range runs[i] {
			n.lo, n.hi, n.members = "["+kind+string(start), "("+kind+string(end), nil
			n.more = true
			prefix, rev := 0, ""
			if r.Referenced != nil {
				prefix = len(r.Prefix())
			}
			a := n.args(r.Limit + 1)
			if n.reverse {
				rev = "rev"
			}
			byShard[n.shard] = append(byShard[n.shard], n)
			args[n.shard] = append(args[n.shard], a.Start, a.Stop, rev, r.Limit+1, prefix)
		}
	}
	for sh, all := range byShard {
		reply, err := sc.store.core.scripts.scan.run(ctx, sc.session.client, []string{sh.rows}, append([]any{sh.item}, args[sh]...)...)
		if err != nil {
			return err
		}
		if len(reply) != len(all)+1 {
			return fmt.Errorf("range: %d answers to %d ranges: %w", len(reply), len(all), backend.ErrUnavailable)
		}
		for i, n := range all {
			sc.take(n, texts(reply[i]), args[sh][5*i+3].(int))
		}
		records := texts(reply[len(all)])
		for i := 0; i+1 < len(records); i += 2 {
			if k, err := backend.DecodeKey([]byte(records[i])); err == nil {
				sc.records[k] = records[i+1]
			}
		}
	}
	return nil
}

// texts is a list of strings in a script's answer.
func texts(v any) []string {
	list, _ := v.([]any)
	out := make([]string, len(list))
	for i := range list {
		out[i], _ = list[i].(string)
	}
	return out
}
