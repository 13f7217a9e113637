package kinds

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
)

// mistake is a common mistake in the syntax of a line, with advice. The advice can refer to groups of the pattern.
type mistake struct {
	pattern *regexp.Regexp
	advice  string
}

// mistakes returns the mistakes in the order in which they are tried, special ones first. They are matched with lines
// from which strings were removed.
func mistakes() []mistake {
	return []mistake{
		{regexp.MustCompile(`'`), `texts have double quotes`},
		{regexp.MustCompile(`//`), `a comment begins with #`},
		{regexp.MustCompile(`@(\w+)\s*\{`), `the arguments of @$1 stand in parentheses`},
		{regexp.MustCompile(`@\w+\([^)]*?\b(\w+)\s*=\s*`), `write $1: in place of $1 =`},
		{regexp.MustCompile(`@\w+\((?:[^)]*,)?\s*(\w+)\s+([\w.-]+|"")`), `write $1: and its value`},
		{regexp.MustCompile(`(\w+)\s*\[\s*\]`), `a list is written [$1!]`},
		{regexp.MustCompile(`\w\s*\?`), `a field may be null unless its type ends in !`},
		{regexp.MustCompile(`;`), `fields stand on lines of their own, without ;`},
		{regexp.MustCompile(`[:\w\]!]\s*=\s*(\S+)`), `a default is written @default(value: $1)`},
		{regexp.MustCompile(`^\s*(\w+)\s+([A-Z]\w*)`), `write $1: $2`},
		{regexp.MustCompile(`^\s*""\s*:`), `the name of a field has no quotes`},
	}
}

var (
	// nameless matches a directive whose only argument has no name.
	nameless    = regexp.MustCompile(`@(\w+)\(\s*("[^"]*"|[^\s:()",]+)\s*\)`)
	quotedText  = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
	declares    = regexp.MustCompile(`^\s*(type|enum|input|interface|union|scalar|extend|directive)\b`)
	withoutType = regexp.MustCompile(`^\s*(\w+)\s*:\s*$`)
)

// meant returns the message for an error of the parser, with advice if the mistake is a common one.
func (l *loader) meant(f *ast.Source, err *gqlerror.Error, line int) string {
	lines := strings.Split(f.Input, "\n")
	if line < 1 || line > len(lines) {
		return err.Message
	}
	text := lines[line-1]
	if m := nameless.FindStringSubmatch(text); m != nil {
		if name := l.mainArgument(m[1]); name != "" {
			return fmt.Sprintf("%s; write @%s(%s: %s)", err.Message, m[1], name, m[2])
		}
	}
	plain := quotedText.ReplaceAllString(text, `""`)
	for _, m := range mistakes() {
		at := m.pattern.FindStringSubmatchIndex(plain)
		if at != nil && !declares.MatchString(plain) {
			return err.Message + "; " + string(m.pattern.ExpandString(nil, m.advice, plain, at))
		}
	}
	if line > 1 {
		if m := withoutType.FindStringSubmatch(lines[line-2]); m != nil {
			return fmt.Sprintf("%s; the field %s before it has no type", err.Message, m[1])
		}
		if before := lines[line-2]; strings.Count(before, "[") > strings.Count(before, "]") {
			return err.Message + "; a list on the line before has no ]"
		}
	}
	return err.Message
}

// mainArgument returns the name of the required argument of a directive, or of its only argument; "" if there is
// neither.
func (l *loader) mainArgument(directive string) string {
	def := l.directives[directive]
	if def == nil {
		return ""
	}
	var required []string
	for _, a := range def.Arguments {
		if a.Type.NonNull || len(def.Arguments) == 1 {
			required = append(required, a.Name)
		}
	}
	if len(required) == 0 {
		return ""
	}
	return required[0]
}
