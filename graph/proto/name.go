package proto

import (
	"strconv"
	"strings"
	"unicode"
)

// snake converts a name to lower case, with an underscore before each further word: apiVersion
// becomes api_version, and HTTPPort http_port. The result begins with a letter.
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

// folded returns a name without case and underscores. The fields of a message must differ in this form, so that their
// names in JSON and in generated code differ, too.
func folded(name string) string { return strings.ToLower(strings.ReplaceAll(name, "_", "")) }

// isNumbered reports whether name is base, or base with a number added by [free].
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

// free returns base, or base with the first number from 2 on that makes it unused. taken has folded
// names.
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
