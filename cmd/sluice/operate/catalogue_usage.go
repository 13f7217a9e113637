package operate

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicegw/sluice/cmd/sluice/command"
	"github.com/sluicegw/sluice/cmd/sluice/exit"
	"github.com/sluicegw/sluice/cmd/sluice/output"
	"github.com/sluicegw/sluice/cmd/sluice/terminal"
	"github.com/sluicegw/sluice/graph/release"
)

func catalogueUsageCommand(std terminal.Streams) *cobra.Command {
	var files []string
	var format command.OutputFlag
	cmd := &cobra.Command{
		Use:   "usage --log FILE [FILE...]",
		Short: "Sum up an access log: which clients use which versions of the API, and what is deprecated",
		Long: "Sum up the access log of a gateway: which clients use which versions of the API, and which deprecated\n" +
			"fields, arguments and values, how often, and when for the first and the last time.\n\n" +
			"The gateway writes the log with --access-log, to standard error, as JSON (--log-format json). Files may be\n" +
			"compressed by gzip; - is standard input. Lines that are not of the log are counted and left out.",
		Example: "  sluice catalogue usage --log sluice.log\n" +
			"  sluice catalogue usage --log sluice.log sluice.log.1.gz -o json\n" +
			"  journalctl -u sluice -o cat | sluice catalogue usage --log -",
		RunE: func(_ *cobra.Command, args []string) error {
			if len(files) == 0 {
				return exit.Usage(errors.New("log: name a file with the log of a gateway by --log FILE; " +
					"- is standard input"))
			}
			sum := newUsage()
			whole := true
			for _, name := range append(files, args...) {
				if err := sum.addFile(std, name); err != nil {
					return err
				}
				whole = whole && sum.warnUnread(std, name)
			}
			clients := sum.clients()
			if len(clients) == 0 {
				_, _ = fmt.Fprintln(std.Err, "sluice: warning: there are no operations in it; "+
					"a gateway logs them with --access-log, and as JSON with --log-format json")
			}
			err := format.Print(std, clients, usageTable(clients).To(std))
			if err == nil && !whole {
				return exit.ErrReported
			}
			return err
		},
	}
	cmd.Flags().StringArrayVar(&files, "log", nil, "file with the log of a gateway; several are summed up together")
	format.Register(cmd)
	return cmd
}

// used counts the operations of a client, with the times of the first and the last one.
type used struct {
	Operations int       `json:"operations" yaml:"operations"`
	First      time.Time `json:"first" yaml:"first"`
	Last       time.Time `json:"last" yaml:"last"`
}

// add adds a number of operations at a time.
func (u *used) add(at time.Time, operations int) {
	if u.Operations == 0 || at.Before(u.First) {
		u.First = at
	}
	if at.After(u.Last) {
		u.Last = at
	}
	u.Operations += operations
}

// clientUsage is the use of one version of the API by one client.
type clientUsage struct {
	// Version is empty if no version was released. Client is empty if the client has no name.
	Version string `json:"version" yaml:"version"`
	Client  string `json:"client" yaml:"client"`
	used    `yaml:",inline"`
	// Deprecated are the deprecated parts of the API that the client uses. While logs are read, names maps the name of
	// each part to its counts.
	Deprecated []deprecatedUsage `json:"deprecated" yaml:"deprecated"`
	names      map[string]*used
}

// deprecatedUsage is the use of a deprecated part of the schema by one client.
type deprecatedUsage struct {
	Name string `json:"name" yaml:"name"`
	used `yaml:",inline"`
}

const (
	// maxUsageClients is the maximum number of pairs of a client and a version. There is a limit because clients choose
	// their names.
	maxUsageClients = 10_000
	// maxLogLine is the maximum length of a line that is read, in bytes.
	maxLogLine = 1 << 20
	// otherUsage is the name under which all further clients are counted, and deprecated parts that have no name in the
	// log.
	otherUsage = "(others)"
)

// usageKey is a client and a version of the API.
type usageKey struct{ version, client string }

// usage adds up access logs.
type usage struct {
	byClient map[usageKey]*clientUsage
	// bad is the number of lines in the current file that are not lines of a log. cut is the error because of which the
	// rest of the file was not read; nil if it was.
	bad int
	cut error
}

func newUsage() *usage { return &usage{byClient: map[usageKey]*clientUsage{}} }

// addFile adds the log in a file, or in the standard input for the name "-".
func (u *usage) addFile(std terminal.Streams, name string) error {
	u.bad, u.cut = 0, nil
	if name == "-" {
		u.read(std.In)
		return nil
	}
	f, err := os.Open(name)
	if err != nil {
		return exit.Usage(fmt.Errorf("log: %w", err))
	}
	u.read(f)
	return f.Close()
}

