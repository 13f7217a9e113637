package output

import (
	"fmt"
)

// Plural returns a number with a noun, such as "1 resource" or "2 resources".
func Plural(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// OrEmpty returns *s, or "" if s is nil.
func OrEmpty(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
