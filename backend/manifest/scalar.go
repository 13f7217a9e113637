package manifest

import (
	"math/big"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v4"
)

// The tags of scalars.
const (
	tagText  = "!!str"
	tagNull  = "!!null"
	tagBool  = "!!bool"
	tagInt   = "!!int"
	tagFloat = "!!float"
)

// quoted are the styles of scalars that are always strings, whatever their text is.
const quoted = yaml.SingleQuotedStyle | yaml.DoubleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle

var (
	decimal  = regexp.MustCompile(`^([-+]?)([0-9]+)$`)
	based    = regexp.MustCompile(`^0(o[0-7]+|x[0-9a-fA-F]+)$`)
	fraction = regexp.MustCompile(`^([-+]?)([0-9]*)(?:\.([0-9]*))?([eE][-+]?[0-9]+)?$`)
	infinite = regexp.MustCompile(`^([-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))$`)
)

// plainScalar returns the tag of an unquoted scalar by the core schema of YAML 1.2 (section 10.3.2), and its value in
// JSON. The value is empty for a string, and for a number that is infinite or NaN. The digits of numbers are kept.
func plainScalar(text string) (tag, value string) {
	switch text {
	case "", "~", "null", "Null", "NULL":
		return tagNull, "null"
	case "true", "True", "TRUE":
		return tagBool, "true"
	case "false", "False", "FALSE":
		return tagBool, "false"
	}
	if m := decimal.FindStringSubmatch(text); m != nil {
		return tagInt, minus(m[1]) + whole(m[2])
	}
	if m := based.FindStringSubmatch(text); m != nil {
		base := 8
		if m[1][0] == 'x' {
			base = 16
		}
		n, _ := new(big.Int).SetString(m[1][1:], base)
		return tagInt, n.String()
	}
	if m := fraction.FindStringSubmatch(text); m != nil && m[2]+m[3] != "" {
		value = minus(m[1]) + whole(m[2])
		if m[3] != "" {
			value += "." + m[3]
		}
		return tagFloat, value + m[4]
	}
	if infinite.MatchString(text) {
		return tagFloat, ""
	}
	return tagText, ""
}

// minus returns the sign of a number for JSON, which does not accept a plus.
func minus(sign string) string { return strings.TrimPrefix(sign, "+") }

// whole returns the digits of an integer without leading zeros.
func whole(digits string) string {
	digits = strings.TrimLeft(digits, "0")
	if digits == "" {
		return "0"
	}
	return digits
}