// warnUnread prints which parts of a file were not read. It reports whether the file was read to its end.
func (u *usage) warnUnread(std terminal.Streams, name string) (whole bool) {
	if u.bad > 0 {
		_, _ = fmt.Fprintf(std.Err, "sluice: warning: %s: %s left out that are no JSON of a log\n",
			output.Printable(name), output.Plural(u.bad, "line"))
	}
	if u.cut != nil {
		_, _ = fmt.Fprintf(std.Err, "sluice: error: %s: it cannot be read to its end: %s\n",
			output.Printable(name), output.Printable(u.cut.Error()))
	}
	return u.cut == nil
}

// read adds a log. It may be compressed.
func (u *usage) read(from io.Reader) {
	lines := bufio.NewReaderSize(from, maxLogLine)
	if magic, _ := lines.Peek(2); string(magic) == "\x1f\x8b" {
		plain, err := gzip.NewReader(lines)
		if err != nil {
			u.cut = err
			return
		}
		lines = bufio.NewReaderSize(plain, maxLogLine)
	}
	for {
		line, err := lines.ReadSlice('\n')
		long := errors.Is(err, bufio.ErrBufferFull)
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = lines.ReadSlice('\n')
		}
		switch {
		case long:
			u.bad++
		case len(bytes.TrimSpace(line)) > 0:
			u.line(line)
		}
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			u.cut = err
			return
		}
	}
}

// line adds a line of the log. Lines that are not about operations are ignored.
func (u *usage) line(text []byte) {
	var line struct {
		Msg            string    `json:"msg"`
		Time           time.Time `json:"time"`
		Version        string    `json:"version"`
		Client         string    `json:"client"`
		DocumentHash   string    `json:"documentHash"`
		Deprecated     []string  `json:"deprecated"`
		DeprecatedMore int       `json:"deprecatedMore"`
	}
	err := json.Unmarshal(text, &line)
	operation := line.Msg == "access" && line.DocumentHash != "" // others are of requests that were refused before
	switch {
	case err != nil || operation && line.Time.IsZero():
		u.bad++
		return
	case !operation:
		return
	}
	client := u.client(usageKey{line.Version, line.Client})
	client.add(line.Time, 1)
	for _, name := range line.Deprecated {
		client.deprecated(name).add(line.Time, 1)
	}
	if line.DeprecatedMore > 0 {
		client.deprecated(otherUsage).add(line.Time, 1)
	}
}

// client returns the usage of a client and version. It is created if necessary.
func (u *usage) client(key usageKey) *clientUsage {
	if u.byClient[key] == nil && len(u.byClient) >= maxUsageClients {
		key.client = otherUsage
	}
	if u.byClient[key] == nil {
		u.byClient[key] = &clientUsage{Version: key.version, Client: key.client, names: map[string]*used{}}
	}
	return u.byClient[key]
}

// deprecated returns the client's use of a deprecated part. It is created if necessary.
func (c *clientUsage) deprecated(name string) *used {
	if c.names[name] == nil {
		c.names[name] = &used{}
	}
	return c.names[name]
}

// clients returns the usages, sorted by version from the oldest to the newest. Within a version, the client with the
// most operations comes first.
func (u *usage) clients() []clientUsage {
	out := []clientUsage{}
	for _, c := range u.byClient {
		c.Deprecated = []deprecatedUsage{}
		for _, name := range slices.Sorted(maps.Keys(c.names)) {
			c.Deprecated = append(c.Deprecated, deprecatedUsage{Name: name, used: *c.names[name]})
		}
		out = append(out, *c)
	}
	slices.SortFunc(out, func(a, b clientUsage) int {
		return cmp.Or(
			compareVersions(a.Version, b.Version),
			cmp.Compare(b.Operations, a.Operations),
			cmp.Compare(a.Client, b.Client),
		)
	})
	return out
}

// compareVersions compares versions by their numbers. A name that is not a number, such as unreleased, is treated as
// the newest.
func compareVersions(a, b string) int {
	one, err := release.ParseNumber(a)
	other, otherErr := release.ParseNumber(b)
	switch {
	case err == nil && otherErr == nil:
		return one.Compare(other)
	case err == nil:
		return -1
	case otherErr == nil:
		return 1
	}
	return cmp.Compare(a, b)
}

// usageTable returns a table with one row for each pair of a client and a version, followed by one row for each
// deprecated part that the client uses.
func usageTable(clients []clientUsage) command.Table {
	out := command.Table{Titles: []string{"VERSION", "CLIENT", "DEPRECATED", "OPERATIONS", "FIRST", "LAST"}}
	for _, c := range clients {
		row := func(name string, u used) {
			out.Rows = append(out.Rows, []string{
				output.Cell(c.Version),
				output.Cell(c.Client),
				output.Cell(name),
				strconv.Itoa(u.Operations),
				u.First.UTC().Format(time.RFC3339),
				u.Last.UTC().Format(time.RFC3339),
			})
		}
		row("", c.used)
		for _, d := range c.Deprecated {
			row(d.Name, d.used)
		}
	}
	return out
}
