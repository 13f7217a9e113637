// Package terminal has the standard streams of commands. They remember write errors and share a progress line.
package terminal

import (
	"io"
	"os"
	"sync"

	"golang.org/x/term"
)

// Streams are the standard streams of a command.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// stream is the standard output or error of a command. It erases the progress line before each write, and remembers the
// first error. It is safe for concurrent use.
type stream struct {
	to   io.Writer
	line *progressLine

	mu  sync.Mutex
	err error
}

// Checked returns streams that remember errors and share a progress line.
func (s Streams) Checked() Streams { return s.CheckedWithProgress(progressWriter(s.Err)) }

// CheckedWithProgress is like Checked, but writes the progress line to a given writer; nil for no progress line.
func (s Streams) CheckedWithProgress(progress io.Writer) Streams {
	line := &progressLine{to: progress}
	return Streams{In: s.In, Out: &stream{to: s.Out, line: line}, Err: &stream{to: s.Err, line: line}}
}

// Write implements [io.Writer].
func (s *stream) Write(p []byte) (int, error) {
	s.line.show("")
	s.mu.Lock()
	defer s.mu.Unlock()
	n, err := s.to.Write(p)
	if s.err == nil {
		s.err = err
	}
	return n, err
}

// failure returns the first write error; nil if there was none.
func (s *stream) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Unwrap returns the writer below a stream of [Streams.Checked]. Other writers are returned unchanged.
func Unwrap(w io.Writer) io.Writer {
	if s, ok := w.(*stream); ok {
		return s.to
	}
	return w
}

// IsTerminal reports whether a stream is a terminal.
func IsTerminal(stream any) bool {
	if w, ok := stream.(io.Writer); ok {
		stream = Unwrap(w)
	}
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Coloured reports whether to write colours to w: it is a terminal that supports them, and the user has not turned them
// off (https://no-color.org).
func Coloured(w io.Writer) bool {
	return IsTerminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// OutputError returns the first error of a write to the standard output; nil if there was none.
func (s Streams) OutputError() error {
	if out, ok := s.Out.(*stream); ok {
		return out.failure()
	}
	return nil
}
