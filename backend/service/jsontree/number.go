package jsontree

import (
	"encoding/json"
	"strconv"
	"strings"
)

// MaxSafeInteger is the greatest integer n such that all readers of JSON represent the integers from -n to n exactly
// (RFC 8259, section 6).
const MaxSafeInteger = 1<<53 - 1

// Integer returns the value of a number, and whether it is an integer within +-[MaxSafeInteger]. It is exact, because
// it looks at the digits. 10.0 and 1e1 are the integer 10. But 123456789012345.99999 and 1e-400 are no integers,
// although the nearest float64 of each is an integer.
func Integer(n json.Number) (value int64, ok bool) {
	text, negative := strings.CutPrefix(string(n), "-")
	mantissa, exponentText := text, "0"
	if at := strings.IndexAny(text, "eE"); at >= 0 {
		mantissa, exponentText = text[:at], text[at+1:]
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	if digits == "" {
		return 0, mantissa != ""
	}
	significant := strings.TrimRight(digits, "0")
	exponent, err := strconv.Atoi(exponentText)
	if err != nil { // the exponent is too large or too small
		return 0, false
	}
	zeros := exponent - len(fraction) + len(digits) - len(significant)
	const maxDigits = 16
	if zeros < 0 || zeros > maxDigits || len(significant)+zeros > maxDigits {
		return 0, false
	}
	value, err = strconv.ParseInt(significant+strings.Repeat("0", zeros), 10, 64)
	if err != nil || value > MaxSafeInteger {
		return 0, false
	}
	if negative {
		value = -value
	}
	return value, true
}
