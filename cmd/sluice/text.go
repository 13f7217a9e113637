package main

import "github.com/sluicegw/sluice/cmd/sluice/output"

// cell is a stored value as a table shows it; see [output.Cell].
func cell(s string) string { return output.Cell(s) }

// printable escapes what a terminal would act on; see [output.Printable].
func printable(s string) string { return output.Printable(s) }
