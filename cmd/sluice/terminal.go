package main

import (
	"io"
	"os"

	"golang.org/x/term"
)

// isTerminal says whether what is read or written is at a terminal.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// coloured says whether what is written may have colours: on a terminal that has
// them, unless the user wants none (https://no-color.org).
func coloured(w io.Writer) bool {
	return isTerminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}
