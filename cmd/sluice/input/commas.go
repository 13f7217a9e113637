package input

// splitCommas splits a text at commas that are neither in parentheses nor in quotes.
func splitCommas(text string) []string {
	var out []string
	depth := 0 // of parentheses
	begin := 0
	quoted := false
	escaped := false
	for i, r := range text {
		switch {
		case escaped:
			escaped = false
		case quoted && r == '\\':
			escaped = true
		case r == '"':
			quoted = !quoted
		case quoted:
		case r == '(':
			depth++
		case r == ')':
			depth--
		case r == ',' && depth == 0:
			out = append(out, text[begin:i])
			begin = i + 1
		}
	}
	return append(out, text[begin:])
}
