package output

import (
	"fmt"
)

// Plural returns a number with a noun: "1 resource", "2 resources".
func Plural(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// OrEmpty returns the text at s; empty for nil.
func OrEmpty(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
