package proto

import (
	"strconv"
	"strings"
	"unicode"
)

// snake converts a name to lower case with underscores between words. For example, apiVersion becomes api_version, and
// HTTPPort becomes http_port. The result begins with a letter.
func snake(name string) string {
	name = strings.TrimLeft(name, "_")
	var out strings.Builder
	if name == "" || unicode.IsDigit(rune(name[0])) {
		out.WriteString("x")
	}
	runes := []rune(name)
	for i, r := range runes {
		if unicode.IsUpper(r) && i > 0 && runes[i-1] != '_' {
			afterLower := !unicode.IsUpper(runes[i-1])
			beforeLower := i+1 < len(runes) && unicode.IsLower(runes[i+1])
			if afterLower || beforeLower {
				out.WriteByte('_')
			}
		}
		out.WriteRune(unicode.ToLower(r))
	}
	return out.String()
}

// upperFirst returns a name with a capital first letter.
func upperFirst(name string) string {
	if name == "" {
		return ""
	}
	return strings.ToUpper(name[:1]) + name[1:]
}

// folded returns a name in lower case without underscores. The names of a message's fields must differ in this form,
// because otherwise their names in JSON or in generated code would be equal.
func folded(name string) string { return strings.ToLower(strings.ReplaceAll(name, "_", "")) }

// isNumbered reports whether name is base, or base with a number that [free] has added.
func isNumbered(name, base string) bool {
	rest, found := strings.CutPrefix(name, base)
	if !found || rest == "" {
		return found
	}
	digits, found := strings.CutPrefix(rest, "_")
	if !found {
		return false
	}
	_, err := strconv.Atoi(digits)
	return err == nil
}

// free returns base, or if that is used, base with the first number from 2 on with which it is not used. taken has the
// folded names in use.
func free(base string, taken map[string]bool) string {
	name := base
	for i := 2; taken[folded(name)]; i++ {
		name = base + "_" + strconv.Itoa(i)
	}
	return name
}

// camel returns the JSON name that protobuf derives from a field name.
func camel(name string) string {
	var out strings.Builder
	up := false
	for _, r := range name {
		if r == '_' {
			up = true
			continue
		}
		if up {
			r = unicode.ToUpper(r)
			up = false
		}
		out.WriteRune(r)
	}
	return out.String()
}
