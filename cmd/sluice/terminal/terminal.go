// Package terminal has the standard streams of a command: they remember write errors, and share a line of progress.
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

// stream is the standard output or error of a command. It remembers the first error, and removes the line of progress
// before anything is written. It is safe for concurrent use.
type stream struct {
	to   io.Writer
	line *progressLine

	mu  sync.Mutex
	err error
}

// Checked returns the streams of a command that remember errors and share a line of progress.
func (s Streams) Checked() Streams { return s.CheckedWithProgress(progressWriter(s.Err)) }

// CheckedWithProgress is Checked with the line of progress on a writer; nil shows none.
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

// failure returns why something could not be written, nil if all was.
func (s *stream) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Unwrap returns the file of a stream, for a program that has to get it.
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

// Coloured reports whether to write colours: on a terminal that has
// them, unless the user wants none (https://no-color.org).
func Coloured(w io.Writer) bool {
	return IsTerminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// OutputError returns why the standard output could not be written; nil if it could.
func (s Streams) OutputError() error {
	if out, ok := s.Out.(*stream); ok {
		return out.failure()
	}
	return nil
}
