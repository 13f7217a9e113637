package kinds

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
)

// Finding is a problem in a file of the catalogue.
type Finding struct {
	File    string
	Line    int
	Message string
}

// String returns the finding in the form "file:line: message", which editors understand.
func (f Finding) String() string { return fmt.Sprintf("%s:%d: %s", f.File, f.Line, f.Message) }

// Findings are all findings of a catalogue, ordered by file and line.
type Findings []Finding

func (f Findings) Error() string {
	return strings.Join(textsOf(f, Finding.String), "\n")
}

// Sort sorts the findings by file and line.
func (f Findings) Sort() {
	slices.SortStableFunc(f, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
}

// maxQuoted is the maximum number of characters that a finding quotes from a file.
const maxQuoted = 128

// shorten shortens a text from a file for use in a finding.
func shorten(s string) string {
	if r := []rune(s); len(r) > maxQuoted {
		return string(r[:maxQuoted]) + "…"
	}
	return s
}

// own marks a text of this package, which is not shortened in a finding.
type own string

// listed are names in a finding. Each of them is shortened.
type listed []string

// String returns the names in the form "a, b, c".
func (n listed) String() string {
	return strings.Join(textsOf(n, shorten), ", ")
}

// report adds a finding unless the same one was added before. Arguments from the files are shortened, except arguments
// of type [own] or [listed].
func (l *loader) report(at *ast.Position, format string, args ...any) {
	short := make([]any, len(args))
	for i, arg := range args {
		switch arg := arg.(type) {
		case own, listed, int, nil:
			short[i] = arg
		default:
			short[i] = shorten(fmt.Sprint(arg))
		}
	}
	f := Finding{Message: fmt.Sprintf(format, short...)}
	if at != nil && at.Src != nil {
		f.File, f.Line = at.Src.Name, at.Line
	}
	if !slices.Contains(l.findings, f) {
		l.findings = append(l.findings, f)
	}
}

func (l *loader) err() error {
	if len(l.findings) == 0 {
		return nil
	}
	l.findings.Sort()
	return l.findings
}
