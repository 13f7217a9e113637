package kinds

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
)

// Finding is a problem in an author's file.
type Finding struct {
	File    string
	Line    int
	Message string
}

// String is "file:line: message", as editors read it.
func (f Finding) String() string { return fmt.Sprintf("%s:%d: %s", f.File, f.Line, f.Message) }

// Findings are the findings of a schema, in the order of files and lines.
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

// maxQuoted is the maximum number of characters of an author's text in a finding.
const maxQuoted = 128

// shorten shortens an author's text for a finding.
func shorten(s string) string {
	if r := []rune(s); len(r) > maxQuoted {
		return string(r[:maxQuoted]) + "…"
	}
	return s
}

// own is a text of this package in a finding, which is not shortened.
type own string

// listed are names in a finding. Each is shortened.
type listed []string

// String returns the names in the form "a, b, c".
func (n listed) String() string {
	return strings.Join(textsOf(n, shorten), ", ")
}

// report adds a finding unless the same one exists already. Texts are shortened unless their type
// is [own] or [listed].
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
