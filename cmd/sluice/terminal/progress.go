package terminal

import (
	"fmt"
	"io"
	"os"
	"sync"
)

// progressLine is a line on a terminal that says how far a command is. It goes away when something else is written.
type progressLine struct {
	to io.Writer // nil if the standard error is no terminal

	mu    sync.Mutex
	shown bool
}

// show shows a text in place of the one before; an empty one removes it.
func (l *progressLine) show(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.to == nil || text == "" && !l.shown {
		return
	}
	l.shown = text != ""
	_, _ = io.WriteString(l.to, "\r\x1b[K"+text)
}

// manyResources is how many resources a command is busy with at least when it says how far it is.
const manyResources = 100

// Progress says on a terminal that a command is at one of many resources.
func (s Streams) Progress(at, of int) {
	if of > manyResources {
		s.Show(fmt.Sprintf("%d of %d ...", at, of))
	}
}

// Show shows a text on a terminal until something else is written; an empty one removes it.
func (s Streams) Show(text string) {
	if err, ok := s.Err.(*stream); ok {
		err.line.show(text)
	}
}

// progressWriter returns where a line of progress is shown: on standard error, if it is a terminal that can erase a
// line; else nil.
func progressWriter(stderr io.Writer) io.Writer {
	if IsTerminal(stderr) && os.Getenv("TERM") != "dumb" {
		return stderr
	}
	return nil
}
