package redis

import (
	"context"
	"fmt"

	"github.com/sluicegw/sluice/backend"
)

// freezeMembers bounds the members of one range that the script looks at, because
// the server does nothing else meanwhile.
const freezeMembers = 64 << 10

// freeze is the first step of the last try. One script in each shard reads the
// members of all ranges and their resources. Counts are read as in begin.
func (sc *scanner) freeze(ctx context.Context) error {
	if err := sc.begin(ctx); err != nil {
		return err
	}
	byShard := map[*shard][]*run{}
	args := map[*shard][]any{}
	for i := range sc.ranges {
		r := &sc.ranges[i]
		if r.Count || r.Estimate {
			continue
		}
		for _, n := range sc.runs[i] {
			prefix, rev, namespace := 0, "", []byte{}
			if r.Referenced != nil {
				prefix = len(r.Prefix())
			}
			if filtered(r) {
				namespace = backend.AppendString(nil, r.Namespace)
			}
			a := n.args(n.first.from, n.first.to, 0)
			if n.reverse {
				rev = "rev"
			}
			byShard[n.shard] = append(byShard[n.shard], n)
			args[n.shard] = append(args[n.shard], a.Start, a.Stop, rev, r.Limit+1, prefix, namespace)
		}
	}
	for sh, all := range byShard {
		first := []any{sh.item, freezeMembers, backend.MaxPageBytes}
		reply, err := sc.store.core.scripts.scan.run(ctx, sc.session.client, []string{sh.rows}, append(first, args[sh]...)...)
		if err != nil {
			return err
		}
		if len(reply) != len(all)+1 {
			return fmt.Errorf("range: %d answers to %d ranges: %w", len(reply), len(all), backend.ErrUnavailable)
		}
		for i, n := range all {
			sc.frozen(n, texts(reply[i]))
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

// frozen takes what the script read of a run: the last member that it looked at,
// or an empty string if it came to the end, and then the members that it found.
func (sc *scanner) frozen(n *run, saw []string) {
	if len(saw) == 0 {
		return
	}
	n.lo, n.hi = n.first.from, n.first.to
	sc.take(n, saw[1:], saw[0] != "")
	if saw[0] != "" {
		n.pass(saw[0])
	}
	// Further steps compare with these members, except where the script left some out.
	if n.first.members = saw[1:]; filtered(n.of) {
		n.first.want = 0
	}
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
