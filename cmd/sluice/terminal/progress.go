package terminal

import (
	"fmt"
	"io"
	"os"
	"sync"
)

// progressLine is a line on a terminal with the progress of a command. It is erased before anything else is written.
type progressLine struct {
	to io.Writer // nil if the standard error is no terminal

	mu    sync.Mutex
	shown bool
}

// show replaces the shown text. An empty text erases the line.
func (l *progressLine) show(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.to == nil || text == "" && !l.shown {
		return
	}
	l.shown = text != ""
	_, _ = io.WriteString(l.to, "\r\x1b[K"+text)
}

// manyResources is the number of resources above which a command shows its progress.
const manyResources = 100

// Progress shows on a terminal how many resources of a command are processed, such as "3 of 200 ...". at is the number
// of the present one, counted from 1, and of is the number of all. If there are only a few, it shows nothing.
func (s Streams) Progress(at, of int) {
	if of > manyResources {
		s.Show(fmt.Sprintf("%d of %d ...", at, of))
	}
}

// Show shows a text on a terminal until something else is written. An empty text erases it.
func (s Streams) Show(text string) {
	if err, ok := s.Err.(*stream); ok {
		err.line.show(text)
	}
}

// progressWriter returns the writer for the progress line. It returns stderr if that is a terminal that can erase a
// line, otherwise nil.
func progressWriter(stderr io.Writer) io.Writer {
	if IsTerminal(stderr) && os.Getenv("TERM") != "dumb" {
		return stderr
	}
	return nil
}
