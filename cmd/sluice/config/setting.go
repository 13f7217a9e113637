// Package config is the settings of a gateway: one table, from which come the
// flags, the environment variables, the keys of the configuration file, their
// checks and the table in the documentation.
package config

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// Setting is one of a gateway.
type Setting struct {
	// Name is that of the flag and of the key of the configuration file.
	Name string
	// Value points to the value: a string, bool, int, duration or list of strings, or an int64,
	// which is a number of bytes. Its initial value is the default.
	Value any
	// Auto says what the default stands for, where it follows from something else.
	Auto string
	// Help says what the setting does, in one line.
	Help string
	// Why says why the default of a limit is what it is.
	Why string
	// Needs is a setting without which this one has no effect.
	Needs string
	// Check says what is wrong with the value, beyond its type. Default: numbers
	// and durations are not negative.
	Check func() error
}

// Register makes a flag of each setting.
func Register(f *pflag.FlagSet, settings []Setting) {
	for _, s := range settings {
		help := strings.ReplaceAll(s.Help, "`", "")
		if s.Auto != "" {
			help += "; by default " + strings.ReplaceAll(s.Auto, "`", "")
		}
		switch v := s.Value.(type) {
		case *string:
			f.StringVar(v, s.Name, *v, help)
		case *bool:
			f.BoolVar(v, s.Name, *v, help)
		case *int:
			f.IntVar(v, s.Name, *v, help)
		case *int64:
			f.Var((*size)(v), s.Name, help)
		case *time.Duration:
			DurationVar(f, v, s.Name, *v, help)
		case *[]string:
			f.StringSliceVar(v, s.Name, *v, help)
		default:
			panic(fmt.Sprintf("setting %s: %T", s.Name, s.Value))
		}
		if s.Auto != "" { // Help says it
			f.Lookup(s.Name).DefValue = ""
		}
	}
}

// Check returns every problem of the values, joined. f tells which were given.
func Check(f *pflag.FlagSet, settings []Setting) error {
	var errs []error
	for _, s := range settings {
		if err := s.check(); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", s.Name, err))
		}
		if s.Needs != "" && f.Changed(s.Name) && !f.Changed(s.Needs) {
			errs = append(errs, fmt.Errorf("%s: has no effect without %s", s.Name, s.Needs))
		}
	}
	return errors.Join(errs...)
}

func (s Setting) check() error {
	if s.Check != nil {
		return s.Check()
	}
	negative := false
	switch v := s.Value.(type) {
	case *int:
		negative = *v < 0
	case *int64:
		negative = *v < 0
	case *time.Duration:
		negative = *v < 0
	}
	if negative {
		return fmt.Errorf("%s is negative", s.text())
	}
	return nil
}

// Markdown is the table of the settings for the documentation. It shows the
// defaults, so the settings must be fresh.
func Markdown(settings []Setting) string {
	var b strings.Builder
	b.WriteString("| setting | default | meaning |\n|---|---|---|\n")
	for _, s := range settings {
		value := s.Auto
		if value == "" {
			value = s.text()
		}
		_, _ = fmt.Fprintf(&b, "| `%s` | %s | %s |\n", s.Name, value, strings.ReplaceAll(s.Help, "|", `\|`))
	}
	return b.String()
}

// Limits is docs/limits.md: the limits with the reasons for their defaults, and those that
// are fixed. The settings must be fresh.
func Limits(settings, fixed []Setting) string {
	var b strings.Builder
	b.WriteString(`# Limits

Generated from cmd/sluice/config: go test ./cmd/sluice/config -run Documented -update

At their defaults, no frontend should reach them. Most limits answer LIMIT_EXCEEDED, and extensions.setting names the limit. The others:
` + "`limit-time` answers TIMEOUT, `limit-memory` UNAVAILABLE, `limit-connections` and `limit-sockets` the status 503, `limit-message` closes the" + `
` + "WebSocket with 1009, `limit-sockets-waiting` closes the oldest that waits, `limit-queue` and `limit-queue-bytes` bound what waits for a slow listener," + `
` + "and `limit-cached-tokens` is the size of a cache and refuses nothing." + ` [clients.md](clients.md) says when each is checked, and what happens to queries, mutations and streams.
What an operation spent is told in extensions.cost of its answer if the request has "extensions": {"cost": true}, and in the metric
sluice_operation_* of all of them; ` + "`slow-log`" + ` logs the most expensive. Times are of one core of a small server.

All that is in flight shares ` + "`limit-memory`" + `. Four sixteenths are for requests, but for 4 KiB of each, three for answers that are
being sent, three for operations to begin with, 64 KiB each, three for those that need more: up to 256 KiB, 1 MiB, 4 MiB; one for operations that wait for that, one for events
that wait for their clients, one for what subscriptions keep of their requests. If there is no room for an answer, the client that has read its own for longest, for 5 s at least, is cut off. One operation at a time may hold more than that, beyond ` + "`limit-memory`" + `, as its own limits allow. Operations wait in
the order in which they came, and none that runs is ended to make room for another. One that waits in vain for 3 s before it has more than it began with is answered
UNAVAILABLE, with the time after which to try again; so is at once a request for which there is no room. An event has a tenth of
` + "`limit-rows`, `limit-steps` and `limit-objects`, a quarter of `limit-held` and all of `limit-answer`" + `.

`)
	limitTable(&b, "setting | default", settings)
	b.WriteString("\nThese cannot be set:\n\n")
	limitTable(&b, "limit | value", fixed)
	return b.String()
}

func limitTable(b *strings.Builder, head string, limits []Setting) {
	_, _ = fmt.Fprintf(b, "| %s | meaning | why |\n|---|---|---|---|\n", head)
	for _, s := range limits {
		if s.Why == "" {
			continue
		}
		value := s.Auto
		if value == "" {
			value = s.text()
		}
		_, _ = fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", s.Name, value, s.Help, s.Why)
	}
}

// text is the value as people write it.
func (s Setting) text() string {
	switch v := s.Value.(type) {
	case *string:
		if *v == "" {
			return "none"
		}
		return "`" + *v + "`"
	case *bool:
		return strconv.FormatBool(*v)
	case *int:
		return number(*v)
	case *int64:
		return (*size)(v).String()
	case *time.Duration:
		return (*span)(v).String()
	case *[]string:
		if len(*v) == 0 {
			return "none"
		}
		return strings.Join(*v, ", ")
	}
	return ""
}

// number writes 100000 as 100,000.
func number(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
