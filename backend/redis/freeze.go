package redis

import (
	"context"
	"fmt"

	"github.com/sluicegw/sluice/backend"
)

// freeze is the first step of the last try, and of one that reads heads alone. One script in each shard reads the
// members of all ranges and their resources. Counts are read as in begin.
func (sc *scanner) freeze(ctx context.Context) error {
	if err := sc.begin(ctx); err != nil {
		return err
	}
	byShard := map[*shard][]*run{}
	args := map[*shard][]any{}
	for _, runs := range sc.runs {
		for _, n := range runs {
			if n.of.Count {
				continue
			}
			rev := ""
			if n.reverse {
				rev = "rev"
			}
			a := n.args(n.first.from, n.first.to, 0)
			byShard[n.shard] = append(byShard[n.shard], n)
			args[n.shard] = append(args[n.shard], a.Start, a.Stop, rev, n.first.want, n.prefix)
		}
	}
	for sh, all := range byShard {
		first := []any{sh.item, backend.MaxPageBytes, ""}
		if sc.heads {
			first[2] = headBytes
		}
		reply, err := sc.store.core.scripts.scan.run(ctx, sc.session.client, []string{sh.members}, append(first, args[sh]...)...)
		if err != nil {
			return err
		}
		if len(reply) != len(all)+1 {
			return fmt.Errorf("range: %d answers to %d ranges: %w", len(reply), len(all), backend.ErrUnavailable)
		}
		for i, n := range all {
			n.lo, n.hi, n.first.members = n.first.from, n.first.to, texts(reply[i])
			sc.take(n, n.first.members, len(n.first.members) == n.first.want)
		}
		records := texts(reply[len(all)])
		for i := 0; i+1 < len(records); i += 2 {
			if k, err := backend.DecodeKey([]byte(records[i])); err == nil {
				sc.records[k] = records[i+1]
				sc.held += len(records[i+1])
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
