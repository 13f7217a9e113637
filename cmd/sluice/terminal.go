package main

import (
	"io"
	"os"

	"golang.org/x/term"
)

// isTerminal says whether what is written goes to a terminal.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// coloured says whether what is written may have colours: on a terminal that has
// them, unless the user wants none (https://no-color.org).
func coloured(w io.Writer) bool {
	return isTerminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}
