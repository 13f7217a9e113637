package config_test

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/sluicegw/sluice/cmd/sluice/config"
	"github.com/sluicegw/sluice/graph/server"
	"github.com/sluicegw/sluice/graph/transport"
)

// markdown is the table of the settings for docs/operations.md; docs/limits.md has the limits. It
// shows the defaults, so the settings must be fresh.
func markdown(settings []config.Setting) string {
	var b strings.Builder
	b.WriteString("| setting | default | meaning |\n|---|---|---|\n")
	for _, s := range settings {
		if s.Why != "" {
			continue
		}
		_, _ = fmt.Fprintf(&b, "| `%s` | %s | %s |\n", s.Name, cmp.Or(s.Auto, s.Text()), strings.ReplaceAll(s.Help, "|", `\|`))
	}
	return b.String()
}

// limits is docs/limits.md: the limits with the reasons for their defaults, and those that
// are fixed. The settings must be fresh.
func limits(settings, fixed []config.Setting) string {
	var b strings.Builder
	b.WriteString(`# Limits

Generated from cmd/sluice/config: go test ./cmd/sluice/config -run Documented -update

The defaults are high enough for every frontend that we know. What happens beyond a limit:

| limit | answer |
|---|---|
| most | the error LIMIT_EXCEEDED, with the limit in extensions.setting |
` +
		"| `limit-time` | TIMEOUT |\n" +
		"| `limit-memory` | UNAVAILABLE |\n" +
		"| `limit-connections`, `limit-sockets`, `limit-streams` | the status 503 |\n" +
		"| `limit-message` | the WebSocket is closed with 1009 |\n" +
		"| `limit-sockets-waiting` | the WebSocket that has waited longest is closed |\n" +
		"| `limit-queue`, `limit-queue-bytes` | the stream waits for its client; one that stays too slow gets LAGGED |\n" +
		"| `limit-cached-tokens` | none: a cache forgets documents |\n" +
		`
[clients.md](clients.md) says when each limit is checked. To see what an operation spends, send it with
"extensions": {"cost": true}: its answer then has extensions.cost. The metrics sluice_operation_* have the sums, and
` +
		"`slow-log` the most expensive operations.\n\n" +
		"All that is in flight shares `limit-memory`:\n" +
		`
| sixteenths | for |
|---|---|
| 4 | requests; the first 4 KiB of each are not counted |
| 3 | answers that are being sent |
| 3 | running operations, 64 KiB each |
| 3 | operations that need more: up to 256 KiB, 1 MiB, 4 MiB |
| 1 | operations that wait to get more |
| 1 | events that wait for their clients |
| 1 | what subscriptions keep of their requests |

- A request for which there is no room is answered UNAVAILABLE at once, with a time to retry.
- Operations that need more memory wait in the order in which they came; none is ended to make room for another. One
  that has only its first 64 KiB after 3 s is answered UNAVAILABLE, with a time to retry.
` +
		"- One operation at a time may hold more than 4 MiB, beyond `limit-memory`, up to its own limits.\n" +
		`- If there is no room for an answer, the gateway cuts off the client that takes longest to read its own answer, if that
  has taken at least 5 s.
` +
		"- An event has a tenth of `limit-rows`, `limit-steps` and `limit-objects`, a quarter of `limit-held`, and all of\n" +
		"  `limit-answer`.\n" +
		`
Times in the tables are of one core of a small server.

`)
	limitTable(&b, "setting | default", settings)
	b.WriteString("\nThese cannot be set:\n\n")
	limitTable(&b, "limit | value", fixed)
	return b.String()
}

func limitTable(b *strings.Builder, head string, limits []config.Setting) {
	_, _ = fmt.Fprintf(b, "| %s | meaning | why |\n|---|---|---|---|\n", head)
	for _, s := range limits {
		if s.Why == "" {
			continue
		}
		_, _ = fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", s.Name, cmp.Or(s.Auto, s.Text()), s.Help, s.Why)
	}
}

// fixedLimits are the limits that cannot be set, for docs/limits.md.
func fixedLimits(l *server.Limits) []config.Setting {
	return []config.Setting{
		{Name: "limit-tokens", Value: new(server.MaxTokens), Help: "most lexical tokens of a document, comments included", Why: "a document is held parsed; a page of a frontend has some hundred"},
		{Name: "limit-text", Value: new(int64(server.MaxText)), Help: "most bytes of names and strings in a document; longer ones go into variables", Why: "names and strings are compared and hashed; data belongs into variables"},
		{Name: "limit-repeats", Value: new(server.MaxRepeats), Help: "how often one selection set may name the same field", Why: "validation compares equal fields in pairs"},
		{Name: "limit-fragments", Value: new(server.MaxFragments), Help: "most named fragments of a document", Why: "validation visits each from each"},
		{Name: "limit-validation", Value: new(server.MaxValidation), Help: "most comparisons of fields that the validation of a document may take, estimated before it begins", Why: "about 60 ms on one core; validation cannot be interrupted"},
		{Name: "limit-cached-tokens", Value: &l.CachedTokens, Help: "most tokens of parsed documents in the cache; each takes 100 to 400 bytes", Why: "a few hundred documents of a frontend, in at most 40 MB"},
		{Name: "limit-objects", Value: &l.Objects, Help: "most resources that an operation may return; each place in the answer counts", Why: "less than 0.1 s of writing few fields each; a hundred pages of the largest size"},
		{Name: "limit-events", Value: &l.Events, Help: "steps that expensive events of all subscriptions may take at once; a quarter comes back each second, and one connection may use a quarter. The first 5,000 steps of each event are free", Why: "about half a second: one change may be an event for ten thousand listeners"},
		{Name: "limit-connections", Value: &l.Connections, Auto: "twice `limit-sockets`, and 1,000", Help: "most connections; requests on further ones are answered 503, except for `/healthz`, `/readyz` and `/metrics`", Why: "each needs a file descriptor and a few kilobytes"},
		{Name: "limit-streams", Value: &l.Sockets, Auto: "`limit-sockets`", Help: "most connections that receive server-sent events; subscriptions over WebSocket do not count", Why: "as `limit-sockets`"},
		{Name: "limit-sockets-waiting", Value: &l.Sockets, Auto: "half of `limit-sockets`", Help: "most WebSocket connections that have not sent connection_init; one more closes the oldest of them", Why: "a client that never initialises must not keep others out"},
		{Name: "limit-operations", Value: new(transport.DefaultOperations), Help: "most operations that run on one WebSocket connection", Why: "a frontend has a few dozen at once; all share one core of validation"},
		{Name: "limit-message", Value: &l.Body, Auto: "`limit-body`", Help: "most bytes of a WebSocket message", Why: "as `limit-body`"},
		{Name: "limit-queue", Value: new(transport.DefaultQueue), Help: "most events that wait for one listener's connection", Why: "a listener that is behind by more reads the state anew more cheaply"},
		{Name: "limit-queue-bytes", Value: new(int64(transport.DefaultQueueBytes)), Help: "most bytes of events that wait for one listener's connection; one event may always wait", Why: "what one slow listener makes the gateway hold"},
	}
}
