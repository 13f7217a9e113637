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

The defaults are high enough for ordinary frontends. A client that exceeds a limit gets this answer:

| limit | answer |
|---|---|
| all limits but the following | the error LIMIT_EXCEEDED, with the name of the limit in extensions.setting |
` +
		"| `limit-time` | TIMEOUT |\n" +
		"| `limit-memory` | UNAVAILABLE |\n" +
		"| `limit-connections`, `limit-sockets`, `limit-streams` | the status 503 |\n" +
		"| `limit-message` | the WebSocket is closed with 1009 |\n" +
		"| `limit-sockets-waiting` | the WebSocket that has waited longest is closed |\n" +
		"| `limit-queue`, `limit-queue-bytes` | the stream waits for its client. If the client stays too slow, the stream ends with LAGGED |\n" +
		"| `limit-cached-tokens` | none: the cache of parsed documents drops some |\n" +
		`
[clients.md](clients.md) says when each limit is checked. To see what an operation spends, send it with
"extensions": {"cost": true}; the answer has the figures in extensions.cost. The metrics sluice_operation_* show what
all operations spend, and
` +
		"`slow-log` names the most expensive ones.\n\n" +
		"`limit-memory` is divided into sixteenths:\n" +
		`
| sixteenths | for |
|---|---|
| 4 | requests, without the first 4 KiB of each |
| 3 | answers that are being sent |
| 3 | the first 64 KiB of each running operation |
| 3 | running operations that need more: up to 256 KiB, 1 MiB or 4 MiB |
| 1 | operations that wait to get more |
| 1 | events that wait for their clients |
| 1 | the requests of open subscriptions |

- If there is no room for a request, it is answered UNAVAILABLE at once, with a time to retry.
- Operations that need more memory wait in the order in which they came. An operation that still has only its first
  64 KiB after 3 s is answered UNAVAILABLE, with a time to retry.
` +
		"- One operation at a time may hold more than 4 MiB. Its memory does not count in `limit-memory`, but its own limits\n" +
		"  hold.\n" +
		`- If there is no room for an answer, the gateway closes the connection of the client that has been reading its answer
  for the longest time, if that is at least 5 s.
` +
		"- Each event of a subscription may use a tenth of `limit-rows`, `limit-steps` and `limit-objects`, a quarter of\n" +
		"  `limit-held`, and all of `limit-answer`.\n" +
		`
All times in the tables are measured on one core of a small server.

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
		{Name: "limit-tokens", Value: new(server.MaxTokens), Help: "most lexical tokens of a document, with comments", Why: "a parsed document is kept in memory; a page of a frontend has some hundred tokens"},
		{Name: "limit-text", Value: new(int64(server.MaxText)), Help: "most bytes of all names and strings in a document; put longer strings into variables", Why: "names and strings are compared and hashed"},
		{Name: "limit-repeats", Value: new(server.MaxRepeats), Help: "how often one selection set may name the same field", Why: "validation compares each pair of equal fields"},
		{Name: "limit-fragments", Value: new(server.MaxFragments), Help: "most named fragments of a document", Why: "validation visits each fragment from each other one"},
		{Name: "limit-validation", Value: new(server.MaxValidation), Help: "most comparisons of fields that the validation of a document may take, estimated before it begins", Why: "about 60 ms on one core; validation cannot be interrupted"},
		{Name: "limit-cached-tokens", Value: &l.CachedTokens, Help: "most tokens of parsed documents in the cache; each takes 100 to 400 bytes", Why: "a few hundred documents of a frontend, in at most 40 MB"},
		{Name: "limit-objects", Value: &l.Objects, Help: "most resources that an operation may return. A resource counts each time that it is in the answer", Why: "less than 0.1 s of writing few fields each; a hundred pages of the largest size"},
		{Name: "limit-events", Value: &l.Events, Help: "steps that the events of all subscriptions may take together, without the first 5,000 of each event. Each second, a quarter of it is available again. One connection may use a quarter", Why: "about half a second of work: one change may be an event for ten thousand subscriptions"},
		{Name: "limit-connections", Value: &l.Connections, Auto: "twice `limit-sockets`, and 1,000", Help: "most connections; requests on further ones are answered 503, except for `/healthz`, `/readyz` and `/metrics`", Why: "each needs a file descriptor and a few kilobytes"},
		{Name: "limit-streams", Value: &l.Sockets, Auto: "`limit-sockets`", Help: "most connections that receive server-sent events; subscriptions over WebSocket do not count", Why: "as `limit-sockets`"},
		{Name: "limit-sockets-waiting", Value: &l.Sockets, Auto: "half of `limit-sockets`", Help: "most WebSocket connections that have not sent connection_init. If there are more, the oldest is closed", Why: "a client that never initialises must not keep others out"},
		{Name: "limit-operations", Value: new(transport.DefaultOperations), Help: "most operations that run on one WebSocket connection", Why: "a frontend has a few dozen at once; all share one core of validation"},
		{Name: "limit-message", Value: &l.Body, Auto: "`limit-body`", Help: "most bytes of a WebSocket message", Why: "as `limit-body`"},
		{Name: "limit-queue", Value: new(transport.DefaultQueue), Help: "most events that wait for the client of one connection", Why: "for a client that is further behind, reading the state again is cheaper"},
		{Name: "limit-queue-bytes", Value: new(int64(transport.DefaultQueueBytes)), Help: "most bytes of events that wait for the client of one connection; one event may always wait", Why: "bounds the memory for one slow client"},
	}
}
