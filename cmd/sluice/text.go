package main

import (
	"fmt"

	"github.com/sluicegw/sluice/cmd/sluice/output"
)

// cell is a stored value as a table shows it; see [output.Cell].
func cell(s string) string { return output.Cell(s) }

// printable escapes what a terminal would act on; see [output.Printable].
func printable(s string) string { return output.Printable(s) }

// plural returns a number with a noun: "1 resource", "2 resources".
func plural(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// orEmpty returns the text that s points to; empty for nil.
func orEmpty(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
